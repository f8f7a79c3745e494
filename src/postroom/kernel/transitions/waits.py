"""Messages that wait for others: the last of those to end well makes them claimable.

A scope in which nobody was ever waited for pays nothing: what is kept of it is remembered with its rules.
"""

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import jsontext
from postroom.kernel.facts import AWAITED_SCOPE, DEPENDENTS, ROOM, WAITING, FactKey
from postroom.kernel.model import AfterFailed, ConsumerMode, NewMessage, Queue
from postroom.kernel.rows import Row
from postroom.kernel.states import OPEN, Change, State
from postroom.kernel.transitions.context import TransitionContext

FAILED = "dependency"


class Wait(msgspec.Struct, frozen=True):
    """What a message still waits for."""

    left: tuple[str, ...]
    after_failed: AfterFailed


def name_dependencies(queue: Queue, message: NewMessage) -> NewMessage:
    """With its metadata naming them, so that who handles it can fetch their results."""
    if queue.settings.consumer_mode is ConsumerMode.BROADCAST:
        raise InvalidField("after", f"is not for {queue.path}, a broadcast queue")
    metadata = {**(message.metadata or {}), "after": message.after}
    return msgspec.structs.replace(message, metadata=metadata)


def begin_wait(ctx: TransitionContext, queue: Queue, message: NewMessage, row: Row) -> None:
    """A new message that is not added yet waits, unless what it waits for has ended already."""
    wanted = list(dict.fromkeys(message.after or ()))
    ctx.session.load(wanted)
    left: list[Row] = []
    for message_id in wanted:
        other = _find(ctx, message_id)
        if other.state in OPEN:
            left.append(other)
        elif other.state != State.COMPLETED and message.after_failed == AfterFailed.DEAD_LETTER:
            row.state, row.finished_at, row.due_at = State.DEAD.value, ctx.now, None
            row.failure_reason, row.failure_kind = _reason(other), FAILED
            row.origin_queue_id = queue.id
            return
    if not left:
        return
    row.state, row.visible_at, row.due_at = State.DELAYED.value, None, row.expires_at
    for scope_id in sorted({other.scope_id for other in left} - ctx.awaited_scopes()):
        ctx.session.remember(AWAITED_SCOPE, str(scope_id), True, ctx.now)
    wait = Wait(tuple(other.id for other in left), AfterFailed(message.after_failed))
    ctx.session.remember(WAITING, row.id, wait, ctx.now)
    for other in left:
        known = ctx.session.fact(DEPENDENTS, other.id)
        dependents = [] if known is None else jsontext.decode(known.data)
        ctx.session.remember(DEPENDENTS, other.id, [*dependents, row.id], ctx.now)


def _find(ctx: TransitionContext, message_id: str) -> Row:
    row = ctx.message(message_id)
    if row is None:
        stored = ctx.session.archived(message_id)
        assert stored is not None, "a message that is not live is archived, or there is none"
        row = stored.row
    return row


def end_waits(ctx: TransitionContext) -> None:
    """Whatever waited for messages that have ended goes on, or ends with them."""
    while ctx.awaited:
        ended, ctx.awaited = list(dict.fromkeys(ctx.awaited)), []
        known = ctx.session.facts([(ROOM, DEPENDENTS, message_id) for message_id in ended])
        if not known:
            continue
        dependents = {fact.key: jsontext.decode(fact.data) for fact in known}
        waiting = {each for ids in dependents.values() for each in ids}
        ctx.session.load([*dependents, *waiting])
        done: list[FactKey] = [(ROOM, DEPENDENTS, message_id) for message_id in dependents]
        for message_id, ids in dependents.items():
            other = ctx.session.row(message_id)
            if other is not None:
                done += [(ROOM, WAITING, each) for each in ids if _end_wait(ctx, other, each)]
        ctx.session.drop_facts(done)


def _end_wait(ctx: TransitionContext, ended: Row, message_id: str) -> bool:
    """Whether the message waits no longer."""
    fact, row = ctx.session.fact(WAITING, message_id), ctx.session.row(message_id)
    if fact is None or row is None or row.state != State.DELAYED or row.visible_at is not None:
        return True  # somebody has ended it, or taken it up, meanwhile
    wait = msgspec.json.decode(fact.data, type=Wait)
    if ended.state != State.COMPLETED and wait.after_failed is AfterFailed.DEAD_LETTER:
        ctx.bury(row, _reason(ended), FAILED)
        return True
    left = tuple(each for each in wait.left if each != ended.id)
    if left:
        ctx.session.remember(WAITING, message_id, Wait(left, wait.after_failed), ctx.now)
        return False
    ctx.move(row, Change.READY, State.PENDING)
    return True


def _reason(ended: Row) -> str:
    return f"message {ended.id}, which it waited for, is {ended.state}"
