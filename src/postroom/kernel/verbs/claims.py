"""Claim: the next messages of a queue, in order, each with a lease and a fencing token."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.model import ConsumerMode, Queue
from postroom.kernel.rows import Row, Stored
from postroom.kernel.states import Change, State


class Taken(msgspec.Struct):
    """What a claim got; when nothing, also when time will next change something."""

    messages: list[Stored]
    next_due: int | None = None


Source = tuple[str, tuple[str, ...], str | None]


class ClaimRun:
    """The claims of one group: rows of a line are fetched once for all of them and saved together."""

    def __init__(self, desk: Desk, commands: Sequence[c.Claim]) -> None:
        self._desk = desk
        self._wanted: defaultdict[Source, int] = defaultdict(int)
        for command in commands:
            self._wanted[_source(command)] += command.limit if isinstance(command.limit, int) else 0
        self._lines: dict[Source, list[tuple[Queue, int]]] = {}
        self._stock: dict[int, list[Stored]] = {}
        self._dry: set[int] = set()
        self._workers: set[str] = set()
        self._nonce = desk.ids.nonce()
        self._claimed: list[Row] = []

    def flush(self) -> None:
        if self._claimed:
            self._desk.tx.save(self._claimed)
            self._claimed = []

    def add(self, command: c.Claim) -> Taken:
        """Nothing to be had is an empty list, whatever the reason: empty, paused, archived, all claimed."""
        desk = self._desk
        limit = _limit(desk, command)
        if command.lease_s is not None:
            checks.check_seconds("lease_s", command.lease_s, least=0.001, most=desk.limits.lease_s)
        if command.worker not in self._workers:
            checks.check_text("worker", command.worker, desk.limits)
            self._workers.add(command.worker)
        taken: list[Stored] = []
        for queue, line in self._open_lines(command):
            if len(taken) == limit:
                break
            taken += self._take(queue, line, limit - len(taken), command)
        return Taken(taken) if taken else Taken(taken, desk.tx.next_due())

    def _open_lines(self, command: c.Claim) -> list[tuple[Queue, int]]:
        """Where this claim may take from; looked up once for all like claims of the group."""
        source = _source(command)
        lines = self._lines.get(source)
        if lines is None:
            if not command.queues:
                raise InvalidField("queues", "must name at least one queue")
            desk = self._desk
            known = [(queue, _line(desk, queue, command)) for queue in map(desk.queue, command.queues)]
            lines = self._lines[source] = [place for place in known if desk.is_open(place[0])]
        return lines

    def _next(self, line: int, count: int, command: c.Claim) -> list[Stored]:
        """The next rows of a line: from stock, or as many as this and all like claims may need."""
        stock = self._stock.get(line)
        if not stock:
            if line in self._dry:
                return []
            self.flush()
            wanted = max(count, min(self._wanted[_source(command)], self._desk.limits.claim_batch))
            stock = self._stock[line] = self._desk.tx.pending(line, wanted)
            if len(stock) < wanted:
                self._dry.add(line)
            stock.reverse()
        found = stock[-count:]
        found.reverse()
        del stock[-count:]
        return found

    def _take(self, queue: Queue, line: int, limit: int, command: c.Claim) -> list[Stored]:
        desk, now, settings = self._desk, self._desk.now, queue.settings
        if settings.concurrency is not None:
            claimed = desk.tx.counts(queue.id, max(0, -line)).claimed
            limit = min(limit, settings.concurrency - claimed)
        seconds = command.lease_s if command.lease_s is not None else settings.visibility_timeout_s
        lease_until = now + micros(seconds)
        worker, nonce = command.worker or command.actor, self._nonce
        taken: list[Stored] = []
        while len(taken) < limit:
            found = self._next(line, limit - len(taken), command)
            if not found:
                break
            for stored in found:
                row = stored.row
                if row.expires_at is not None and row.expires_at <= now:
                    desk.move(row, Change.EXPIRED, State.EXPIRED)
                    desk.tx.save([row])
                    desk.delivery_ended(row)
                    continue
                row.attempts += 1
                row.claims += 1
                row.token = f"{row.claims}-{nonce}"
                row.claimed_by = worker
                row.claimed_at = now
                row.lease_until = lease_until
                row.visible_at = None
                desk.move(row, Change.CLAIMED, State.CLAIMED, worker=worker, lease_until=lease_until)
                self._claimed.append(row)
                taken.append(stored)
        return taken


def _source(command: c.Claim) -> Source:
    return command.tenant, command.queues, command.subscription


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
    if command.subscription is not None and len(command.queues) == 1:
        raise InvalidField("subscription", f"is not for {queue.path}, whose consumers compete")
    return queue.id
