"""Lineage is told when somebody asked for it, and whoever does not take it stops no run."""

import json
from pathlib import Path

import pytest

from postroom.clock import ManualClock
from postroom.pipeline.errors import LineageUnusable
from postroom.pipeline.jobs.lineage import STEPS, check_lineage, locate, tell_lineage
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.lake.lake import Lake
from tests.pipeline.lineage_server import lineage_server


def run_two_steps(lake: Lake, where: str, *, fails: bool = False) -> str | None:
    """A run with two steps, of which the second may fail; what it has to say of its lineage."""
    clock = ManualClock()
    log = RunLog(lake, clock)
    with tell_lineage(where, "pipeline.run", lake, "/room.db", log, clock, {}) as lineage:
        for name in ("bronze", "message_life"):
            with log.step(name):
                if fails and name == "message_life":
                    raise RuntimeError("no ink")
    return lineage.problem if lineage else None


def test_nothing_is_told_unless_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lineage_server() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        assert run_two_steps(Lake(str(tmp_path / "lake")), "") is None
        assert server.asked == 0
        assert run_two_steps(Lake(str(tmp_path / "lake")), "env") is None
        assert [event["eventType"] for event in server.events] == [
            "START",
            *["START", "COMPLETE"] * 2,
            "COMPLETE",
        ]


def test_a_step_that_fails_is_told_as_failed_and_so_is_its_run(tmp_path: Path) -> None:
    told = tmp_path / "lineage.jsonl"
    with pytest.raises(RuntimeError, match="no ink"):
        run_two_steps(Lake(str(tmp_path / "lake")), str(told), fails=True)
    events = [json.loads(line) for line in told.read_text("utf-8").splitlines()]
    assert [(event["job"]["name"], event["eventType"]) for event in events] == [
        ("pipeline.run", "START"),
        ("pipeline.run.bronze", "START"),
        ("pipeline.run.bronze", "COMPLETE"),
        ("pipeline.run.message_life", "START"),
        ("pipeline.run.message_life", "FAIL"),
        ("pipeline.run", "FAIL"),
    ]
    assert "no ink" in events[-1]["run"]["facets"]["errorMessage"]["message"]
    parent = events[0]["run"]["runId"]
    assert {event["run"]["facets"]["parent"]["run"]["runId"] for event in events[1:-1]} == {parent}


def test_a_server_that_takes_nothing_is_asked_once_and_the_run_goes_on(tmp_path: Path) -> None:
    with lineage_server(answer=403) as server:
        problem = run_two_steps(Lake(str(tmp_path / "lake")), server.url)
        assert server.asked == 1
    assert problem is not None
    assert "403" in problem
    assert "the run went on" in problem


def test_a_server_that_is_away_stops_no_run(tmp_path: Path) -> None:
    with lineage_server() as server:
        away = server.url
    problem = run_two_steps(Lake(str(tmp_path / "lake")), away)
    assert problem is not None
    assert "the run went on" in problem


def test_the_key_of_the_server_is_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret-key")
    with lineage_server() as server:
        assert run_two_steps(Lake(str(tmp_path / "lake")), server.url) is None
        assert set(server.authorizations) == {"Bearer secret-key"}


@pytest.mark.parametrize("where", ["ftp://somewhere/else", "http://"])
def test_a_place_that_cannot_be_told_to_is_refused_before_anything_begins(where: str) -> None:
    with pytest.raises(LineageUnusable, match="--lineage"):
        check_lineage(where)


def test_tables_are_named_as_files_and_objects_are() -> None:
    assert locate("/lakes/gold/sla") == ("file", "/lakes/gold/sla")
    assert locate("s3://bucket/room/gold/sla") == ("s3://bucket", "room/gold/sla")


def test_every_step_reads_what_an_earlier_one_wrote() -> None:
    written: set[str] = set()
    for name, tables in STEPS.items():
        assert {table.name for table in tables.reads} <= written, name
        written |= {table.name for table in tables.writes}
