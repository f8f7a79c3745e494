"""The memory step asks Spark only when something was said."""

from pathlib import Path
from typing import Any

from postroom.clock import ManualClock
from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.crew import Crew
from postroom.pipeline.jobs.memory import remember
from postroom.pipeline.jobs.progress import silent
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import CHUNKS, MESSAGES
from postroom.pipeline.sources.sqlite import SqliteSource


def test_a_run_in_which_no_message_ended_moves_memory_on_without_a_job(tmp_path: Path) -> None:
    lake, clock = Lake(str(tmp_path)), ManualClock()
    lake.commit(MESSAGES, [], Positions(5, 0))
    no_spark: Any = None
    at = Context(Crew(no_spark), lake, SqliteSource("nowhere.db"), clock, silent, RunLog(lake, clock))
    remember(at, Positions(5, 0))
    assert lake.positions(CHUNKS) == Positions(5, 0)
    assert lake.files(CHUNKS) == []
