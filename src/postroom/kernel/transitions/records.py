"""Facts kept beside the messages and committed with them, and how far readers of the ledger have come."""

from postroom.errors import InvalidField, PositionMoved
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.ledger import EventDraft
from postroom.kernel.model import Position
from postroom.kernel.transitions.context import TransitionContext


def add_record(ctx: TransitionContext, command: c.AddRecord) -> None:
    checks.check_name("kind", command.kind, ctx.limits)
    checks.check_name("key", command.key, ctx.limits)
    data = checks.small_json("data", command.data, ctx.limits.record_bytes) or "{}"
    checks.check_text("correlation_id", command.correlation_id, ctx.limits)
    checks.check_text("message_id", command.message_id, ctx.limits)
    number = ctx.tx.insert_record(
        ctx.tenant, command.kind, command.key, data, command.correlation_id, command.message_id, ctx.now
    )
    ctx.tx.append(
        EventDraft(
            ctx.now,
            f"record.{command.kind}",
            ctx.tenant,
            None,
            None,
            command.message_id,
            command.correlation_id,
            None,
            ctx.actor,
            jsontext.text({"key": command.key, "record": number}),
        )
    )


def set_position(ctx: TransitionContext, command: c.SetPosition) -> None:
    """Where a reader stands. Not an event: readers of the ledger would otherwise wake themselves for ever."""
    checks.check_name("name", command.name, ctx.limits)
    checks.check_count("seq", command.seq, least=0, most=2**62)
    head = ctx.tx.head_seq()
    if command.seq > head:
        raise InvalidField("seq", f"is {command.seq}, but the ledger ends at {head}")
    if command.expect is not None:
        stands = next((each.seq for each in ctx.tx.positions() if each.name == command.name), 0)
        if stands != command.expect:
            raise PositionMoved(name=command.name, seq=stands)
    ctx.tx.set_position(Position(name=command.name, seq=command.seq, hold=command.hold, updated_at=ctx.now))
