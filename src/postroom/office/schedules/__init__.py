"""Schedules: messages that are sent at times, each time exactly once."""

from postroom.office.schedules.book import Schedules
from postroom.office.schedules.clockwork import Clockwork
from postroom.office.schedules.cron import Cron, house_zone
from postroom.office.schedules.model import Missed, Schedule

__all__ = ["Clockwork", "Cron", "Missed", "Schedule", "Schedules", "house_zone"]
