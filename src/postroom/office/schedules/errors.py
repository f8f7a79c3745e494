"""What can be wrong with a schedule, as the person who wrote it reads it."""

from postroom.errors import Conflict, Invalid
from postroom.kernel.schedules.errors import InvalidCron, NotInFuture, ScheduleNotFound

__all__ = ["InvalidCron", "LabelTaken", "NoSuchTarget", "NotInFuture", "ScheduleNotFound"]


class NoSuchTarget(Invalid):
    """There is no agent or team "{target}". Add it first, or check the spelling."""

    code = "NO_SUCH_TARGET"


class LabelTaken(Conflict):
    """A schedule with the label "{label}" exists already. Choose another label, or change that one."""

    code = "LABEL_TAKEN"
