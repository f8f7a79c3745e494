"""How long the room keeps what the office and its entrances write beside the messages.

Every kind of record has a rule. State (a session, a default addressee) is the newest record of its key; all
others are facts of a moment, which grow old.
"""

import msgspec

from postroom.kernel.retention import DAY_S, RecordRule, Retention
from postroom.kernel.reviews import answering
from postroom.office import sessions
from postroom.office.guards import holds
from postroom.office.intake import default_addressee
from postroom.office.lanes import lane_signals
from postroom.office.plugins import registry
from postroom.office.turns import rate_limits
from postroom.settings.sections import RetentionSettings as Wanted

PROGRESS = (
    "turn.started",
    "turn.tool",
    "turn.progress",
    "office.started",
    lane_signals.INTERRUPT,
    lane_signals.STEER,
    registry.STOPPED,
)
FACTS = ("turn", answering.RECORD)
# Of things that change under a name, what they said before; the thing itself is a document.
DOCUMENTS = (
    "comment",
    "comment.place",
    "pairing",
    "project",
    "project.prefix",
    "queue_schedule",
    "schedule",
    "schedule.label",
    "task",
)
AUDIT = "audit"
SUPERSEDED_S = 7 * DAY_S


def record_rules(wanted: Wanted) -> tuple[RecordRule, ...]:
    records, progress = _seconds(wanted.records_days), _seconds(wanted.progress_days)
    return (
        *(RecordRule(kind=kind, keep_s=progress) for kind in PROGRESS),
        *(RecordRule(kind=kind, keep_s=records) for kind in (*FACTS, *DOCUMENTS)),
        RecordRule(kind=AUDIT, keep_s=_seconds(wanted.audit_days)),
        RecordRule(kind=sessions.EXCHANGE, keep_s=_seconds(wanted.exchanges_days)),
        RecordRule(kind=sessions.KIND, keep_s=SUPERSEDED_S, state=True, last_s=records),
        # The newest stays: without it, a session that it ended would be taken up again.
        RecordRule(kind=sessions.RESET, keep_s=SUPERSEDED_S, state=True),
        RecordRule(kind=rate_limits.KIND, keep_s=SUPERSEDED_S, state=True, last_s=records),
        RecordRule(kind=default_addressee.KIND, keep_s=SUPERSEDED_S, state=True),
        RecordRule(kind=holds.KIND, keep_s=SUPERSEDED_S, state=True, account=True),
    )


# Without a lake there is no other copy of these: they go only if somebody has said so.
HISTORY = ("messages_days", "ledger_days", "records_days")


def retention(wanted: Wanted, *, lake: bool) -> Retention:
    """The settings as the room's pruner understands them, with a lake or without one."""
    if not lake:
        kept = {name: None for name in HISTORY if name not in wanted.given}
        wanted = msgspec.structs.replace(wanted, **kept)
    return Retention(
        archive_after_s=None if wanted.completed_hours is None else wanted.completed_hours * 3600,
        dead_after_s=_seconds(wanted.dead_days),
        archive_s=_seconds(wanted.messages_days),
        ledger_s=_seconds(wanted.ledger_days),
        records_s=_seconds(wanted.records_days),
        records=record_rules(wanted),
        audit_s=_seconds(wanted.audit_days),
        streams_s=_seconds(wanted.streams_days),
    )


def _seconds(days: float | None) -> float | None:
    return None if days is None else days * DAY_S
