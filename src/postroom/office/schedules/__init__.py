"""Schedules: messages that are sent at times, each time exactly once."""

from postroom.kernel.schedules.cron import Cron, house_zone
from postroom.office.schedules.model import Missed, Schedule
from postroom.office.schedules.scheduler import Scheduler
from postroom.office.schedules.schedules import Schedules

__all__ = ["Cron", "Missed", "Schedule", "Scheduler", "Schedules", "house_zone"]
