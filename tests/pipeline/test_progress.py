"""What a step says of its progress is about its own jobs, and never goes back."""

from types import SimpleNamespace
from typing import Any

from postroom.pipeline.jobs.progress import RunProgress, StepFollower


class Tracker:
    """As Spark's: the jobs of a group, those that have ended too, and their tasks."""

    def __init__(self, groups: dict[str, list[tuple[int, int]]]) -> None:
        self.groups = groups

    def getJobIdsForGroup(self, group: str) -> list[str]:  # noqa: N802 - Spark's name
        return [f"{group} {number}" for number in range(len(self.groups[group]))]

    def getJobInfo(self, job: str) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(stageIds=[job])

    def getStageInfo(self, stage: str) -> Any:  # noqa: N802 - Spark's name
        group, _, number = stage.rpartition(" ")
        done, total = self.groups[group][int(number)]
        return SimpleNamespace(numCompletedTasks=done, numTasks=total)


def test_jobs_that_begin_later_do_not_take_back_what_was_told() -> None:
    said: list[RunProgress] = []
    tracker = Tracker({"own": [(1, 4)], "of another step": [(0, 400)]})
    follower = StepFollower(tracker, "own", said.append, "conversations", 1000, 0.0)
    follower.look()
    tracker.groups["own"] = [(4, 4)]
    follower.look()
    tracker.groups["own"] = [(4, 4), (0, 12)]
    follower.look()
    tracker.groups["own"] = [(4, 4), (12, 12)]
    follower.look()
    assert [each.done for each in said] == [250, 1000, 1000, 1000]
    assert {each.total for each in said} == {1000}
