"""A watch waits while somebody else works on the lake, and does not end for it."""

import threading
from pathlib import Path
from typing import Any

from postroom.clock import SystemClock
from postroom.errors import PostroomError
from postroom.pipeline.errors import PipelineBusy
from postroom.pipeline.jobs.watch import watch
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.sources.sqlite import open_source
from postroom.runtime import open_sync


def test_who_is_in_the_way_is_told_at_every_look_until_the_lake_is_free(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    with open_sync(f"sqlite:///{path}", housekeeping=False) as room:
        room.create_queue("jobs")
    stop, told = threading.Event(), list[PostroomError]()

    def waits(error: PostroomError) -> None:
        told.append(error)
        if len(told) == 3:
            stop.set()

    spark: Any = None  # a run that may not begin asks nothing of it
    held, clock = Lake(str(tmp_path / "lake")), SystemClock()
    with hold_lease(held, clock):
        lake = Lake(str(tmp_path / "lake"))
        watch(spark, lake, open_source(str(path)), clock, stop, every_s=0.0, waits=waits)
    assert [type(each) for each in told] == [PipelineBusy] * 3
