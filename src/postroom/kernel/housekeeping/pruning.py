"""The pruner's work: one bounded step over everything that may be dropped.

Nothing goes that a reader with a hold on the ledger has not yet passed, nothing that open work needs, and
nothing that a fold of the kept ledger would miss.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from postroom.clock import micros
from postroom.kernel import checks, jsontext, streams
from postroom.kernel import commands as c
from postroom.kernel.access import keys
from postroom.kernel.erasure.subject import ERASED_IDS
from postroom.kernel.erasure.subject import KIND as ERASURE
from postroom.kernel.facts import (
    LEADER,
    MEMO,
    MOVED_KEY,
    POSITION,
    RATE,
    ROOM,
    SCHEMA,
    SEEN,
    Fact,
    changes_memo,
    schema_prefix,
    to_document,
    to_leadership,
    to_position,
)
from postroom.kernel.model import Queue
from postroom.kernel.moved_keys import MARK
from postroom.kernel.ports import FactFilter, QueueFilter, RecordFilter, ScopeFilter, StoredRecord
from postroom.kernel.retention import DAY_S, RecordRule
from postroom.kernel.time_steps import NAME as TIME_STEPS
from postroom.kernel.time_steps import read_steps
from postroom.kernel.transitions.context import TransitionContext

AT_ONCE = 1000
QUEUES_AT_ONCE = 1000
QUEUES_MEMO = "pruned_queues"
# A leadership that ended, and a reader that holds nothing and did not come back.
LEADERS_S = DAY_S
POSITIONS_S = 365 * DAY_S
RATES_S = 2 * DAY_S

# When a fact was written, its tenant and its key.
Age = tuple[int, str, str]


class PruneBounds(msgspec.Struct, frozen=True):
    """How much at once, and how far readers that hold have come: to an event, and to its time."""

    limit: int
    up_to: int | None = None
    before: int | None = None

    def within(self, time: int) -> int:
        """A record has no number in the ledger: a reader has passed it when it is older than its event."""
        return time if self.before is None else min(time, self.before)


def prune(ctx: TransitionContext, limit: int) -> tuple[int, bool]:
    """How many things went, and whether there may be more."""
    bounds = _bounds(ctx, limit)
    done, more = 0, False
    for work, most in _WORK.items():
        at_once = min(limit, most)
        count = work(ctx, msgspec.structs.replace(bounds, limit=at_once))
        done += count
        more = more or count >= at_once
    return done, more


def _bounds(ctx: TransitionContext, limit: int) -> PruneBounds:
    positions = map(to_position, ctx.session.scan(FactFilter(kind=POSITION)))
    up_to = min((position.seq for position in positions if position.hold), default=None)
    return PruneBounds(limit) if up_to is None else PruneBounds(limit, up_to, _time_of(ctx, up_to))


def _time_of(ctx: TransitionContext, seq: int) -> int:
    """The time of an event, or to which time was set back after it; of one that is pruned, that of the last
    which is; 0 before the first."""
    anchor = ctx.session.tx.chain().anchor
    if seq <= anchor.seq:
        return anchor.time if seq == anchor.seq else 0
    [event] = ctx.session.tx.events(seq - 1, 1)
    steps = read_steps(ctx.session.fact(MEMO, TIME_STEPS))
    return min([event.time, *(step.to for step in steps if seq < step.seq)])


def _ago(ctx: TransitionContext, seconds: float) -> int:
    """By the clock, when the ledger's time is ahead of it: nothing goes before it is due by both."""
    clock = ctx.env.clock
    return (ctx.now if clock is None else min(ctx.now, clock.now())) - micros(seconds)


def _messages(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Some queues in each step, and the next ones with the next."""
    every = ctx.env.retention.archive_s
    after, done = int(_memo(ctx, QUEUES_MEMO) or 0), 0
    wanted = QueueFilter(sort="retention" if every is None else "any", deleted=True, after=(0, after))
    queues = ctx.session.tx.queues(wanted, QUEUES_AT_ONCE)
    by_retention: dict[float, list[Queue]] = {}
    for queue in queues:
        own = queue.settings.retention_s
        seconds = every if own is None else own
        assert seconds is not None, "others were not asked for"
        by_retention.setdefault(seconds, []).append(queue)
    for seconds, alike in by_retention.items():
        if done < bounds.limit:
            done += _prune_queues(ctx, alike, _ago(ctx, seconds), bounds.up_to, bounds.limit - done)
    further = queues[-1].id if len(queues) == QUEUES_AT_ONCE else 0
    if further != after and done < bounds.limit:
        ctx.session.remember(MEMO, QUEUES_MEMO, further, ctx.now)
    return done


def _prune_queues(
    ctx: TransitionContext, queues: list[Queue], before: int, up_to: int | None, limit: int
) -> int:
    known = {queue.id: queue for queue in queues}
    pruned = ctx.session.direct.prune_messages(list(known), before, up_to, limit)
    ctx.session.drop_facts(
        [
            (ROOM, MOVED_KEY, each.idempotency_key)
            for each in pruned
            if each.idempotency_key is not None and MARK in each.idempotency_key
        ]
    )
    for queue_id, count in Counter(each.queue_id for each in pruned).items():
        queue = known[queue_id]
        about = {"tenant": queue.tenant, "scope": queue.scope, "queue": queue.slug}
        ctx.emit("archive.pruned", data={"messages": count}, **about)
    return len(pruned)


def prune_history(ctx: TransitionContext, command: c.PruneHistory) -> int:
    """Whatever the retention says: somebody else keeps what is dropped."""
    checks.check_seconds("keep_s", command.keep_s, least=0, most=100 * checks.YEAR_S)
    bounds = PruneBounds(command.limit, command.up_to)
    if command.what == "events":
        return _prune_events(ctx, command.keep_s, bounds)
    done = after = 0
    while done < command.limit:
        wanted = QueueFilter(sort="any", deleted=True, after=(0, after))
        queues = ctx.session.tx.queues(wanted, QUEUES_AT_ONCE)
        if not queues:
            break
        before = _ago(ctx, command.keep_s)
        done += _prune_queues(ctx, queues, before, command.up_to, command.limit - done)
        after = queues[-1].id
    return done


def _records(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Those of each kind in turn; where a look at many found little, the next goes on behind them."""
    done, kind = 0, ""
    # From one kind to the next: there are few, and each has many records.
    while found := ctx.session.tx.records(RecordFilter(after_kind=kind), 1):
        kind = found[0].kind
        rule = ctx.env.retention.rule_of(kind)
        if rule.keep_s is not None and done < bounds.limit:
            done += _records_of_kind(ctx, rule, bounds, bounds.limit - done)
    return done


def _records_of_kind(ctx: TransitionContext, rule: RecordRule, bounds: PruneBounds, limit: int) -> int:
    assert rule.keep_s is not None, "a kind that stays for ever is not looked at"
    memo = f"records:{rule.kind}"
    before = bounds.within(_ago(ctx, rule.keep_s))
    after = int(_memo(ctx, memo) or 0)
    found = ctx.session.tx.records(RecordFilter(kind=rule.kind, after=after), limit)
    looked = [record for record in found if record.created_at < before]
    old = _past(ctx, rule, looked, bounds) if rule.state else looked
    dropped = ctx.session.direct.drop_records([record.number for record in old]) if old else 0
    further = looked[-1].number if len(looked) == limit and rule.state else 0
    if further != after:
        ctx.session.remember(MEMO, memo, further, ctx.now)
    return dropped


def _past(
    ctx: TransitionContext, rule: RecordRule, records: list[StoredRecord], bounds: PruneBounds
) -> list[StoredRecord]:
    """Those in whose place there is a newer one, or of which nobody has needed the newest for long."""
    superseded = ctx.session.tx.superseded([record.number for record in records])
    if rule.account:
        for tenant in {record.tenant for record in records}:
            names = {record.key for record in records if record.tenant == tenant}
            ctx.session.load_budgets(tenant, names)

    def is_past(record: StoredRecord) -> bool:
        if record.number in superseded:
            return True
        if rule.account:
            return ctx.session.budget(record.tenant, record.key) is None
        return rule.last_s is not None and record.created_at < bounds.within(_ago(ctx, rule.last_s))

    return [record for record in records if is_past(record)]


def _seen(ctx: TransitionContext, bounds: PruneBounds) -> int:
    return _drop_old(ctx, SEEN, _ago(ctx, ctx.env.retention.seen_s), bounds.limit)


def _rates(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """What was not used for longer than any period is full again, as what is not there."""
    return _drop_old(ctx, RATE, _ago(ctx, RATES_S), bounds.limit)


def _drop_old(ctx: TransitionContext, kind: str, before: int, limit: int) -> int:
    """Facts of the room itself that nobody changed since."""
    old = ctx.session.scan(FactFilter(kind=kind, before=before), limit)
    ctx.session.drop_facts([(fact.tenant, fact.kind, fact.key) for fact in old])
    return len(old)


def _budgets(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Names of budgets are told, so that a fold of the ledger forgets them too."""
    keep = ctx.env.retention
    unused = None if keep.accounts_s is None else _ago(ctx, keep.accounts_s)
    dropped, gone = ctx.session.direct.prune_budgets(unused, _ago(ctx, keep.settled_s), bounds.limit)
    if gone:
        ctx.emit("accounts.pruned", data={"accounts": gone})
    return max(dropped, len(gone))


def _audit(ctx: TransitionContext, bounds: PruneBounds) -> int:
    seconds = ctx.env.retention.audit_s
    return 0 if seconds is None else ctx.session.direct.prune_audit(_ago(ctx, seconds), bounds.limit)


def _streams(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """With their parts. One that is too long for a message can be read here only, and not for longer."""
    old = _untouched(ctx, streams.KIND, ctx.env.retention.streams_s, bounds)
    if old:
        ctx.session.direct.drop_chunks([jsontext.decode(fact.data)["id"] for fact in old])
    return _drop(ctx, streams.KIND, old)


def _keys(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """API keys that open nothing any more."""
    seconds = ctx.env.retention.keys_s
    if seconds is None:
        return 0
    before = _ago(ctx, seconds)
    old = _untouched(ctx, keys.KIND, seconds, bounds)
    dead = [fact for fact in old if not keys.read(jsontext.decode(fact.data)).alive(before)]
    old = _untouched(ctx, keys.HASHES, seconds, bounds)
    useless = [fact for fact in old if (jsontext.decode(fact.data).get("until") or ctx.now) < before]
    return _drop(ctx, keys.KIND, dead) + _drop(ctx, keys.HASHES, useless)


def _erasures(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Reports of what was erased go with the audit; the proof stays in the ledger."""
    seconds = ctx.env.retention.audit_s
    kinds = (ERASURE, ERASED_IDS)
    return sum(_drop(ctx, kind, _untouched(ctx, kind, seconds, bounds)) for kind in kinds)


def _memo(ctx: TransitionContext, name: str) -> Any:
    """A small note of the pruner between its runs."""
    found = ctx.session.fact(MEMO, name)
    return None if found is None else jsontext.decode(found.data)


def _untouched(ctx: TransitionContext, kind: str, seconds: float | None, bounds: PruneBounds) -> list[Fact]:
    """Where a look at many found little to drop, the next goes on behind them."""
    if seconds is None:
        return []
    memo = f"documents:{kind}"
    known = _memo(ctx, memo) or 0
    after: Age = tuple(known) if isinstance(known, list) else (known, "", "")
    wanted = FactFilter(kind=kind, before=_ago(ctx, seconds), after_age=after)
    found = ctx.session.scan(wanted, bounds.limit)
    further: Age | int = 0
    if len(found) == bounds.limit:
        # Many may have been written in one moment, so the moment alone does not tell how far it came.
        further = (found[-1].updated_at, found[-1].tenant, found[-1].key)
    if jsontext.text(further) != jsontext.text(known):
        ctx.session.remember(MEMO, memo, further, ctx.now)
    return found


def _drop(ctx: TransitionContext, kind: str, old: list[Fact]) -> int:
    for fact in old:
        ctx.session.put_document(fact.tenant, to_document(fact).gone_at(ctx.now))
    if old:
        ctx.emit("documents.pruned", data={"kind": kind, "documents": len(old)})
    return len(old)


def _gone(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Documents that are gone since long are forgotten; how often they changed is still counted."""
    seconds = ctx.env.retention.gone_s
    if seconds is None:
        return 0
    found = ctx.session.scan(FactFilter(gone=True, before=_ago(ctx, seconds)), bounds.limit)
    changes: Counter[str] = Counter()
    for fact in found:
        changes[changes_memo(fact.tenant, fact.kind)] += fact.version
    for memo, count in changes.items():
        ctx.session.remember(MEMO, memo, int(_memo(ctx, memo) or 0) + count, ctx.now)
    ctx.session.drop_facts([(fact.tenant, fact.kind, fact.key) for fact in found])
    return len(found)


def _deleted_queues(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """With what is remembered of their dead letters."""
    pruned = ctx.session.prune_queues(bounds.limit)
    ctx.session.drop_facts([(ROOM, MEMO, f"dead_letters:{queue.id}") for queue in pruned])
    for scope_id in {queue.scope_id for queue in pruned}:
        # Also those of a scope that stays would have no queue to ask for them.
        if not ctx.session.tx.scopes(ScopeFilter(ids=(scope_id,)), 1):
            schemas = ctx.session.scan(FactFilter(kind=SCHEMA, prefix=schema_prefix(scope_id)))
            ctx.session.drop_facts([(ROOM, SCHEMA, fact.key) for fact in schemas])
    return len(pruned)


def _leaders(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Leaderships that ended."""
    old = ctx.session.scan(FactFilter(kind=LEADER, before=_ago(ctx, LEADERS_S)), bounds.limit)
    ended = [fact for fact in old if to_leadership(fact.data).until < _ago(ctx, LEADERS_S)]
    ctx.session.drop_facts([(ROOM, LEADER, fact.key) for fact in ended])
    return len(ended)


def _positions(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Of readers that hold nothing and did not come back."""
    old = ctx.session.scan(FactFilter(kind=POSITION, before=_ago(ctx, POSITIONS_S)), bounds.limit)
    left = [fact for fact in old if not to_position(fact).hold]
    ctx.session.drop_facts([(ROOM, POSITION, fact.key) for fact in left])
    return len(left)


def _ledger(ctx: TransitionContext, bounds: PruneBounds) -> int:
    seconds = ctx.env.retention.ledger_s
    return 0 if seconds is None else _prune_events(ctx, seconds, bounds)


def _prune_events(ctx: TransitionContext, seconds: float, bounds: PruneBounds) -> int:
    dropped = ctx.session.direct.prune_ledger(_ago(ctx, seconds), bounds.up_to, bounds.limit)
    if dropped:
        ctx.emit("ledger.pruned", data={"events": dropped})
    return dropped


# Each with the most that one step does of it.
_WORK: dict[Callable[[TransitionContext, PruneBounds], int], int] = {
    _messages: AT_ONCE,
    _records: AT_ONCE,
    _seen: AT_ONCE,
    _rates: AT_ONCE,
    _budgets: 200,
    _audit: AT_ONCE,
    _streams: 20,
    _keys: AT_ONCE,
    _erasures: AT_ONCE,
    _gone: AT_ONCE,
    _deleted_queues: AT_ONCE,
    _leaders: AT_ONCE,
    _positions: AT_ONCE,
    _ledger: AT_ONCE,
}
