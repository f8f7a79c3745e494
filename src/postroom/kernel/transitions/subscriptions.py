"""Subscribers of broadcast queues, each with its own progress, and their memory of what they have seen."""

from postroom.errors import InvalidField, NotEmpty, SlugTaken
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.facts import ROOM, SEEN
from postroom.kernel.model import ConsumerMode, Queue, Subscription
from postroom.kernel.ports import FactFilter, RowFilter
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.drafts import delivery_data, draft_deliveries


def subscribe(ctx: TransitionContext, command: c.Subscribe) -> Subscription:
    """From now on, or (`earliest`) from the oldest message that is still kept and has not expired."""
    checks.check_name("name", command.name, ctx.limits)
    queue = ctx.queue(command.queue)
    if queue.settings.consumer_mode is not ConsumerMode.BROADCAST:
        raise InvalidField("queue", f"{queue.path} is not a broadcast queue; its consumers compete")
    for known in ctx.session.subscriptions(queue.id):
        if known.name == command.name:
            if command.exist_ok:
                return known
            raise SlugTaken(kind="subscription", slug=command.name)
    subscription = Subscription(
        id=0, queue_id=queue.id, queue=queue.path, name=command.name, created_at=ctx.now
    )
    subscription = ctx.session.save_subscription(subscription)
    ctx.emit(
        "subscription.created",
        scope=queue.scope,
        queue=queue.slug,
        data={"name": command.name, "earliest": command.earliest},
    )
    if command.earliest:
        rows, contents = [], []
        for original in ctx.session.page(_kept(queue), archived=False):
            if original.row.expires_at is None or original.row.expires_at > ctx.now:
                rows += draft_deliveries(ctx, original.row, [subscription])
                contents.append(original.content)
        ctx.admit(rows, queue, list(map(delivery_data, rows, contents)))
        ctx.session.add(rows, contents)
    return subscription


def _kept(queue: Queue) -> RowFilter:
    """Broadcast messages of a queue, without their deliveries, that were not given up."""
    return RowFilter(queue_ids=(queue.id,), kind="original", states=(State.PENDING, State.COMPLETED))


def unsubscribe(ctx: TransitionContext, command: c.Unsubscribe) -> None:
    """What the subscriber had not finished is cancelled; claimed deliveries must be settled first."""
    queue = ctx.queue(command.queue)
    subscription = ctx.subscription(queue, command.name)
    counts = ctx.session.counts(queue.id, subscription.id)
    if counts.claimed:
        raise NotEmpty(kind="subscription", slug=command.name, count=counts.claimed)
    waiting = (State.PENDING, State.DELAYED)
    wanted = RowFilter(queue_ids=(queue.id,), line=-subscription.id, states=waiting)
    for row in ctx.session.find(wanted):
        ctx.move(row, Change.CANCELLED, State.CANCELLED, reason="unsubscribed")
        ctx.end_delivery(row)
    drop_subscription(ctx, subscription)
    ctx.emit("subscription.deleted", scope=queue.scope, queue=queue.slug, data={"name": command.name})


def drop_subscription(ctx: TransitionContext, subscription: Subscription) -> None:
    """With what it has seen."""
    seen = ctx.session.scan(FactFilter(kind=SEEN, prefix=f"{subscription.id}/"))
    ctx.session.drop_facts([(ROOM, SEEN, fact.key) for fact in seen])
    ctx.session.save_subscription(subscription, deleted=True)


def check_seen(ctx: TransitionContext, command: c.CheckSeen) -> bool:
    """Whether the key was there already; it is there afterwards."""
    checks.check_name("key", command.key, ctx.limits)
    queue = ctx.queue(command.queue)
    key = f"{ctx.subscription(queue, command.name).id}/{command.key}"
    if ctx.session.fact(SEEN, key) is not None:
        return True
    ctx.session.remember(SEEN, key, True, ctx.now)
    return False
