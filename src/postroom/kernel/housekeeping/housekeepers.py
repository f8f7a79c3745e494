"""The housekeepers: how often each runs, and for what."""

import msgspec

from postroom.kernel.retention import RecordRule, Retention

__all__ = ["ROSTER", "Housekeeper", "RecordRule", "Retention"]


class Housekeeper(msgspec.Struct, frozen=True):
    name: str
    every_s: float
    work: str


VISIBILITY = "visibility_timeout_enforcer"
EXPIRY = "expiry_enforcer"
ARCHIVER = "message_archiver"
MONITOR = "dead_letter_monitor"
AGING = "priority_aging_worker"
PRUNER = "pruner"
SCHEDULER = "queue_scheduler"
DIGESTER = "audit_digester"

ROSTER = (
    Housekeeper(VISIBILITY, 1, "gives back claims whose lease ran out and wakes delayed messages"),
    Housekeeper(SCHEDULER, 1, "publishes what schedules of queues have come due"),
    Housekeeper(EXPIRY, 60, "ends waiting messages whose time to live or deadline has passed"),
    Housekeeper(ARCHIVER, 300, "moves messages that ended a while ago to the archive"),
    Housekeeper(MONITOR, 60, "warns when dead letters grow"),
    Housekeeper(AGING, 300, "raises the priority of messages that have waited long"),
    Housekeeper(PRUNER, 300, "drops what is older than its retention and held by no reader"),
    Housekeeper(DIGESTER, 300, "notes digests of audit entries in the ledger"),
)
