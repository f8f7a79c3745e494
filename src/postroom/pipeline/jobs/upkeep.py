"""What keeps a lake in shape by itself, at the end of a run and under its lease. Bounded, so no run is long.

Readers are never disturbed: files that were put together or let go stay for a week.
"""

from collections.abc import Mapping
from datetime import timedelta

from postroom.clock import SECOND, Clock
from postroom.errors import PostroomError
from postroom.pipeline.jobs.maintenance import compact, groups_of, vacuum
from postroom.pipeline.jobs.retention import let_go
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import ALL, RUNS

MANY_FILES = 12
"""So many small files of one part are put together."""
BYTES_AT_ONCE = 256 << 20
VACUUM_EVERY_S = 86_400
KEEP_FILES = timedelta(days=7)


def keep_up(lake: Lake, clock: Clock, log: RunLog, keep: Mapping[str, float]) -> None:
    """`keep` are seconds by table. What fails here is noted and tried again after the next run."""
    try:
        _put_together(lake, log)
        _let_go(lake, clock, log, keep)
        _vacuum(lake, clock, log)
    except (PostroomError, OSError):
        pass  # its step says why; everything else of the run is committed


def _put_together(lake: Lake, log: RunLog) -> None:
    groups = (group for table in ALL for group in groups_of(lake.files(table)))
    if not any(len(group) >= MANY_FILES for group in groups):
        return
    with log.step("compact") as step:
        done = compact(lake, least=MANY_FILES, most_bytes=BYTES_AT_ONCE)
        step.rows_in = sum(each["files_removed"] for each in done.values())
        step.rows_out = sum(each["files_added"] for each in done.values())


def _let_go(lake: Lake, clock: Clock, log: RunLog, keep: Mapping[str, float]) -> None:
    for table in ALL:
        seconds = keep.get(table.name)
        if seconds is None or not lake.exists(table):
            continue
        # Whole days and months go at once, so looking once a day is enough.
        before = (clock.now() - round(seconds * SECOND)) // (86_400 * SECOND) * 86_400 * SECOND
        if before <= lake.snapshot(table).kept_from:
            continue
        with log.step("retain") as step:
            left = let_go(lake, table, before)
            step.rows_in, step.rows_out = left.rows + left.kept, left.kept
            if not left.rows:
                lake.commit(table, [], None, kept_from=before, about={"reason": "retention"})


def _vacuum(lake: Lake, clock: Clock, log: RunLog) -> None:
    now = clock.now()
    last = lake.snapshot(RUNS).vacuumed_at
    if not last:
        # A new lake has nothing to delete; the first time comes a day later.
        lake.commit(RUNS, [], None, vacuumed_at=now, about={"reason": "upkeep"})
        return
    if now - last < VACUUM_EVERY_S * SECOND:
        return
    with log.step("vacuum") as step:
        done = vacuum(lake, keep=KEEP_FILES)
        step.rows_out = sum(each["files"] for each in done.values())
        lake.commit(RUNS, [], None, vacuumed_at=now, about={"reason": "upkeep"})
