"""The pruner's work: one bounded step over everything that may be dropped.

Nothing goes that a reader with a hold on the ledger has not yet passed, nothing that open work needs, and
nothing that a fold of the kept ledger would miss.
"""

from collections.abc import Callable

import msgspec

from postroom.clock import micros
from postroom.kernel import jsontext, streams
from postroom.kernel.access import keys
from postroom.kernel.desk import Desk
from postroom.kernel.erasure import ERASED_IDS
from postroom.kernel.erasure import KIND as ERASURE
from postroom.kernel.housekeeping.retention import DAY_S, RecordRule
from postroom.kernel.model import Document
from postroom.kernel.store import RecordHead

AT_ONCE = 1000
# A leadership that ended, and a reader that holds nothing and did not come back.
LEADERS_S = DAY_S
POSITIONS_S = 365 * DAY_S

Filed = tuple[str, Document]
# When a document was written, its tenant and its key.
Place = tuple[int, str, str]


class Bounds(msgspec.Struct, frozen=True):
    """How much at once, and how far readers that hold have come: to an event, and to its time."""

    limit: int
    up_to: int | None = None
    before: int | None = None

    def within(self, time: int) -> int:
        """A record has no number in the ledger: a reader has passed it when it is older than its event."""
        return time if self.before is None else min(time, self.before)


def prune(desk: Desk, limit: int) -> tuple[int, bool]:
    """How many things went, and whether there may be more."""
    bounds = _bounds(desk, limit)
    done, more = 0, False
    for work, most in _WORK.items():
        at_once = min(limit, most)
        count = work(desk, msgspec.structs.replace(bounds, limit=at_once))
        done += count
        more = more or count >= at_once
    return done, more


def _bounds(desk: Desk, limit: int) -> Bounds:
    holds = [position.seq for position in desk.tx.positions() if position.hold]
    if not holds:
        return Bounds(limit)
    return Bounds(limit, min(holds), desk.tx.time_of(min(holds)))


def _ago(desk: Desk, seconds: float) -> int:
    return desk.now - micros(seconds)


def _messages(desk: Desk, bounds: Bounds) -> int:
    tx, keep, done = desk.tx, desk.kit.retention, 0
    for queue in tx.all_queues(deleted=True):
        own = queue.settings.retention_s
        seconds = keep.archive_s if own is None else own
        if seconds is None or done >= bounds.limit:
            continue
        ids = tx.prunable(queue.id, _ago(desk, seconds), bounds.up_to, bounds.limit - done)
        if ids:
            tx.prune_archive(ids)
            place = {"tenant": queue.tenant, "scope": queue.scope, "queue": queue.slug}
            desk.record("archive.pruned", data={"messages": len(ids)}, **place)
            done += len(ids)
    return done


def _records(desk: Desk, bounds: Bounds) -> int:
    """Those of each kind in turn; where a look at many found little, the next goes on behind them."""
    done = 0
    for kind in desk.tx.record_kinds():
        rule = desk.kit.retention.rule_of(kind)
        if rule.keep_s is not None and done < bounds.limit:
            done += _of_kind(desk, rule, bounds, bounds.limit - done)
    return done


def _of_kind(desk: Desk, rule: RecordRule, bounds: Bounds, limit: int) -> int:
    assert rule.keep_s is not None, "a kind that stays for ever is not looked at"
    tx, memo = desk.tx, f"records:{rule.kind}"
    before = bounds.within(_ago(desk, rule.keep_s))
    after = int(tx.memo(memo) or 0)
    looked = tx.old_records(rule.kind, after, before, limit)
    old = [head for head in looked if not rule.state or _is_past(desk, rule, head, bounds)]
    dropped = tx.drop_records([head.number for head in old])
    further = looked[-1].number if len(looked) == limit and rule.state else 0
    if further != after:
        tx.set_memo(memo, str(further))
    return dropped


def _is_past(desk: Desk, rule: RecordRule, head: RecordHead, bounds: Bounds) -> bool:
    """A newer one has taken its place, or nobody has needed the newest for long."""
    if desk.tx.has_newer_record(head.tenant, rule.kind, head.key, head.number):
        return True
    if rule.account:
        return desk.tx.account(head.tenant, head.key, desk.now) is None
    return rule.last_s is not None and head.created_at < bounds.within(_ago(desk, rule.last_s))


def _seen(desk: Desk, bounds: Bounds) -> int:
    return desk.tx.prune_seen(_ago(desk, desk.kit.retention.seen_s), bounds.limit)


def _settled(desk: Desk, bounds: Bounds) -> int:
    return desk.tx.prune_settled(_ago(desk, desk.kit.retention.settled_s), bounds.limit)


def _accounts(desk: Desk, bounds: Bounds) -> int:
    """Their names are told, so that a fold of the ledger forgets them too."""
    seconds = desk.kit.retention.accounts_s
    if seconds is None:
        return 0
    gone = desk.tx.prune_accounts(_ago(desk, seconds), bounds.limit)
    if gone:
        desk.record("accounts.pruned", data={"accounts": gone})
    return len(gone)


def _audit(desk: Desk, bounds: Bounds) -> int:
    seconds = desk.kit.retention.audit_s
    return 0 if seconds is None else desk.tx.prune_audit(_ago(desk, seconds), bounds.limit)


def _streams(desk: Desk, bounds: Bounds) -> int:
    """With their parts. One that is too long for a message can be read here only, and not for longer."""
    old = _untouched(desk, streams.KIND, desk.kit.retention.streams_s, bounds)
    for _, document in old:
        desk.tx.delete_chunks(document.data["id"])
    return _drop(desk, streams.KIND, old)


def _keys(desk: Desk, bounds: Bounds) -> int:
    """API keys that open nothing any more."""
    seconds = desk.kit.retention.keys_s
    if seconds is None:
        return 0
    before = _ago(desk, seconds)
    old = _untouched(desk, keys.KIND, seconds, bounds)
    dead = [each for each in old if not keys.read(each[1].data).alive(before)]
    old = _untouched(desk, keys.HASHES, seconds, bounds)
    useless = [each for each in old if (each[1].data.get("until") or desk.now) < before]
    return _drop(desk, keys.KIND, dead) + _drop(desk, keys.HASHES, useless)


def _erasures(desk: Desk, bounds: Bounds) -> int:
    """Reports of what was erased go with the audit; the proof stays in the ledger."""
    seconds = desk.kit.retention.audit_s
    kinds = (ERASURE, ERASED_IDS)
    return sum(_drop(desk, kind, _untouched(desk, kind, seconds, bounds)) for kind in kinds)


def _untouched(desk: Desk, kind: str, seconds: float | None, bounds: Bounds) -> list[Filed]:
    """Where a look at many found little to drop, the next goes on behind them."""
    if seconds is None:
        return []
    memo = f"documents:{kind}"
    known = desk.tx.memo(memo) or "0"
    after = msgspec.json.decode(known, type=Place | int)
    if isinstance(after, int):
        after = (after, "", "")
    found = desk.tx.untouched_documents(kind, after, _ago(desk, seconds), bounds.limit)
    further: Place | int = 0
    if len(found) == bounds.limit:
        tenant, last = found[-1]
        # Many may have been written in one moment, so the moment alone does not tell how far it came.
        further = (last.updated_at, tenant, last.key)
    if (text := jsontext.text(further)) != known:
        desk.tx.set_memo(memo, text)
    return found


def _drop(desk: Desk, kind: str, old: list[Filed]) -> int:
    for tenant, document in old:
        desk.tx.save_document(tenant, document.gone_at(desk.now))
    if old:
        desk.record("documents.pruned", data={"kind": kind, "documents": len(old)})
    return len(old)


def _gone(desk: Desk, bounds: Bounds) -> int:
    seconds = desk.kit.retention.gone_s
    return 0 if seconds is None else desk.tx.prune_documents(_ago(desk, seconds), bounds.limit)


def _places(desk: Desk, bounds: Bounds) -> int:
    return desk.tx.prune_places(bounds.limit)


def _notes(desk: Desk, bounds: Bounds) -> int:
    return desk.tx.prune_notes(_ago(desk, LEADERS_S), _ago(desk, POSITIONS_S), bounds.limit)


def _ledger(desk: Desk, bounds: Bounds) -> int:
    seconds = desk.kit.retention.ledger_s
    if seconds is None:
        return 0
    dropped = desk.tx.prune_ledger(_ago(desk, seconds), bounds.up_to, bounds.limit)
    if dropped:
        desk.record("ledger.pruned", data={"events": dropped})
    return dropped


# Each with the most that one step does of it.
_WORK: dict[Callable[[Desk, Bounds], int], int] = {
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
