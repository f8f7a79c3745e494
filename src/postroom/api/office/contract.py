"""The sentences and statuses that existing clients of the office's API know, where ours differ."""

from postroom.errors import PostroomError
from postroom.office.agents.errors import AgentNotFound, TeamNotFound
from postroom.office.schedules.errors import InvalidCron, LabelTaken, NotInFuture, ScheduleNotFound
from postroom.office.tasks.errors import CommentNotFound, ProjectNotFound, TaskNotFound
from postroom.services.providers import HarnessUnknown

KNOWN: dict[type[PostroomError], tuple[int, str]] = {
    AgentNotFound: (404, "agent '{agent}' not found"),
    TeamNotFound: (404, "team '{team}' not found"),
    TaskNotFound: (404, "task not found"),
    ProjectNotFound: (404, "project not found"),
    CommentNotFound: (404, "comment not found"),
    ScheduleNotFound: (404, "schedule '{schedule}' not found"),
    InvalidCron: (400, "Invalid cron expression: {problem}"),
    NotInFuture: (400, "runAt must be in the future"),
    HarnessUnknown: (400, 'harness must be "claude" or "codex"'),  # as clients know it; ours is one more
    LabelTaken: (400, "A schedule with label '{label}' already exists"),
}


def told(error: PostroomError) -> tuple[int, str]:
    """The status and sentence of an error for the office's clients."""
    known = KNOWN.get(type(error))
    if known is None:
        return error.http_status, str(error)
    status, sentence = known
    return status, sentence.format(**error.data)
