"""`postroom restore`: a backup back in the place of the store, after it has been tried."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from postroom.clock import file_stamp, iso
from postroom.errors import StoreCorrupt, StoreInUse, StoreReadOnly
from postroom.stores.sqlite.backup_stream import restore_stream
from postroom.stores.sqlite.heads import SignedHeads
from postroom.stores.sqlite.owner import OwnerLock
from postroom.terminal.cli import documents
from postroom.terminal.cli.backup_files import find_damage
from postroom.terminal.cli.backup_targets import is_address, open_target
from postroom.terminal.cli.command import command
from postroom.terminal.cli.confirm import confirm
from postroom.terminal.cli.errors import BackupDamaged, NoBackup, Unclear
from postroom.terminal.cli.ledger import progress_bar
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import When
from postroom.terminal.cli.verify import verify


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "restore",
        panel=panel,
        examples=[
            "postroom restore monday.db --check",
            "postroom restore monday.db --yes",
            "postroom restore s3://bucket/postroom --at 2h",
        ],
    )(restore)


def restore(
    at: CommandContext,
    place: Annotated[
        str, argument("FILE", "A copy that postroom backup made; or where backup --follow ships to.")
    ],
    check: Annotated[bool, flag("Only try it: read all of it and verify its ledger.", "--check")] = False,
    yes: Annotated[bool, flag("Do not ask.", "--yes", "-y")] = False,
    moment: Annotated[
        When | None, option("TIME", "Of what backup --follow shipped: as it was then.", "--at")
    ] = None,
) -> None:
    """Put a backup in the place of the store. The store as it was is kept beside it."""
    if is_address(place) or Path(place).expanduser().is_dir():
        with tempfile.TemporaryDirectory(prefix="postroom-restore-") as folder:
            rebuilt = Path(folder) / "store.db"
            until = None if moment is None else moment.before(at.clock.now())
            found = restore_stream(open_target(place), place, rebuilt, until)
            at.out.note(f"{place} as of {iso(found)}")
            _restore(at, rebuilt, check=check, yes=yes)
        return
    if moment is not None:
        raise Unclear(f"{place} is one copy, of one moment; --at is for what backup --follow shipped")
    _restore(at, Path(place).expanduser().absolute(), check=check, yes=yes)


def _restore(at: CommandContext, source: Path, *, check: bool, yes: bool) -> None:
    if not source.is_file():
        raise NoBackup(path=str(source))
    if (damage := find_damage(source)) is not None:
        raise BackupDamaged(path=str(source), problem=damage)
    try:
        with contextlib.closing(ReadOnlyFile(source, immutable=True)) as copy:
            copy.check_pages()
            with copy.look() as reader, progress_bar(at.out) as progress:
                found = verify(reader, progress=progress)
    except StoreCorrupt as error:
        raise BackupDamaged(path=str(source), problem=error.data["problem"]) from error
    told = f"{source} is sound: {found.events:,} events, {found.messages or 0:,} messages."
    if check:
        at.out.show({"file": str(source), "restored": False, "head": documents.head(found.head)}, told)
        return
    target = at.path.absolute()
    if target.exists() and target.samefile(source):
        raise Unclear(f"{source} is the store itself; name a backup of it")
    if not yes:
        confirm(f"Put {source} in the place of {target}?")
    kept = _exchange(source, target, at.clock.now())
    at.out.show(
        {"file": str(source), "restored": True, "kept": str(kept) if kept else None},
        told,
        f"{target} is restored." + (f" The store as it was: {kept}" if kept else ""),
    )


def _exchange(source: Path, target: Path, now: int) -> Path | None:
    """Under the store's own lock, so that nobody has it open."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = OwnerLock(target)
    try:
        part = target.with_name(f".{target.name}.restore")
        shutil.copyfile(source, part)
        part.chmod(0o600)
        with part.open("rb") as copied:
            os.fsync(copied.fileno())
        kept = None
        if target.exists():
            stamp = file_stamp(now)
            kept = target.with_name(f"{target.name}.before-{stamp}")
            for ending in ("", "-wal", "-shm"):
                beside = Path(f"{target}{ending}")
                if beside.exists():
                    os.replace(beside, f"{kept}{ending}")
        # What was noted of the store as it was does not hold for this one.
        heads = SignedHeads(target).path
        if heads.exists():
            os.replace(heads, f"{kept or target}.heads-before")
        os.replace(part, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return kept
    except StoreInUse:
        raise
    except OSError as error:
        raise StoreReadOnly(path=str(target), reason=error.strerror or str(error)) from error
    finally:
        lock.release()
