"""The pruner's work: one bounded step over everything that may be dropped.

Nothing goes that a reader with a hold on the ledger has not yet passed, nothing that open work needs, and
nothing that a fold of the kept ledger would miss.
"""

from collections.abc import Callable

import msgspec

from postroom.clock import micros
from postroom.kernel import jsontext, streams
from postroom.kernel.access import keys
from postroom.kernel.erasure.subject import ERASED_IDS
from postroom.kernel.erasure.subject import KIND as ERASURE
from postroom.kernel.housekeeping.retention import DAY_S, RecordRule
from postroom.kernel.model import Document
from postroom.kernel.ports import RecordHead
from postroom.kernel.transitions.context import TransitionContext

AT_ONCE = 1000
# A leadership that ended, and a reader that holds nothing and did not come back.
LEADERS_S = DAY_S
POSITIONS_S = 365 * DAY_S

Filed = tuple[str, Document]
# When a document was written, its tenant and its key.
Place = tuple[int, str, str]


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
    holds = [position.seq for position in ctx.tx.positions() if position.hold]
    if not holds:
        return PruneBounds(limit)
    return PruneBounds(limit, min(holds), ctx.tx.time_of(min(holds)))


def _ago(ctx: TransitionContext, seconds: float) -> int:
    return ctx.now - micros(seconds)


def _messages(ctx: TransitionContext, bounds: PruneBounds) -> int:
    tx, keep, done = ctx.tx, ctx.env.retention, 0
    for queue in tx.all_queues(deleted=True):
        own = queue.settings.retention_s
        seconds = keep.archive_s if own is None else own
        if seconds is None or done >= bounds.limit:
            continue
        ids = tx.prunable(queue.id, _ago(ctx, seconds), bounds.up_to, bounds.limit - done)
        if ids:
            tx.prune_archive(ids)
            place = {"tenant": queue.tenant, "scope": queue.scope, "queue": queue.slug}
            ctx.record("archive.pruned", data={"messages": len(ids)}, **place)
            done += len(ids)
    return done


def _records(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Those of each kind in turn; where a look at many found little, the next goes on behind them."""
    done = 0
    for kind in ctx.tx.record_kinds():
        rule = ctx.env.retention.rule_of(kind)
        if rule.keep_s is not None and done < bounds.limit:
            done += _of_kind(ctx, rule, bounds, bounds.limit - done)
    return done


def _of_kind(ctx: TransitionContext, rule: RecordRule, bounds: PruneBounds, limit: int) -> int:
    assert rule.keep_s is not None, "a kind that stays for ever is not looked at"
    tx, memo = ctx.tx, f"records:{rule.kind}"
    before = bounds.within(_ago(ctx, rule.keep_s))
    after = int(tx.memo(memo) or 0)
    looked = tx.old_records(rule.kind, after, before, limit)
    old = [head for head in looked if not rule.state or _is_past(ctx, rule, head, bounds)]
    dropped = tx.drop_records([head.number for head in old])
    further = looked[-1].number if len(looked) == limit and rule.state else 0
    if further != after:
        tx.set_memo(memo, str(further))
    return dropped


def _is_past(ctx: TransitionContext, rule: RecordRule, head: RecordHead, bounds: PruneBounds) -> bool:
    """A newer one has taken its place, or nobody has needed the newest for long."""
    if ctx.tx.has_newer_record(head.tenant, rule.kind, head.key, head.number):
        return True
    if rule.account:
        return ctx.tx.account(head.tenant, head.key, ctx.now) is None
    return rule.last_s is not None and head.created_at < bounds.within(_ago(ctx, rule.last_s))


def _seen(ctx: TransitionContext, bounds: PruneBounds) -> int:
    return ctx.tx.prune_seen(_ago(ctx, ctx.env.retention.seen_s), bounds.limit)


def _settled(ctx: TransitionContext, bounds: PruneBounds) -> int:
    return ctx.tx.prune_settled(_ago(ctx, ctx.env.retention.settled_s), bounds.limit)


def _accounts(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Their names are told, so that a fold of the ledger forgets them too."""
    seconds = ctx.env.retention.accounts_s
    if seconds is None:
        return 0
    gone = ctx.tx.prune_accounts(_ago(ctx, seconds), bounds.limit)
    if gone:
        ctx.record("accounts.pruned", data={"accounts": gone})
    return len(gone)


def _audit(ctx: TransitionContext, bounds: PruneBounds) -> int:
    seconds = ctx.env.retention.audit_s
    return 0 if seconds is None else ctx.tx.prune_audit(_ago(ctx, seconds), bounds.limit)


def _streams(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """With their parts. One that is too long for a message can be read here only, and not for longer."""
    old = _untouched(ctx, streams.KIND, ctx.env.retention.streams_s, bounds)
    for _, document in old:
        ctx.tx.delete_chunks(document.data["id"])
    return _drop(ctx, streams.KIND, old)


def _keys(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """API keys that open nothing any more."""
    seconds = ctx.env.retention.keys_s
    if seconds is None:
        return 0
    before = _ago(ctx, seconds)
    old = _untouched(ctx, keys.KIND, seconds, bounds)
    dead = [each for each in old if not keys.read(each[1].data).alive(before)]
    old = _untouched(ctx, keys.HASHES, seconds, bounds)
    useless = [each for each in old if (each[1].data.get("until") or ctx.now) < before]
    return _drop(ctx, keys.KIND, dead) + _drop(ctx, keys.HASHES, useless)


def _erasures(ctx: TransitionContext, bounds: PruneBounds) -> int:
    """Reports of what was erased go with the audit; the proof stays in the ledger."""
    seconds = ctx.env.retention.audit_s
    kinds = (ERASURE, ERASED_IDS)
    return sum(_drop(ctx, kind, _untouched(ctx, kind, seconds, bounds)) for kind in kinds)


def _untouched(ctx: TransitionContext, kind: str, seconds: float | None, bounds: PruneBounds) -> list[Filed]:
    """Where a look at many found little to drop, the next goes on behind them."""
    if seconds is None:
        return []
    memo = f"documents:{kind}"
    known = ctx.tx.memo(memo) or "0"
    after = msgspec.json.decode(known, type=Place | int)
    if isinstance(after, int):
        after = (after, "", "")
    found = ctx.tx.untouched_documents(kind, after, _ago(ctx, seconds), bounds.limit)
    further: Place | int = 0
    if len(found) == bounds.limit:
        tenant, last = found[-1]
        # Many may have been written in one moment, so the moment alone does not tell how far it came.
        further = (last.updated_at, tenant, last.key)
    if (text := jsontext.text(further)) != known:
        ctx.tx.set_memo(memo, text)
    return found


def _drop(ctx: TransitionContext, kind: str, old: list[Filed]) -> int:
    for tenant, document in old:
        ctx.tx.save_document(tenant, document.gone_at(ctx.now))
    if old:
        ctx.record("documents.pruned", data={"kind": kind, "documents": len(old)})
    return len(old)


def _gone(ctx: TransitionContext, bounds: PruneBounds) -> int:
    seconds = ctx.env.retention.gone_s
    return 0 if seconds is None else ctx.tx.prune_documents(_ago(ctx, seconds), bounds.limit)


def _places(ctx: TransitionContext, bounds: PruneBounds) -> int:
    return ctx.tx.prune_places(bounds.limit)


def _notes(ctx: TransitionContext, bounds: PruneBounds) -> int:
    return ctx.tx.prune_notes(_ago(ctx, LEADERS_S), _ago(ctx, POSITIONS_S), bounds.limit)


def _ledger(ctx: TransitionContext, bounds: PruneBounds) -> int:
    seconds = ctx.env.retention.ledger_s
    if seconds is None:
        return 0
    dropped = ctx.tx.prune_ledger(_ago(ctx, seconds), bounds.up_to, bounds.limit)
    if dropped:
        ctx.record("ledger.pruned", data={"events": dropped})
    return dropped


# Each with the most that one step does of it.
_WORK: dict[Callable[[TransitionContext, PruneBounds], int], int] = {
    _messages: AT_ONCE,
    _records: AT_ONCE,
    _seen: AT_ONCE,
    _settled: AT_ONCE,
    _accounts: 200,
    _audit: AT_ONCE,
    _streams: 20,
    _keys: AT_ONCE,
    _erasures: AT_ONCE,
    _gone: AT_ONCE,
    _places: AT_ONCE,
    _notes: AT_ONCE,
    _ledger: AT_ONCE,
}
