"""`postroom backup`: a consistent copy of the store, also while another process works with it."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Annotated

import typer

from postroom.errors import StoreReadOnly
from postroom.stores.sqlite.errors import translated
from postroom.stores.sqlite.migrate import copy_to
from postroom.terminal.cli import documents
from postroom.terminal.cli.backup_files import archive_file, write_archive, write_digest
from postroom.terminal.cli.backup_follow import follow
from postroom.terminal.cli.command import command
from postroom.terminal.cli.errors import FileTaken, Unclear
from postroom.terminal.cli.ledger import progress_bar
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.store_access import CommandContext, home
from postroom.terminal.cli.verify import verify


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "backup",
        panel=panel,
        examples=[
            "postroom backup monday.db --check",
            "postroom backup ~/backups/postroom.db --force",
            "postroom backup --follow s3://bucket/postroom   (back to a moment: restore … --at 2h)",
            "postroom --store sqlite:///monday.db queue list   (a copy is a store like any other)",
        ],
    )(backup)


def backup(
    at: CommandContext,
    place: Annotated[
        str, argument("FILE", "Where the copy goes; with --follow, a folder or an address like s3://…")
    ],
    check: Annotated[bool, flag("Open the copy and verify its whole ledger.", "--check")] = False,
    force: Annotated[bool, flag("Replace FILE if it exists.", "--force")] = False,
    all_: Annotated[
        bool, flag("Also settings, token, files and what else is in the home: FILE.home.tar.", "--all")
    ] = False,
    following: Annotated[
        bool, flag("Go on: ship every commit within a second, until it is stopped.", "--follow")
    ] = False,
    keep_days: Annotated[
        float, option("DAYS", "With --follow: how far back one can go. Default 30.", "--keep-days")
    ] = 30.0,
    drill_hours: Annotated[
        float, option("HOURS", "With --follow: how often a restore is tried. Default 24.", "--drill-hours")
    ] = 24.0,
) -> None:
    """Copy the store to a file; nobody has to stop working. Its digest stands beside it: FILE.sha256."""
    if following:
        if keep_days <= 0 or drill_hours <= 0:
            raise Unclear("--keep-days and --drill-hours must be more than 0")
        asyncio.run(follow(at, place, keep_days=keep_days, drill_hours=drill_hours))
        return
    file = Path(place).expanduser().absolute()
    with at.file() as source:
        if file.exists() and os.path.samefile(file, source.path):
            raise Unclear(f"{file} is the store itself; choose another name for the copy")
        if file.exists() and not force:
            raise FileTaken(path=str(file))
        _clear_beside(file)
        _copy(source, file)
    write_digest(file)
    packed = write_archive(home(), file) if all_ else []
    head, size = None, file.stat().st_size
    with contextlib.closing(ReadOnlyFile(file, immutable=True)) as copy, copy.look() as reader:
        if check:
            copy.check_pages()
            with progress_bar(at.out) as progress:
                head = verify(reader, progress=progress).head
        else:
            head = reader.head()
    checked = " and verified" if check else ""
    at.out.show(
        {
            "file": str(file),
            "bytes": size,
            "verified": check,
            "head": documents.head(head),
            "archive": str(archive_file(file)) if all_ else None,
            "packed": packed,
        },
        f"{file} is written{checked}: {size:,} bytes, {head.seq:,} events.",
        f"head {head.seq} {documents.hexed(head.hash)}",
        f"{archive_file(file)} holds {', '.join(packed)}. Both hold secrets: keep them like the home itself."
        if all_
        else "Not in it: settings, token, files/ and what else is in the home. To take them too: --all",
    )
    if elsewhere := at.home.settings.load().files.url:
        at.out.note(f"files of messages are in {elsewhere}, and in no backup of ours: back that up too")


def _copy(source: ReadOnlyFile, target: Path) -> None:
    """Under another name first, so that a copy that failed never looks like one that worked."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # It holds everybody's mail: for its owner's eyes only.
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with translated(str(target)):
                copy_to(source.db, part)
            os.replace(part, target)
            _sync(target.parent)
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
    except OSError as error:
        raise StoreReadOnly(path=str(target), reason=error.strerror or str(error)) from error


def _clear_beside(target: Path) -> None:
    """The log of a file that was here before would be taken for the copy's own."""
    log = Path(f"{target}-wal")
    if log.exists() and log.stat().st_size:
        raise FileTaken(path=str(log))
    for beside in (log, Path(f"{target}-shm")):
        beside.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
