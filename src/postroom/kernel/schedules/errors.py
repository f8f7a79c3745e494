"""What can be wrong with the times of a schedule, as the person who wrote it reads it."""

from postroom.errors import Invalid, NotFound


class InvalidCron(Invalid):
    """ "{cron}" is no cron expression: {problem}."""

    code = "INVALID_CRON"


class NotInFuture(Invalid):
    """{at} is past. Name a time to come."""

    code = "NOT_IN_FUTURE"


class ScheduleNotFound(NotFound):
    """There is no schedule "{schedule}"."""

    code = "SCHEDULE_NOT_FOUND"
