"""Claim: the next messages of a queue, in order, each with a lease and a fencing token."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.model import ConsumerMode, Queue
from postroom.kernel.rows import Row, Stored
from postroom.kernel.transitions import due
from postroom.kernel.transitions.context import TransitionContext


class ClaimedBatch(msgspec.Struct):
    """What a claim got; when nothing, also when time will next change something."""

    messages: list[Stored]
    next_due: int | None = None


Source = tuple[str, tuple[str, ...], str | None]
# A queue and a line of it, who works, until when, and who asked.
Terms = tuple[Queue, int, str, int, str]


class ClaimRun:
    """The claims of one group: rows of a line are fetched once for all of them and saved together."""

    def __init__(self, ctx: TransitionContext, commands: Sequence[c.Claim]) -> None:
        self._ctx = ctx
        self._wanted: defaultdict[Source, int] = defaultdict(int)
        for command in commands:
            self._wanted[_source(command)] += command.limit if isinstance(command.limit, int) else 0
        self._lines: dict[Source, list[tuple[Queue, int]]] = {}
        self._stock: dict[int, list[Stored]] = {}
        self._dry: set[int] = set()
        self._workers: set[str] = set()
        self._nonce = ctx.ids.nonce()
        self._claimed: list[Row] = []
        self._terms: Terms | None = None

    def flush(self) -> None:
        if self._claimed:
            assert self._terms is not None
            rows, self._claimed = self._claimed, []
            queue, _, worker, lease_until, actor = self._terms
            self._ctx.hand_out(queue, rows, actor, worker, lease_until, self._nonce)
            self._ctx.tx.save_claimed(rows)

    def _hand_out(self, terms: "Terms", rows: list[Row]) -> None:
        """Rows that are claimed on the same terms are handed out together."""
        if terms != self._terms:
            self.flush()
            self._terms = terms
        self._claimed += rows

    def add(self, command: c.Claim) -> ClaimedBatch:
        """Nothing to be had is an empty list, whatever the reason: empty, paused, archived, all claimed."""
        ctx = self._ctx
        limit = _limit(ctx, command)
        if command.lease_s is not None:
            checks.check_seconds("lease_s", command.lease_s, least=0.001, most=ctx.limits.lease_s)
        if command.worker not in self._workers:
            checks.check_text("worker", command.worker, ctx.limits)
            self._workers.add(command.worker)
        if command.labels:
            checks.check_labels(dict(command.labels), ctx.limits)
        taken: list[Stored] = []
        for queue, line in self._open_lines(command):
            if len(taken) == limit:
                break
            taken += self._take(queue, line, limit - len(taken), command)
        return ClaimedBatch(taken) if taken else ClaimedBatch(taken, ctx.tx.next_due())

    def _open_lines(self, command: c.Claim) -> list[tuple[Queue, int]]:
        """Where this claim may take from; looked up once for all like claims of the group."""
        source = _source(command)
        lines = self._lines.get(source)
        if lines is None:
            if not command.queues:
                raise InvalidField("queues", "must name at least one queue")
            ctx = self._ctx
            known = [(queue, _line(ctx, queue, command)) for queue in map(ctx.queue, command.queues)]
            lines = self._lines[source] = [place for place in known if ctx.is_open(place[0])]
        return lines

    def _next(self, line: int, count: int, command: c.Claim) -> list[Stored]:
        """The next rows of a line: from stock, or as many as this and all like claims may need."""
        if command.labels:
            # What was fetched for others may hold some of these, so it is fetched anew for them.
            self.flush()
            self._stock.pop(line, None)
            self._dry.discard(line)
            return self._ctx.tx.pending_labelled(line, command.labels, count)
        stock = self._stock.get(line)
        if not stock:
            if line in self._dry:
                return []
            self.flush()
            wanted = max(count, min(self._wanted[_source(command)], self._ctx.limits.claim_batch))
            stock = self._stock[line] = self._ctx.tx.pending(line, wanted)
            if len(stock) < wanted:
                self._dry.add(line)
            stock.reverse()
        found = stock[-count:]
        found.reverse()
        del stock[-count:]
        return found

    def _take(self, queue: Queue, line: int, limit: int, command: c.Claim) -> list[Stored]:
        ctx, now, settings = self._ctx, self._ctx.now, queue.settings
        if settings.concurrency is not None:
            self.flush()
            claimed = ctx.tx.counts(queue.id, max(0, -line)).claimed
            limit = min(limit, settings.concurrency - claimed)
        seconds = command.lease_s if command.lease_s is not None else settings.visibility_timeout_s
        terms = (queue, line, command.worker or command.actor, now + micros(seconds), command.actor)
        taken: list[Stored] = []
        while len(taken) < limit:
            found = self._next(line, limit - len(taken), command)
            if not found:
                break
            living = [stored for stored in found if not _is_over(stored.row, now)]
            if len(living) < len(found):
                self._expire([stored.row for stored in found if _is_over(stored.row, now)])
            self._hand_out(terms, [stored.row for stored in living])
            taken += living
        return taken

    def _expire(self, rows: list[Row]) -> None:
        """What they were to be followed by may change with them, so it is looked at anew."""
        self.flush()
        for row in rows:
            due.expire(self._ctx, row)
        self._stock.clear()
        self._dry.clear()


def _is_over(row: Row, now: int) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def _source(command: c.Claim) -> Source:
    return command.tenant, command.queues, command.subscription


def _limit(ctx: TransitionContext, command: c.Claim) -> int:
    most = ctx.limits.claim_batch
    if command.limit is None:
        return most
    checks.check_count("limit", command.limit, least=1, most=most)
    return command.limit


def _line(ctx: TransitionContext, queue: Queue, command: c.Claim) -> int:
    if queue.settings.consumer_mode is ConsumerMode.BROADCAST:
        if command.subscription is None:
            raise InvalidField("subscription", f"is needed: {queue.path} is a broadcast queue")
        return -ctx.subscription(queue, command.subscription).id
    if command.subscription is not None and len(command.queues) == 1:
        raise InvalidField("subscription", f"is not for {queue.path}, whose consumers compete")
    return queue.id
