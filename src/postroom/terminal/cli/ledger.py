"""`postroom ledger`: read the record of everything that happened, and prove that nobody changed it."""

import contextlib
import time
from collections.abc import Iterator
from typing import Annotated

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from postroom.clock import iso
from postroom.errors import LedgerBroken, PostroomError, StoreCorrupt
from postroom.kernel.ledger import Event
from postroom.kernel.reader import Reader
from postroom.stores.sqlite.heads import SignedHeads
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.errors import StoreDamaged, sentence
from postroom.terminal.cli.events import line
from postroom.terminal.cli.head_copies import KnownHeads, add_git_note, post_head, read_heads
from postroom.terminal.cli.options import flag, option
from postroom.terminal.cli.output import Output, facts
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.verify import Progress as Report
from postroom.terminal.cli.verify import Verified, verify

app = group("ledger", "The ledger: everything that ever happened, in order, chained by hashes.")

POLL_S = 0.2
AT_ONCE = 500
BROKEN = LedgerBroken.exit_code


@command(
    app,
    "verify",
    examples=[
        "postroom ledger verify",
        "postroom ledger verify --head 4f1c…   (a head that you noted earlier)",
        "postroom ledger verify --head heads.jsonl",
        "postroom ledger verify --head lake",
        "postroom ledger verify --no-fold --store sqlite:///backups/monday.db",
    ],
)
def check(
    at: CommandContext,
    head: Annotated[
        str | None,
        option(
            "HEAD",
            "What was noted elsewhere and must still be in the chain: a hash, a file of heads, git:FOLDER for"
            " notes in git, or lake.",
            "--head",
        ),
    ] = None,
    fold: Annotated[
        bool, flag("Also check every message against the ledger. Default yes.", "--fold/--no-fold")
    ] = True,
) -> None:
    """Walk the whole ledger and check every link; exit code 7 when it was tampered with.

    Whoever rewrites the whole file can rewrite the chain too. So it is compared with the signed heads noted
    beside the store, and with what is noted in another place, if you give it with --head. The store is
    only read, also while another process works with it; it may be on a database server.
    """
    known = KnownHeads() if head is None else read_heads(at, head)
    try:
        with contextlib.ExitStack() as stack:
            heads: dict[int, str] = {}
            if at.is_on_server:
                reader = stack.enter_context(at.server_reader())
            else:
                file = stack.enter_context(at.file())
                reader = stack.enter_context(file.look())
                file.check_pages()
                heads = {each.seq: each.hash for each in SignedHeads(at.path).read()}
            heads |= known.by_number
            try:
                with progress_bar(at.out) as progress:
                    verified = verify(reader, noted=known.prefix, heads=heads, fold=fold, progress=progress)
                known.check_within(verified.anchor)
            except LedgerBroken as broken:
                _show_broken(at.out, broken, reader)
                raise
    except StoreCorrupt as error:
        if at.out.as_json:
            at.out.line({"ok": False, "code": error.code, "problem": sentence(error)})
        # Damage is what was looked for, and found.
        raise StoreDamaged(**error.data) from error
    show_verified(at.out, verified, fold=fold)


@contextlib.contextmanager
def _reading(at: CommandContext) -> Iterator[Reader]:
    if at.is_on_server:
        with at.server_reader() as reader:
            yield reader
    else:
        with at.file() as file, file.look() as reader:
            yield reader


def _show_broken(out: Output, broken: LedgerBroken, reader: Reader) -> None:
    event = None
    if "seq" in broken.data:
        with contextlib.suppress(PostroomError, AssertionError, TypeError, ValueError):
            event = next(iter(reader.events(broken.data["seq"] - 1, 1)), None)
    if out.as_json:
        out.line(
            {
                "ok": False,
                "code": broken.code,
                "problem": sentence(broken),
                "event": None if event is None else documents.event(event),
            }
        )
    elif event is not None:
        out.say(line(event))


def show_verified(out: Output, verified: Verified, *, fold: bool) -> None:
    head = verified.head
    document = {
        "ok": True,
        "events": verified.events,
        "first": verified.anchor.seq + 1,
        "head": documents.head(head),
        "messages": verified.messages,
    }
    text = f"The ledger is whole: {verified.events:,} events, each linked to the one before."
    if verified.anchor.seq:
        text += f" Events up to {verified.anchor.seq:,} were pruned."
    if verified.messages is not None:
        state = f"All {verified.messages:,} messages are as the ledger says."
    elif fold:
        state = "The messages were not checked against it, since its beginning was pruned."
    else:
        state = "The messages were not checked against it."
    out.show(document, text, state, f"head {head.seq} {documents.hexed(head.hash)}")


@contextlib.contextmanager
def progress_bar(out: Output) -> Iterator[Report | None]:
    """A bar on stderr for people; nothing for scripts."""
    console = out.console(stderr=True)
    if out.as_json or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("verifying"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} events"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("")

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


@command(
    app,
    "head",
    examples=[
        "postroom ledger head",
        "postroom ledger head --json >> heads.jsonl",
        "postroom ledger head --git-note ~/notes",
        "postroom ledger head --post https://example.org/heads",
    ],
)
def show_head(
    at: CommandContext,
    post: Annotated[str | None, option("URL", "Also send it there, as JSON.", "--post")] = None,
    git_note: Annotated[
        str | None, option("FOLDER", "Also add it to the notes of the repository there.", "--git-note")
    ] = None,
) -> None:
    """Print the newest event's number and hash.

    Note them in another place, and `ledger verify --head` can prove later that nothing was rewritten.
    """
    with _reading(at) as reader:
        found = reader.head()
    if post is not None:
        post_head(post, documents.head(found))
    if git_note is not None:
        add_git_note(git_note, documents.head(found))
    rows = [("events", found.seq), ("head", documents.hexed(found.hash))]
    if found.time:
        rows.append(("time", iso(found.time)))
    at.out.show(documents.head(found), facts(rows))


@command(
    app,
    "tail",
    examples=[
        "postroom ledger tail",
        "postroom ledger tail -f",
        "postroom ledger tail --since 0 --json > ledger.jsonl",
    ],
)
def tail(
    at: CommandContext,
    follow: Annotated[bool, flag("Go on as events come, until Ctrl-C.", "--follow", "-f")] = False,
    since: Annotated[int | None, option("N", "All events after number N.", "--since", min=0)] = None,
    lines: Annotated[int, option("N", "Else the last so many. Default 20.", "--lines", "-n", min=0)] = 20,
) -> None:
    """Print the newest events, one per line; with --json each as a JSON document on its own line."""
    with at.file() as file:
        if since is None:
            with file.look() as reader:
                since = max(reader.head().seq - lines, 0)
        for event in _events(file, since, follow=follow):
            if at.out.as_json:
                at.out.line(documents.event(event))
            else:
                at.out.say(line(event))


def _events(file: ReadOnlyFile, after: int, *, follow: bool) -> Iterator[Event]:
    while True:
        seen = file.version()
        with file.look() as reader:
            events = reader.events(after, AT_ONCE)
        yield from events
        if events:
            after = events[-1].seq
        elif not follow:
            return
        else:
            while file.version() == seen:
                time.sleep(POLL_S)
