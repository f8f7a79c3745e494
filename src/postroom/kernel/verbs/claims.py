"""Claim: the next messages of a queue, in order, each with a lease and a fencing token."""

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.model import ConsumerMode, Queue
from postroom.kernel.rows import Stored
from postroom.kernel.states import Change, State


class Taken(msgspec.Struct):
    """What a claim got; when nothing, also when time will next change something."""

    messages: list[Stored]
    next_due: int | None = None


def claim(desk: Desk, command: c.Claim) -> Taken:
    """Nothing to be had is an empty list, whatever the reason: empty, paused, archived, or full of claims."""
    limit = _limit(desk, command)
    if command.lease_s is not None:
        checks.check_seconds("lease_s", command.lease_s, least=0.001, most=desk.limits.lease_s)
    checks.check_text("worker", command.worker, desk.limits)
    if not command.queues:
        raise InvalidField("queues", "must name at least one queue")
    lines = [(queue, _line(desk, queue, command)) for queue in map(desk.queue, command.queues)]
    taken: list[Stored] = []
    for queue, line in lines:
        if len(taken) == limit:
            break
        if desk.is_open(queue):
            taken += _take(desk, queue, line, limit - len(taken), command)
    return Taken(taken) if taken else Taken(taken, desk.tx.next_due())


def _limit(desk: Desk, command: c.Claim) -> int:
    most = desk.limits.claim_batch
    if command.limit is None:
        return most
    checks.check_count("limit", command.limit, least=1, most=most)
    return command.limit


def _line(desk: Desk, queue: Queue, command: c.Claim) -> int:
    if queue.settings.consumer_mode is ConsumerMode.BROADCAST:
        if command.subscription is None:
            raise InvalidField("subscription", f"is needed: {queue.path} is a broadcast queue")
        return -desk.subscription(queue, command.subscription).id
    if command.subscription is not None:
        raise InvalidField("subscription", f"is not for {queue.path}, whose consumers compete")
    return queue.id


def _take(desk: Desk, queue: Queue, line: int, limit: int, command: c.Claim) -> list[Stored]:
    tx, now, settings = desk.tx, desk.now, queue.settings
    if settings.concurrency is not None:
        claimed = tx.counts(queue.id, max(0, -line)).claimed
        limit = min(limit, settings.concurrency - claimed)
    seconds = command.lease_s if command.lease_s is not None else settings.visibility_timeout_s
    lease_until = now + micros(seconds)
    taken: list[Stored] = []
    while len(taken) < limit:
        found = tx.pending(line, limit - len(taken))
        if not found:
            break
        nonce = desk.ids.nonce()
        batch: list[Stored] = []
        for stored in found:
            row = stored.row
            if row.expires_at is not None and row.expires_at <= now:
                desk.move(row, Change.EXPIRED, State.EXPIRED)
                tx.save([row])
                desk.delivery_ended(row)
                continue
            row.attempts += 1
            row.claims += 1
            row.token = f"{row.claims}-{nonce}"
            row.claimed_by = command.worker or command.actor
            row.claimed_at = now
            row.lease_until = lease_until
            row.visible_at = None
            desk.move(row, Change.CLAIMED, State.CLAIMED, worker=row.claimed_by, lease_until=lease_until)
            batch.append(stored)
        tx.save([stored.row for stored in batch])
        taken += batch
    return taken
