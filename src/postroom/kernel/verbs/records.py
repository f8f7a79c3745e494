"""Facts kept beside the messages and committed with them, and how far readers of the ledger have come."""

from postroom.errors import InvalidField
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.ledger import Draft
from postroom.kernel.model import Position


def add_record(desk: Desk, command: c.AddRecord) -> None:
    checks.check_name("kind", command.kind, desk.limits)
    checks.check_name("key", command.key, desk.limits)
    data = checks.small_json("data", command.data, desk.limits.record_bytes) or "{}"
    checks.check_text("correlation_id", command.correlation_id, desk.limits)
    checks.check_text("message_id", command.message_id, desk.limits)
    number = desk.tx.insert_record(
        desk.tenant, command.kind, command.key, data, command.correlation_id, command.message_id, desk.now
    )
    desk.tx.append(
        Draft(
            desk.now,
            f"record.{command.kind}",
            desk.tenant,
            None,
            None,
            command.message_id,
            command.correlation_id,
            None,
            desk.actor,
            jsontext.text({"key": command.key, "record": number}),
        )
    )


def set_position(desk: Desk, command: c.SetPosition) -> None:
    """Where a reader stands. Not an event: readers of the ledger would otherwise wake themselves for ever."""
    checks.check_name("name", command.name, desk.limits)
    checks.check_count("seq", command.seq, least=0, most=2**62)
    head = desk.tx.head_seq()
    if command.seq > head:
        raise InvalidField("seq", f"is {command.seq}, but the ledger ends at {head}")
    desk.tx.set_position(Position(name=command.name, seq=command.seq, hold=command.hold, updated_at=desk.now))
