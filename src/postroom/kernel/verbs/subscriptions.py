"""Subscribers of broadcast queues, each with its own progress, and their memory of what they have seen."""

import msgspec

from postroom.errors import InvalidField, NotEmpty, SlugTaken
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk, told
from postroom.kernel.model import ConsumerMode, Subscription
from postroom.kernel.states import Change, State
from postroom.kernel.verbs.publish import deliveries_of


def subscribe(desk: Desk, command: c.Subscribe) -> Subscription:
    """From now on, or (`earliest`) from the oldest message that is still kept and has not expired."""
    checks.check_name("name", command.name, desk.limits)
    queue = desk.queue(command.queue)
    if queue.settings.consumer_mode is not ConsumerMode.BROADCAST:
        raise InvalidField("queue", f"{queue.path} is not a broadcast queue; its consumers compete")
    for known in desk.tx.subscriptions(queue.id):
        if known.name == command.name:
            if command.exist_ok:
                return known
            raise SlugTaken(kind="subscription", slug=command.name)
    subscription = Subscription(
        id=0, queue_id=queue.id, queue=queue.path, name=command.name, created_at=desk.now
    )
    subscription = msgspec.structs.replace(subscription, id=desk.tx.insert_subscription(subscription))
    desk.record(
        "subscription.created",
        scope=queue.scope,
        queue=queue.slug,
        data={"name": command.name, "earliest": command.earliest},
    )
    if command.earliest:
        rows, contents = [], []
        for original in desk.tx.originals(queue.id):
            if original.row.expires_at is None or original.row.expires_at > desk.now:
                rows += deliveries_of(desk, original.row, [subscription])
                contents.append(original.content)
        desk.admit(rows, queue, [told(row, parent=row.parent_id) for row in rows])
        desk.tx.insert(rows, contents)
    return subscription


def unsubscribe(desk: Desk, command: c.Unsubscribe) -> None:
    """What the subscriber had not finished is cancelled; claimed deliveries must be settled first."""
    queue = desk.queue(command.queue)
    subscription = desk.subscription(queue, command.name)
    counts = desk.tx.counts(queue.id, subscription.id)
    if counts.claimed:
        raise NotEmpty(kind="subscription", slug=command.name, count=counts.claimed)
    for row in desk.tx.on_line(-subscription.id):
        desk.move(row, Change.CANCELLED, State.CANCELLED, reason="unsubscribed")
        desk.tx.save([row])
        desk.delivery_ended(row)
    desk.tx.delete_subscription(subscription.id)
    desk.record("subscription.deleted", scope=queue.scope, queue=queue.slug, data={"name": command.name})


def check_seen(desk: Desk, command: c.CheckSeen) -> bool:
    checks.check_name("key", command.key, desk.limits)
    queue = desk.queue(command.queue)
    subscription = desk.subscription(queue, command.name)
    return desk.tx.seen(subscription.id, command.key, desk.now)
