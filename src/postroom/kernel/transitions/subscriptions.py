"""Subscribers of broadcast queues, each with its own progress, and their memory of what they have seen."""

import msgspec

from postroom.errors import InvalidField, NotEmpty, SlugTaken
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.model import ConsumerMode, Subscription
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext, told
from postroom.kernel.transitions.publish import deliveries_of


def subscribe(ctx: TransitionContext, command: c.Subscribe) -> Subscription:
    """From now on, or (`earliest`) from the oldest message that is still kept and has not expired."""
    checks.check_name("name", command.name, ctx.limits)
    queue = ctx.queue(command.queue)
    if queue.settings.consumer_mode is not ConsumerMode.BROADCAST:
        raise InvalidField("queue", f"{queue.path} is not a broadcast queue; its consumers compete")
    for known in ctx.tx.subscriptions(queue.id):
        if known.name == command.name:
            if command.exist_ok:
                return known
            raise SlugTaken(kind="subscription", slug=command.name)
    subscription = Subscription(
        id=0, queue_id=queue.id, queue=queue.path, name=command.name, created_at=ctx.now
    )
    subscription = msgspec.structs.replace(subscription, id=ctx.tx.insert_subscription(subscription))
    ctx.record(
        "subscription.created",
        scope=queue.scope,
        queue=queue.slug,
        data={"name": command.name, "earliest": command.earliest},
    )
    if command.earliest:
        rows, contents = [], []
        for original in ctx.tx.originals(queue.id):
            if original.row.expires_at is None or original.row.expires_at > ctx.now:
                rows += deliveries_of(ctx, original.row, [subscription])
                contents.append(original.content)
        ctx.admit(rows, queue, [told(row, parent=row.parent_id) for row in rows])
        ctx.tx.insert(rows, contents)
    return subscription


def unsubscribe(ctx: TransitionContext, command: c.Unsubscribe) -> None:
    """What the subscriber had not finished is cancelled; claimed deliveries must be settled first."""
    queue = ctx.queue(command.queue)
    subscription = ctx.subscription(queue, command.name)
    counts = ctx.tx.counts(queue.id, subscription.id)
    if counts.claimed:
        raise NotEmpty(kind="subscription", slug=command.name, count=counts.claimed)
    for row in ctx.tx.on_line(-subscription.id):
        ctx.move(row, Change.CANCELLED, State.CANCELLED, reason="unsubscribed")
        ctx.tx.save([row])
        ctx.delivery_ended(row)
    ctx.tx.delete_subscription(subscription.id)
    ctx.record("subscription.deleted", scope=queue.scope, queue=queue.slug, data={"name": command.name})


def check_seen(ctx: TransitionContext, command: c.CheckSeen) -> bool:
    checks.check_name("key", command.key, ctx.limits)
    queue = ctx.queue(command.queue)
    subscription = ctx.subscription(queue, command.name)
    return ctx.tx.seen(subscription.id, command.key, ctx.now)
