"""Facts kept beside the messages and committed with them, and how far readers of the ledger have come."""

from postroom.errors import InvalidField, PositionMoved
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.digests import RECORD_DIGEST, record_digest
from postroom.kernel.facts import POSITION, to_position
from postroom.kernel.transitions.context import TransitionContext


def add_record(ctx: TransitionContext, command: c.AddRecord) -> None:
    checks.check_name("kind", command.kind, ctx.limits)
    checks.check_name("key", command.key, ctx.limits)
    data = checks.small_json("data", command.data, ctx.limits.record_bytes) or "{}"
    checks.check_text("correlation_id", command.correlation_id, ctx.limits)
    checks.check_text("message_id", command.message_id, ctx.limits)
    about = {"correlation_id": command.correlation_id, "message_id": command.message_id}
    number = ctx.session.add_record(ctx.tenant, command.kind, command.key, data, ctx.now, **about)
    noted = {"key": command.key, "record": number, RECORD_DIGEST: record_digest(number, data)}
    ctx.emit(f"record.{command.kind}", data=noted, **about)


def set_position(ctx: TransitionContext, command: c.SetPosition) -> None:
    """Where a reader stands. Not an event: readers of the ledger would otherwise wake themselves for ever."""
    checks.check_name("name", command.name, ctx.limits)
    checks.check_count("seq", command.seq, least=0, most=2**62)
    head = ctx.session.tx.chain().head.seq
    if command.seq > head:
        raise InvalidField("seq", f"is {command.seq}, but the ledger ends at {head}")
    if command.expect is not None:
        known = ctx.session.fact(POSITION, command.name)
        stands = 0 if known is None else to_position(known).seq
        if stands != command.expect:
            raise PositionMoved(name=command.name, seq=stands)
    data = {"seq": command.seq, "hold": command.hold}
    ctx.session.remember(POSITION, command.name, data, ctx.now)
