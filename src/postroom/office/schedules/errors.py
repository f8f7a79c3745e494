"""What can be wrong with a schedule, as the person who wrote it reads it."""

from postroom.errors import Conflict, Invalid, NotFound


class InvalidCron(Invalid):
    """ "{cron}" is no cron expression: {problem}."""

    code = "INVALID_CRON"


class NotInFuture(Invalid):
    """{at} is past. Name a time to come."""

    code = "NOT_IN_FUTURE"


class NoSuchTarget(Invalid):
    """There is no agent or team "{target}". Add it first, or check the spelling."""

    code = "NO_SUCH_TARGET"


class ScheduleNotFound(NotFound):
    """There is no schedule "{schedule}"."""

    code = "SCHEDULE_NOT_FOUND"


class LabelTaken(Conflict):
    """A schedule with the label "{label}" exists already. Choose another label, or change that one."""

    code = "LABEL_TAKEN"
