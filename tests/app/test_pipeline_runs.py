"""Runs of the pipeline in a house: one at a time, when they are due; their failures are told, not fatal."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import postroom
from postroom.app import pipeline_runs
from postroom.app.lake import StoreLake
from postroom.app.pipeline_runs import PipelineRuns
from postroom.clock import SECOND, ManualClock
from postroom.errors import PostroomError
from postroom.pipeline.errors import PipelineBusy, SourceUnknown
from postroom.pipeline.jobs import launch
from postroom.pipeline.jobs.launch import needed
from postroom.settings import InvalidSettings, Settings, parse

NOON = 1_794_744_000 * SECOND

Does = Callable[[str], None]


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> Does:
    """What the process of a run does instead of starting Spark."""

    def program(code: str) -> None:
        monkeypatch.setattr(launch, "command_line", lambda *_: [sys.executable, "-c", code])

    return program


class House:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(NOON)
        self.settings = Settings()

    def runs(self, store: str = "room.db", **environment: str) -> PipelineRuns:
        lake = StoreLake(self.folder / "lake", self.clock)
        url = store if "://" in store else str(self.folder / store)
        return PipelineRuns(
            lake, url, self.folder, self.folder, self.clock, lambda: self.settings, environment
        )

    def plan(self, **values: object) -> None:
        self.settings = parse({"pipeline": values, "schedules": {"zone": "UTC"}})


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


COMES_THROUGH = 'print(\'{"events": 7, "seconds": 0.5}\')'
WAITS = "import time; time.sleep(600)"


def test_a_run_is_a_process_of_its_own_and_its_outcome_is_kept(house: House, does: Does) -> None:
    does(COMES_THROUGH)
    runs = house.runs()
    pid = runs.start("api")
    assert runs.ended.wait(120)
    last = house.runs().state()["last"]
    assert (last["pid"], last["by"], last["ok"], last["events"]) == (pid, "api", True, 7)


def test_a_second_run_is_refused_while_the_first_goes_on(house: House, does: Does) -> None:
    does(WAITS)
    runs = house.runs()
    pid = runs.start("api")
    with pytest.raises(PipelineBusy, match=str(pid)):
        runs.start("schedule")
    assert runs.stop()
    assert runs.ended.wait(120)
    assert not runs.stop()
    does(COMES_THROUGH)
    runs.ended.clear()
    runs.start("api")
    assert runs.ended.wait(120)


def test_a_failure_is_told_in_the_words_of_the_run(
    house: House, does: Does, caplog: pytest.LogCaptureFixture
) -> None:
    error = json.dumps({"error": {"code": "JAVA_MISSING", "message": "Spark needs Java."}})
    does(f"import sys; print({error!r}, file=sys.stderr); sys.exit(8)")
    runs = house.runs()
    runs.start("schedule")
    assert runs.ended.wait(120)
    last = runs.state()["last"]
    assert (last["ok"], last["problem"]) == (False, "Spark needs Java.")
    assert "Spark needs Java." in caplog.text


def test_a_run_that_takes_too_long_is_stopped(house: House, does: Does) -> None:
    does(WAITS)
    house.plan(limit_minutes=0.005)
    runs = house.runs()
    runs.start("schedule")
    assert runs.ended.wait(120)
    assert "limit_minutes" in runs.state()["last"]["problem"]


def test_a_store_that_spark_cannot_read_is_refused_before_anything_starts(house: House) -> None:
    with pytest.raises(SourceUnknown):
        house.runs("oracle://ada:secret@db/room").start("api")


def test_a_run_sees_no_secret_of_the_house() -> None:
    given = {"PATH": "/bin", "POSTROOM_TOKEN": "t", "OPENAI_API_KEY": "k", "POSTROOM_SPARK_MASTER": "local"}
    assert needed(given) == {"PATH": "/bin", "POSTROOM_SPARK_MASTER": "local"}


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [("30m", 1800), ("6h", 6 * 3600), ("1d", 86_400), ("0 3 * * *", 15 * 3600), ("15 12 * * *", 900)],
)
def test_the_next_time_follows_the_last_run(house: House, does: Does, schedule: str, seconds: int) -> None:
    does(COMES_THROUGH)
    house.plan(schedule=schedule)
    runs = house.runs()
    runs.start("schedule")
    assert runs.ended.wait(120)
    assert house.runs().due() == NOON + seconds * SECOND, "a house that opens again keeps to it"


@pytest.mark.parametrize("text", ["soon", "0m", "5s", "* * *", "61 * * * *", ""])
def test_a_schedule_that_means_nothing_is_refused(house: House, text: str) -> None:
    with pytest.raises(InvalidSettings, match="must be like 30m"):
        house.plan(schedule=text)


def test_without_a_schedule_nothing_is_due(house: House) -> None:
    assert house.runs().due() is None


async def test_the_schedule_starts_runs_and_the_room_learns_how_far_the_lake_is(
    house: House, does: Does, monkeypatch: pytest.MonkeyPatch
) -> None:
    does(COMES_THROUGH)
    monkeypatch.setattr(pipeline_runs, "LOOK_S", 0.01)
    house.plan(schedule="1h")
    (house.folder / "lake").mkdir()
    monkeypatch.setattr(StoreLake, "committed", lambda self: 5)
    runs = house.runs()
    async with postroom.open("memory://") as room:
        keeping = asyncio.create_task(runs.keep(room))
        async with asyncio.timeout(120):
            while not await room.positions():  # noqa: ASYNC110 - a position has no event
                await asyncio.sleep(0.01)
        first = runs.state()["last"]
        assert (first["by"], first["ok"]) == ("schedule", True)
        house.clock.advance(3601)
        async with asyncio.timeout(120):
            while runs.state()["last"]["started_at"] == first["started_at"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_a_run_that_cannot_be_started_waits_for_its_next_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def refuse(self: PipelineRuns, by: str, *more: str) -> int:
        tries.append(by)
        raise PostroomError

    monkeypatch.setattr(pipeline_runs, "LOOK_S", 0.01)
    monkeypatch.setattr(PipelineRuns, "start", refuse)
    house.plan(schedule="1h")
    runs = house.runs()
    async with postroom.open("memory://") as room:
        keeping = asyncio.create_task(runs.keep(room))
        async with asyncio.timeout(120):
            while runs.state()["last"] is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        due, looks = PipelineRuns.due, 0

        def counted(self: PipelineRuns) -> int | None:
            nonlocal looks
            looks += 1
            return due(self)

        monkeypatch.setattr(PipelineRuns, "due", counted)
        async with asyncio.timeout(120):
            while looks < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not keeping.done()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
    assert tries == ["schedule"]
    assert runs.due() == NOON + 3600 * SECOND


def test_the_password_of_a_server_is_on_no_command_line() -> None:
    url = "postgresql://me:secret@db.example/postroom"
    assert not any("secret" in word for word in launch.command_line(url, "lake"))
    assert "--store" in launch.command_line("room.db", "lake")
