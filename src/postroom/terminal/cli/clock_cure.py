"""`postroom doctor --cure clock`: the ledger's time back to the clock, first tried on a copy of the store."""

import tempfile
from pathlib import Path

import msgspec

from postroom.clock import SECOND, file_stamp, iso
from postroom.kernel import commands as c
from postroom.kernel.transitions.time_back import TimeSetBack
from postroom.runtime import RoomOptions
from postroom.runtime.core import RoomCore
from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite.migrate import copy_to
from postroom.terminal.cli.backup_files import write_digest
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.store_access import CommandContext, whoami


def cure_clock(at: CommandContext, *, yes: bool) -> None:
    """Without `yes` only told. With it, a backup is made before."""
    if at.is_on_server:
        raise Unclear("time is the database server's own there; set its clock")
    if at.is_served:
        raise Unclear("the office runs on this store; stop it first: postroom stop")
    now = at.clock.now()
    with at.looking() as room:
        if room.head().time <= now:
            raise Unclear("the ledger is not ahead of this machine's clock: there is nothing to cure")
    if yes:
        folder = at.path.absolute().parent / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = folder / f"{at.path.name}.clock-{file_stamp(now)}"
        _copy(at, kept)
        write_digest(kept)
        told = [f"time goes on from {iso(now)}. To undo it: postroom restore {kept}"]
        done, backup = _set_back(at.path, now), str(kept)
    else:
        with tempfile.TemporaryDirectory(prefix="postroom-clock-") as place:
            tried = Path(place) / "store.db"
            _copy(at, tried)
            done, backup = _set_back(tried, now), None
        told = [
            "tried on a copy; nothing is changed yet. If this machine's clock is right, and everything of"
        ]
        told += ["this office is stopped: postroom doctor --cure clock --yes"]
    figures = msgspec.to_builtins(done)
    ahead = figures.pop("ahead")
    at.out.show(
        {"cured": yes, "ahead_s": ahead / SECOND, "backup": backup, **figures}, *_lines(done, ahead), *told
    )


def _copy(at: CommandContext, target: Path) -> None:
    with at.file() as source:
        copy_to(source.db, target)
    target.chmod(0o600)


def _set_back(path: Path, now: int) -> TimeSetBack:
    core = RoomCore(SqliteStore(path), RoomOptions(actor=whoami(), housekeeping=False))
    try:
        return core.committer.execute(c.SetTimeBack(to=now, actor=whoami()))
    finally:
        core.close()


def _lines(done: TimeSetBack, ahead: int) -> list[str]:
    """What was counted from the wrong time, and what cannot be."""
    found = {
        "leases": done.leases,
        "delays and retries": done.delays,
        "times to live": done.lives,
        "places in queues": done.places,
        "reservations of budgets": done.reservations,
        "schedules": done.schedules,
        "leaderships": done.leaderships,
    }
    counted = ", ".join(f"{count:,} {name}" for name, count in found.items() if count) or "nothing"
    lines = [
        f"the ledger is {ahead / SECOND / 60:,.0f} minutes ahead of the clock",
        f"counted anew: {counted}",
    ]
    if done.ended:
        lines.append(
            f"{done.ended:,} messages expired whose time is not over by the right clock;"
            " they are kept: postroom list --state expired"
        )
    return lines
