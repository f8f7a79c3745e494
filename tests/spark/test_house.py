"""A real house runs the real pipeline: somebody asks over HTTP, watches it work, and reads what came out."""

import json
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.app.house_process import HouseProcess


@pytest.fixture
def house(tmp_path: Path):
    house = HouseProcess(tmp_path)
    # A run without Spark is over before anybody has watched it.
    house.env["POSTROOM_SPARK_MASTER"] = "local[2]"
    yield house
    house.end()


def until(door: httpx2.Client, done: Any) -> list[dict[str, Any]]:
    """What the status said, again and again, until it says what is waited for."""
    seen: list[dict[str, Any]] = []
    end = time.monotonic() + 240
    while time.monotonic() < end:
        seen.append(door.get("/api/pipeline/status").json())
        if done(seen[-1]):
            return seen
        time.sleep(0.25)  # as a page does that shows progress
    raise AssertionError(seen[-1])


def steps(log: Path) -> set[str]:
    """Of which steps the run told in its log."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith('{"progress"')]
    return {line["progress"]["step"] for line in lines}


def test_a_run_is_asked_for_watched_and_its_result_served(house: HouseProcess) -> None:
    house.start()
    house.cli("send", "@coder hello", "--wait")
    with httpx2.Client(base_url=house.url, headers=house.headers, timeout=60) as door:
        before = door.get("/api/pipeline/status").json()
        assert (before["position"], before["running"], before["house"]["last"]) == (0, None, None)
        begun = door.post("/api/pipeline/run")
        assert begun.status_code == 202, begun.text
        again = door.post("/api/pipeline/run")
        assert (again.status_code, again.json()["code"]) == (409, "PIPELINE_BUSY")
        seen = until(door, lambda said: said["house"]["last"]["ended_at"])
        last = seen[-1]["house"]["last"]
        assert (last["ok"], last["pid"], last["by"]) == (True, begun.json()["pid"], "api"), last
        shown = [said["running"]["progress"] for said in seen if said["running"]]
        told = steps(house.home.logs / "pipeline.log")
        assert {"bronze", "message_life", "gold"} <= told
        # A short step may begin and end between two looks, but what was seen is what was told.
        assert {each["step"] for each in shown if each} <= told
        assert any(shown)
        assert all(each["left"] == each["total"] - each["done"] for each in shown if each)
        assert seen[-1]["running"] is None
        assert last["events"] == seen[-1]["position"] > 0
        assert door.get("/api/insights/overview").json()["messages"] > 0
    told_here = house.cli("status").stdout
    assert "pipeline" in told_here
