"""Dropping what is old: the part of a transaction that only the pruner asks for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from postroom.kernel import jsontext
from postroom.kernel.budgets.model import Budget, fold_accounts
from postroom.kernel.ledger import Folded, unroll
from postroom.kernel.model import DEAD_LETTER, Document
from postroom.kernel.ports import RecordHead
from postroom.kernel.states import State
from postroom.stores.sqlite.documents import count_memo, to_document
from postroom.stores.sqlite.queues import GONE
from postroom.stores.sqlite.statements import SQL, one

if TYPE_CHECKING:
    from postroom.stores.sqlite.transaction import Cache

# What the events of messages that are still there said last, before they are dropped.
_STAND = """
INSERT OR REPLACE INTO standing
SELECT told.id, told.place, told.state, told.attempts FROM (
    SELECT l.message_id AS id, l.scope || '/' || l.queue AS place, json_extract(l.data, '$.state') AS state,
        json_extract(l.data, '$.attempts') AS attempts, max(l.seq)
    FROM ledger l WHERE l.seq <= ? AND l.message_id IS NOT NULL AND l.type LIKE 'message.%'
    GROUP BY l.message_id
) told
WHERE EXISTS (SELECT 1 FROM messages m WHERE m.id = told.id)
    OR EXISTS (SELECT 1 FROM archive a WHERE a.id = told.id)
"""
_UNTOUCHED = """
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE kind = ? AND NOT gone AND (updated_at, tenant, key) > (?, ?, ?) AND updated_at < ?
ORDER BY updated_at, tenant, key LIMIT ?
"""
_GONE = "SELECT tenant, kind, key, version FROM documents WHERE gone AND updated_at < ? LIMIT ?"
# The first so many only: entries come in the order of time, so when these are young, all are.
_AUDIT = """
DELETE FROM audit WHERE seq IN
    (SELECT seq FROM (SELECT seq, created_at FROM audit ORDER BY seq LIMIT ?2) WHERE created_at < ?1)
"""
_OLD_RECORDS = "SELECT id, tenant, key, created_at FROM records WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
_NEWER = "SELECT 1 FROM records WHERE tenant = ? AND kind = ? AND key = ? AND id > ? LIMIT 1"

# Why no table grows for ever. One that is not named here fails a test.
BOUNDED_BY = {
    "meta": "a few fixed names",
    "scopes": "what people make; deleted ones go with their last queue",
    "queues": "what people make; deleted ones go with their last message",
    "figures": "queues, subscribers and states; they go with their queue or subscriber",
    "messages": "the archiver: completed_hours, dead_days",
    "contents": "the archiver, with their messages",
    "archive": "retention_s of the queue, else messages_days",
    "subscriptions": "what people make",
    "seen": "a day",
    "schemas": "what people register; they go with their scope",
    "records": "a rule for each kind: records_days, progress_days, exchanges_days, audit_days",
    "positions": "one for each reader; those that hold nothing go after a year of silence",
    "ledger": "ledger_days, and not before readers that hold have passed",
    "housekeepers": "the roster",
    "leaders": "a day after they ended",
    "memos": "a few for each queue and each kind of record and document",
    "accounts": "90 days untouched; frozen ones only when they are final",
    "reservations": "they end by themselves, and go a week later",
    "settlements": "a week",
    "holds": "a week after they ended",
    "documents": "what people make; dropped ones and dead keys 90 days, streams streams_days",
    "audit": "audit_days",
    "chunks": "streams_days, with their stream",
    "moved_keys": "they go with their message",
    "standing": "it goes with its message",
    "standing_accounts": "it goes with its account, when that event is pruned",
}


class SqlitePruning:
    _db: apsw.Connection
    _cache: "Cache"

    def prunable(self, queue_id: int, ended_before: int, up_to_seq: int | None, limit: int) -> list[str]:
        up_to = 2**62 if up_to_seq is None else up_to_seq
        return [id_ for (id_,) in self._db.execute(SQL["prunable"], (queue_id, ended_before, up_to, limit))]

    def prune_archive(self, message_ids: Sequence[str]) -> int:
        ids = [(id_,) for id_ in message_ids]
        self._db.executemany(SQL["prune_archive"], ids)
        self._db.executemany("DELETE FROM moved_keys WHERE message_id = ?", ids)
        self._db.executemany("DELETE FROM standing WHERE message_id = ?", ids)
        return len(message_ids)

    # the ledger

    def prune_ledger(self, before: int, up_to_seq: int | None, limit: int) -> int:
        first = one(self._db.execute(SQL["chain"], ("anchor",)))[0]
        up_to = min(first + limit, self._cache.head.seq - 1)
        if up_to_seq is not None:
            up_to = min(up_to, up_to_seq)
        last = self._db.execute(SQL["last_prunable_event"], (up_to, before)).fetchone()
        if last is None:
            return 0
        self._db.execute(_STAND, (last[0],))
        self._stand_accounts(last[0])
        self._db.execute(SQL["prune_ledger"], (last[0],))
        dropped = self._db.changes()
        self._db.execute(SQL["set_anchor"], last)
        return dropped

    def _stand_accounts(self, up_to: int) -> None:
        rows = self._db.execute(
            "SELECT * FROM ledger WHERE seq <= ? AND (type LIKE 'account.%' OR type = 'accounts.pruned')",
            (up_to,),
        ).fetchall()
        if not rows:
            return
        before = read_standing_accounts(self._db)
        after = fold_accounts(unroll(rows, b""), dict(before))
        gone = [key for key in before if key not in after]
        changed = [(*key, jsontext.text(kept)) for key, kept in after.items() if kept != before.get(key)]
        self._db.executemany("DELETE FROM standing_accounts WHERE tenant = ? AND name = ?", gone)
        self._db.executemany("INSERT OR REPLACE INTO standing_accounts VALUES (?, ?, ?)", changed)

    def time_of(self, seq: int) -> int:
        found = self._db.execute("SELECT time FROM ledger WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (seq,))
        row = found.fetchone()
        if row is not None:
            return row[0]
        anchor, _, time, _ = one(self._db.execute(SQL["chain"], ("anchor",)))
        return time if seq >= anchor else 0

    # records

    def record_kinds(self) -> list[str]:
        """From one to the next: there are few kinds, and each has many records."""
        kinds: list[str] = []
        last = ""
        while True:
            (found,) = one(self._db.execute("SELECT min(kind) FROM records WHERE kind > ?", (last,)))
            if found is None:
                return kinds
            kinds.append(found)
            last = found

    def old_records(self, kind: str, after: int, before: int, limit: int) -> list[RecordHead]:
        heads = [RecordHead(*row) for row in self._db.execute(_OLD_RECORDS, (kind, after, limit))]
        return [head for head in heads if head.created_at < before]

    def has_newer_record(self, tenant: str, kind: str, key: str, number: int) -> bool:
        return self._db.execute(_NEWER, (tenant, kind, key, number)).fetchone() is not None

    def drop_records(self, numbers: Sequence[int]) -> int:
        (newest,) = one(self._db.execute("SELECT max(id) FROM records"))
        chosen = [(number,) for number in numbers if number != newest]
        self._db.executemany("DELETE FROM records WHERE id = ?", chosen)
        return len(chosen)

    # and the rest

    def prune_seen(self, before: int, limit: int) -> int:
        self._db.execute(
            "DELETE FROM seen WHERE (subscription_id, key) IN"
            " (SELECT subscription_id, key FROM seen WHERE at < ? LIMIT ?)",
            (before, limit),
        )
        return self._db.changes()

    def prune_audit(self, before: int, limit: int) -> int:
        self._db.execute(_AUDIT, (before, limit))
        return self._db.changes()

    def untouched_documents(
        self, kind: str, after: tuple[int, str, str], before: int, limit: int
    ) -> list[tuple[str, Document]]:
        rows = self._db.execute(_UNTOUCHED, (kind, *after, before, limit))
        return [(tenant, to_document(rest)) for tenant, *rest in rows]

    def prune_documents(self, before: int, limit: int) -> int:
        rows: list[tuple[Any, ...]] = self._db.execute(_GONE, (before, limit)).fetchall()
        for tenant, kind, key, version in rows:
            self._db.execute(
                "INSERT INTO memos VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
                (count_memo(tenant, kind), str(version)),
            )
            self._db.execute(
                "DELETE FROM documents WHERE tenant = ? AND kind = ? AND key = ?", (tenant, kind, key)
            )
        return len(rows)

    def prune_places(self, limit: int) -> int:
        rows: list[Any] = self._db.execute(
            "SELECT id, scope_id FROM queues WHERE deleted_at IS NOT NULL ORDER BY id"
        ).fetchall()
        self._prune_figures()
        done = 0
        for queue_id, scope_id in rows:
            if done < limit and not self._is_named(queue_id, scope_id):
                self._cache.places = None
                self._db.execute("DELETE FROM queues WHERE id = ?", (queue_id,))
                self._db.execute("DELETE FROM figures WHERE queue_id = ? AND queue_id > 0", (queue_id,))
                self._db.execute("DELETE FROM memos WHERE name = ?", (f"dead_letters:{queue_id}",))
                done += 1
        if done:
            self._prune_scopes()
        return done

    def _prune_figures(self) -> None:
        """Of subscribers who left."""
        self._db.execute(
            "DELETE FROM figures WHERE subscription_id > 0 AND n = 0"
            " AND subscription_id NOT IN (SELECT id FROM subscriptions)"
        )

    def _is_named(self, queue_id: int, scope_id: int) -> bool:
        """Whether a message lies in this queue, or is a dead letter that came from it."""
        homes = self._db.execute(
            "SELECT id FROM queues WHERE scope_id = ? AND slug = ?", (scope_id, DEAD_LETTER)
        ).fetchall()
        for table in ("messages", "archive"):
            in_it = f"SELECT 1 FROM {table} WHERE queue_id = ? LIMIT 1"  # noqa: S608 - our own tables
            from_it = f"SELECT 1 FROM {table} WHERE queue_id = ? AND origin_queue_id = ? LIMIT 1"  # noqa: S608
            if self._db.execute(in_it, (queue_id,)).fetchone() is not None:
                return True
            if any(self._db.execute(from_it, (home, queue_id)).fetchone() for (home,) in homes):
                return True
        return False

    def _prune_scopes(self) -> None:
        """Not the newest of all: its number must not be given again, since other things are known by it."""
        empty = self._db.execute(
            "SELECT id FROM scopes s WHERE instr(slug, ?) AND id < (SELECT max(id) FROM scopes)"
            " AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.scope_id = s.id)",
            (GONE,),
        ).fetchall()
        self._db.executemany("DELETE FROM schemas WHERE scope_id = ?", empty)
        self._db.executemany("DELETE FROM scopes WHERE id = ?", empty)

    def prune_notes(self, leaders_before: int, positions_before: int, limit: int) -> int:
        self._db.execute("DELETE FROM leaders WHERE until < ?", (leaders_before,))
        dropped = self._db.changes()
        self._db.execute("DELETE FROM positions WHERE NOT hold AND updated_at < ?", (positions_before,))
        return dropped + self._db.changes()


def read_standing(db: apsw.Connection) -> dict[str, Folded]:
    rows = db.execute("SELECT message_id, place, state, attempts FROM standing")
    return {id_: Folded(place, State(state), attempts) for id_, place, state, attempts in rows}


def read_standing_accounts(db: apsw.Connection) -> dict[tuple[str, str], Budget]:
    rows = db.execute("SELECT tenant, name, data FROM standing_accounts")
    return {(tenant, name): msgspec.json.decode(data, type=Budget) for tenant, name, data in rows}
