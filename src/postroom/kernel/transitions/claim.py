"""Claim: the next messages of a queue, in order, each with a lease and a fencing token."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.model import ConsumerMode, Queue
from postroom.kernel.rows import Row, Stored
from postroom.kernel.states import State
from postroom.kernel.transitions import due
from postroom.kernel.transitions.claim_rates import MOST_DEFERRED, ClaimRate
from postroom.kernel.transitions.context import TransitionContext, earlier


class ClaimedBatch(msgspec.Struct):
    """What a claim got; when nothing, also when time will next change something."""

    messages: list[Stored]
    next_due: int | None = None


Source = tuple[str, tuple[str, ...], str | None]
Line = tuple[Queue, int]
# A line, who works, until when, and who asked.
Terms = tuple[int, str, int, str]


class ClaimRun:
    """The claims of one group: rows are fetched once for all that take from the same lines."""

    def __init__(self, ctx: TransitionContext, commands: Sequence[c.Claim]) -> None:
        self._ctx = ctx
        self._wanted: defaultdict[Source, int] = defaultdict(int)
        for command in commands:
            self._wanted[_source(command)] += command.limit if isinstance(command.limit, int) else 0
        self._lines: dict[Any, list[Line]] = {}
        self._stock: dict[tuple[int, ...], list[Stored]] = {}
        self._dry: set[tuple[int, ...]] = set()
        self._workers: set[str] = set()
        self._nonce = ctx.ids.nonce()
        self._claimed: list[Row] = []
        self._terms: tuple[Queue, Terms] | None = None
        # The last claim, if one like it only takes the next of a stock, and that stock.
        self._last: c.Claim | None = None
        self._last_stock: list[Stored] = []
        # When a rate lets the next one go.
        self._next_at: int | None = None

    def end(self) -> None:
        """Rows that are claimed on the same terms are handed out together."""
        if self._claimed:
            assert self._terms is not None
            rows, self._claimed = self._claimed, []
            queue, (_, worker, lease_until, actor) = self._terms
            self._ctx.hand_out(queue, rows, actor, worker, lease_until, self._nonce)

    def add(self, command: c.Claim) -> ClaimedBatch:
        """Nothing to be had is an empty list, whatever the reason: empty, paused, archived, all claimed."""
        if self._last is not None and self._is_like(self._last, command):
            stored = self._last_stock.pop()
            self._claimed.append(stored.row)
            return ClaimedBatch([stored])
        ctx = self._ctx
        limit = _limit(ctx, command)
        if command.lease_s is not None:
            checks.check_seconds("lease_s", command.lease_s, least=0.001, most=ctx.limits.lease_s)
        if command.worker not in self._workers:
            checks.check_text("worker", command.worker, ctx.limits)
            self._workers.add(command.worker)
        if command.ids:
            _check_ids(ctx, command.ids)
        if command.labels:
            checks.check_labels(dict(command.labels), ctx.limits)
        self._next_at = self._last = None
        taken: list[Stored] = []
        open_lines = self._open_lines(command)
        for lines in _together(open_lines):
            if len(taken) < limit:
                taken += self._take(lines, limit - len(taken), command)
        if taken:
            if limit == len(open_lines) == 1 and not (command.ids or command.labels):
                self._remember(command, open_lines[0], taken[0].row)
            return ClaimedBatch(taken)
        return ClaimedBatch(taken, earlier(ctx.session.due(0, 0).next_at, self._next_at))

    def _remember(self, command: c.Claim, line: Line, row: Row) -> None:
        if row.expires_at is None and not _is_limited(line):
            self._last, self._last_stock = command, self._stock[(line[1],)]

    def _is_like(self, last: c.Claim, command: c.Claim) -> bool:
        """Also in what a comparison would not tell: whether a number is one."""
        stock = self._last_stock
        return (
            command == last
            and command.limit is last.limit
            and command.lease_s is last.lease_s
            and bool(stock)
            and stock[-1].row.expires_at is None
        )

    def _open_lines(self, command: c.Claim) -> list[Line]:
        """Where this claim may take from; looked up once for all like claims."""
        # Of single queues it is remembered; lists of them could be put together in any number of ways.
        notes = self._ctx.session.directory.notes if len(command.queues) == 1 else self._lines
        key = (ClaimRun, *_source(command))
        lines = notes.get(key)
        if lines is None:
            if not command.queues:
                raise InvalidField("queues", "must name at least one queue")
            ctx = self._ctx
            known = [(queue, _line(ctx, queue, command)) for queue in map(ctx.queue, command.queues)]
            lines = notes[key] = [line for line in known if ctx.is_open(line[0])]
        return lines

    def _take(self, lines: list[Line], limit: int, command: c.Claim) -> list[Stored]:
        """From one line, or from several without limits of their own."""
        ctx, now = self._ctx, self._ctx.now
        queue, line = lines[0]
        numbers = (line,) if len(lines) == 1 else tuple(dict.fromkeys(line for _, line in lines))
        if queue.settings.concurrency is not None:
            self.end()
            claimed = ctx.session.counts(queue.id, max(0, -line)).claimed
            limit = min(limit, queue.settings.concurrency - claimed)
        rate = None
        if queue.settings.rate_limit is not None:
            self.end()
            rate = ClaimRate(ctx, queue, line)
            if rate.label is None:
                limit = self._limit_by(rate, limit)
        worker, taken = command.worker or command.actor, []
        while len(taken) < limit:
            found = self._next(numbers, limit - len(taken), command)
            if not found:
                break
            rows = [stored.row for stored in found]
            over = [row for row in rows if row.expires_at is not None and row.expires_at <= now]
            if over:
                self._expire(over)
                # What ends with them, a review perhaps, may have changed others too.
                found = [stored for stored in found if stored.row.state == State.PENDING]
                rows = [stored.row for stored in found]
            if rate is not None and rate.label is not None:
                self.end()
                found = rate.admit(found)
                rows = [stored.row for stored in found]
            if len(lines) == 1:
                self._hand_out(queue, line, worker, command, rows)
            else:
                queues = {line: queue for queue, line in lines}
                for line, group in groupby(rows, key=_line_of):
                    self._hand_out(queues[line], line, worker, command, group)
            taken += found
            if rate is not None and rate.deferred >= MOST_DEFERRED:
                break
        if rate is not None:
            if rate.label is None:
                rate.spend(len(taken))
            rate.save()
        return taken

    def _limit_by(self, rate: ClaimRate, limit: int) -> int:
        free = rate.free()
        if not free:
            self._next_at = earlier(self._next_at, rate.next_at())
        return min(limit, free)

    def _hand_out(self, queue: Queue, line: int, worker: str, command: c.Claim, rows: Iterable[Row]) -> None:
        ctx = self._ctx
        seconds = queue.settings.visibility_timeout_s if command.lease_s is None else command.lease_s
        until = ctx.now + micros(seconds)
        for row in rows:
            end = until if row.expires_at is None else due.lease_end(ctx, row, until)
            self._add_claimed(queue, (line, worker, end, command.actor), row)

    def _add_claimed(self, queue: Queue, terms: Terms, row: Row) -> None:
        if self._terms is None or terms != self._terms[1]:
            self.end()
            self._terms = (queue, terms)
        self._claimed.append(row)

    def _next(self, lines: tuple[int, ...], count: int, command: c.Claim) -> list[Stored]:
        """The next rows of these lines: from stock, or as many as this and all like claims may need."""
        if command.ids:
            self._forget(lines)
            return self._named(lines, count, command.ids)
        if command.labels:
            # What was fetched for others may hold some of these, so it is fetched anew for them.
            self._forget(lines)
            return self._ctx.session.ready(lines, count, command.labels)
        stock = self._stock.get(lines)
        if not stock:
            if lines in self._dry:
                return []
            self._forget(lines)
            wanted = max(count, min(self._wanted[_source(command)], self._ctx.limits.claim_batch))
            stock = self._ctx.session.ready(lines, wanted)
            if len(stock) < wanted:
                self._dry.add(lines)
            stock.reverse()
            self._stock[lines] = stock
        found = stock[-count:]
        found.reverse()
        del stock[-count:]
        return found

    def _named(self, lines: tuple[int, ...], count: int, ids: tuple[str, ...]) -> list[Stored]:
        session = self._ctx.session
        session.load(ids)
        rows = [row for each in dict.fromkeys(ids) if (row := session.row(each)) is not None]
        waiting = [row for row in rows if row.state == State.PENDING and row.line in lines]
        return [Stored(row, session.content(row)) for row in waiting[:count]]

    def _forget(self, lines: tuple[int, ...]) -> None:
        """What is in stock of these lines is still to be had by others."""
        self.end()
        self._last = None
        for other in [other for other in self._stock if not set(other).isdisjoint(lines)]:
            del self._stock[other]
            self._dry.discard(other)

    def _expire(self, rows: list[Row]) -> None:
        """What they were to be followed by may change with them, so it is looked at anew."""
        self.end()
        for row in rows:
            due.expire(self._ctx, row)
        self._stock.clear()
        self._dry.clear()
        self._last = None


def _together(lines: list[Line]) -> Iterator[list[Line]]:
    """Lines one after the other; those whose queues have no limit of their own are asked together."""
    if len(lines) == 1:
        yield lines
        return
    for limited, group in groupby(lines, key=_is_limited):
        if limited:
            yield from ([line] for line in group)
        else:
            yield list(group)


def _is_limited(line: Line) -> bool:
    settings = line[0].settings
    return settings.concurrency is not None or settings.rate_limit is not None


def _line_of(row: Row) -> int:
    return row.line


def _source(command: c.Claim) -> Source:
    return command.tenant, command.queues, command.subscription


def _limit(ctx: TransitionContext, command: c.Claim) -> int:
    most = ctx.limits.claim_batch
    if command.limit is None:
        return most
    checks.check_count("limit", command.limit, least=1, most=most)
    return command.limit


def _check_ids(ctx: TransitionContext, ids: Sequence[str]) -> None:
    most = ctx.limits.claim_batch
    if len(ids) > most or not all(map(checks.is_text, ids)):
        raise InvalidField("ids", f"must be ids of messages, at most {most}")


def _line(ctx: TransitionContext, queue: Queue, command: c.Claim) -> int:
    if queue.settings.consumer_mode is ConsumerMode.BROADCAST:
        if command.subscription is None:
            raise InvalidField("subscription", f"is needed: {queue.path} is a broadcast queue")
        return -ctx.subscription(queue, command.subscription).id
    if command.subscription is not None and len(command.queues) == 1:
        raise InvalidField("subscription", f"is not for {queue.path}, whose consumers compete")
    return queue.id
