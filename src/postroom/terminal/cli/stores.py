"""`postroom store`: what the store is, and how it moves to another database."""

import contextlib
import os
from collections.abc import Iterator
from typing import Annotated

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from postroom.kernel.reader import Reader
from postroom.runtime import RoomOptions, open_sync
from postroom.runtime.core import open_store
from postroom.runtime.store_move import describe_store, move_store
from postroom.stores.addresses import SERVERS
from postroom.stores.sql.transfer import Progress as Report
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.ledger import progress_bar
from postroom.terminal.cli.options import argument
from postroom.terminal.cli.output import Output, facts
from postroom.terminal.cli.store_access import CommandContext, whoami
from postroom.terminal.cli.verify import Verified, verify

app = group("store", "The store: what it is, and how it moves to another database.")


@command(
    app,
    "move",
    examples=[
        "postroom store move ~/.postroom/postroom.db postgresql://me@db.example/postroom",
        "postroom store move postgresql://me@db.example/postroom mariadb://me@db.example/postroom",
        "postroom store move mariadb://me@db.example/postroom sqlite:///back.db",
    ],
)
def move(
    at: CommandContext,
    source: Annotated[str, argument("FROM", "The address of the store, or its file. It stays as it is.")],
    target: Annotated[str, argument("TO", "Where it goes: a new file, or an empty database.")],
) -> None:
    """Copy a whole store to another database, and prove that nothing is missing or changed.

    Stop the office first: postroom stop. Cut off, it goes on where it was when you type it again. Then set
    store.url in settings.json to the new address, and start the office.
    """
    with _table_bar(at.out) as report:
        moved = move_store(source, target, report)
    verified = _verify(at.out, target)
    taken = None if target.startswith(SERVERS) else _take_back_settings(at, target)
    rows = sum(table.rows for table in moved)
    head = documents.head(verified.head)
    document = {"ok": True, "rows": {table.name: table.rows for table in moved}, "head": head}
    text = f"Moved: {rows:,} rows, each compared; {verified.events:,} events, each link checked."
    told = [taken] if taken else []
    at.out.show(
        document, text, *told, "Now set store.url in settings.json to the new address, and: postroom start"
    )


def _take_back_settings(at: CommandContext, target: str) -> str | None:
    """An office on a file reads its settings from the home."""
    from postroom.app.office_settings import take_back

    with open_sync(target, actor=whoami(), housekeeping=False) as room:
        return take_back(at.home, room, os.environ)


def _verify(out: Output, url: str) -> Verified:
    """As whoever opens it next will find it."""
    store = open_store(url, RoomOptions(actor=whoami(), housekeeping=False))
    try:
        with store.reader() as reads, progress_bar(out) as progress:
            return verify(Reader(reads), progress=progress)
    finally:
        store.close()


@contextlib.contextmanager
def _table_bar(out: Output) -> Iterator[Report]:
    """A bar on stderr for people; nothing for scripts."""
    console = out.console(stderr=True)
    if out.as_json or not console.is_terminal:
        yield lambda table, done, total: None
        return
    columns = (
        TextColumn("{task.description:18}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("")

        def report(table: str, done: int, total: int) -> None:
            bar.update(task, description=table, completed=done, total=total)

        yield report


@command(
    app,
    "info",
    examples=["postroom store info", "postroom store info postgresql://me@db.example/postroom --json"],
)
def info(
    at: CommandContext,
    url: Annotated[str | None, argument("URL", "Another one than the store of this home.")] = None,
) -> None:
    """Say what the store is: its database, its size, what is in it, and what should be set otherwise."""
    found = describe_store(url or at.url)
    rows = [("store", found.place), ("database", found.kind), ("size", f"{found.bytes // 1024:,} kB")]
    rows += [(name, f"{count:,} rows") for name, count in found.rows.items() if count]
    rows += list(found.settings.items())
    document = {
        "place": found.place,
        "kind": found.kind,
        "bytes": found.bytes,
        "rows": found.rows,
        "settings": found.settings,
        "warnings": found.warnings,
    }
    at.out.show(document, facts(rows), *found.warnings)
