"""The line of `postroom status` about the pipeline: what runs now, and no failure that was overcome."""

from typing import Any

import pytest

from postroom.clock import SECOND, iso
from postroom.terminal.cli.server import describe_pipeline

MINUTE = 60 * SECOND
NOW = 1_794_744_000_000_000
FAILED = {
    "started_at": NOW - 10 * MINUTE,
    "ended_at": NOW - 9 * MINUTE,
    "ok": False,
    "problem": "no Java",
    "pid": 7,
}


def describe(last: dict[str, Any] | None, **more: Any) -> str:
    lake = {"position": 40, "behind": 2, "running": None, "expectations": {"broken": []}, "last_run": []}
    return describe_pipeline({**lake, "house": {"last": last, "next_at": None}, **more}, NOW)


def steps(minutes_ago: int, *status: str) -> list[dict[str, Any]]:
    return [{"started_at": iso(NOW - minutes_ago * MINUTE), "status": each} for each in status]


def test_a_failure_is_told_until_something_better_happened() -> None:
    assert "failed: no Java" in describe(FAILED)
    assert "failed: no Java" in describe(FAILED, last_run=steps(30, "ok")), "that was before it"
    assert "failed: no Java" in describe(FAILED, last_run=steps(5, "ok", "failed"))


@pytest.mark.parametrize("since", [{"last_run": steps(5, "ok", "broken")}, {"behind": 0}])
def test_a_failure_is_forgotten_after_a_success_whoever_ran_it(since: dict[str, Any]) -> None:
    told = describe(FAILED, **since)
    assert "failed" not in told
    assert told.startswith("at event 40")


def test_a_run_is_told_from_its_first_moment() -> None:
    begun = {"started_at": NOW, "ended_at": None, "ok": None, "problem": None, "pid": 7}
    assert describe(begun) == "runs (process 7, starting)"
    progress = {"step": "silver", "done": 1200, "total": 5000}
    assert (
        describe(begun, running={"pid": 7, "progress": progress}) == "runs (process 7, silver 1,200 of 5,000)"
    )
