"""The audit and parts of streams in SQLite, and the rare changes of messages that rules and erasure make."""

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from postroom.kernel import jsontext
from postroom.kernel.ledger import Event, unroll
from postroom.kernel.model import Document
from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS, Content, Row, Stored
from postroom.kernel.service_ports import ALL_DOCUMENTS, AuditEntry, AuditFilter, Chunk
from postroom.stores.sqlite.documents import read_documents
from postroom.stores.sqlite.listing import LABELLED, typed
from postroom.stores.sqlite.statements import MUTABLE, SQL, one

_WIDTH = len(ROW_FIELDS)
_AUDIT = ", ".join(AuditEntry.__struct_fields__)
_AUDIT_MARKS = ", ".join("?" * len(AuditEntry.__struct_fields__))
_ADD_AUDIT = f"INSERT INTO audit ({_AUDIT}) VALUES ({_AUDIT_MARKS})"  # noqa: S608 - names of columns
_CONTENT = ", ".join(f"{name} = ?" for name in CONTENT_FIELDS)
_MOVED = ("queue_id", "line", "origin_queue_id", "scope_id", "message_type", "hop", "idempotency_key")
_REROUTE = f"UPDATE messages SET {', '.join(f'{name} = ?' for name in (*MUTABLE, *_MOVED))} WHERE seq = ?"  # noqa: S608 - names of columns
_ROW = ", ".join(f"m.{name}" for name in ROW_FIELDS)
_LIVE = ", ".join(f"c.{name}" for name in CONTENT_FIELDS)
_KEPT = ", ".join(f"m.{name}" for name in CONTENT_FIELDS)
_WHOSE = "m.tenant = ?1 AND (?2 IS NULL OR m.scope_id = ?2) AND m.seq > ?3"
_ERASABLE = (
    f"SELECT {_ROW}, {_LIVE} FROM messages m CROSS JOIN contents c ON c.seq = m.seq WHERE {_WHOSE}"  # noqa: S608 - names of columns
    f" UNION ALL SELECT {_ROW}, {_KEPT} FROM archive m WHERE {_WHOSE} ORDER BY seq LIMIT ?4"
)
_astuple = msgspec.structs.astuple


class SqliteServiceLookups:
    """Finding; the same in a transaction and for a reader."""

    _db: apsw.Connection

    def documents(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
        return read_documents(self._db, tenant, kind, prefix, after, limit)

    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]:
        rows = self._db.execute(
            "SELECT number, data FROM chunks WHERE stream_id = ? AND number > ? ORDER BY number LIMIT ?",
            (stream_id, after, limit),
        )
        return [Chunk(number, data) for number, data in rows]


class RuleCache:
    """What the owner of the file remembers of documents: rules are asked for at every message."""

    def __init__(self) -> None:
        self.ruled: frozenset[int] | None = None
        self.moved: bool | None = None
        self.rules: dict[int, list[Document]] = {}

    def forget(self) -> None:
        self.ruled = None
        self.rules = {}


class SqliteServiceWrites(SqliteServiceLookups):
    """Writing, as part of a transaction."""

    _drawer: RuleCache

    def ruled_scopes(self) -> frozenset[int]:
        if self._drawer.ruled is None:
            rows = self._db.execute("SELECT key FROM documents WHERE kind = 'rule' AND NOT gone")
            numbers = (key.partition("/")[0] for (key,) in rows)
            self._drawer.ruled = frozenset(int(number) for number in numbers if number.isdecimal())
        return self._drawer.ruled

    def rules_of(self, tenant: str, scope_id: int) -> Sequence[Document]:
        found = self._drawer.rules.get(scope_id)
        if found is None:
            found = self.documents(tenant, "rule", f"{scope_id}/", "", ALL_DOCUMENTS)
            self._drawer.rules[scope_id] = found
        return found

    def forget_rules(self) -> None:
        self._drawer.forget()

    def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        self._db.executemany(_ADD_AUDIT, map(_astuple, entries))

    def add_chunk(self, stream_id: str, chunk: Chunk) -> bool:
        self._db.execute(
            "INSERT OR IGNORE INTO chunks VALUES (?, ?, ?)", (stream_id, chunk.number, chunk.data)
        )
        return self._db.changes() > 0

    def delete_chunks(self, stream_id: str) -> None:
        self._db.execute("DELETE FROM chunks WHERE stream_id = ?", (stream_id,))

    def pending_labelled(self, line: int, labels: Sequence[tuple[str, Any]], limit: int) -> list[Stored]:
        sql = SQL["pending"].replace(" ORDER BY", f" AND {LABELLED}" * len(labels) + " ORDER BY")
        bound = [value for name, wanted in labels for value in (name, *typed(wanted))]
        return [_stored(row) for row in self._db.execute(sql, (line, *bound, limit))]

    def reroute(self, row: Row) -> None:
        self._db.execute(_REROUTE, (*(getattr(row, name) for name in (*MUTABLE, *_MOVED)), row.seq))

    def keep_key(self, queue_id: int, idempotency_key: str, message_id: str) -> None:
        self._drawer.moved = True
        self._db.execute(
            "INSERT OR REPLACE INTO moved_keys VALUES (?, ?, ?)", (queue_id, idempotency_key, message_id)
        )

    def kept_key(self, queue_id: int, idempotency_key: str) -> str | None:
        if self._drawer.moved is None:
            self._drawer.moved = self._db.execute("SELECT 1 FROM moved_keys LIMIT 1").fetchone() is not None
        if not self._drawer.moved:
            return None
        found = self._db.execute(
            "SELECT message_id FROM moved_keys WHERE queue_id = ? AND idempotency_key = ?",
            (queue_id, idempotency_key),
        ).fetchone()
        return found[0] if found else None

    def rewrite(
        self, message_id: str, content: Content, *, result: bytes | None, failure_reason: str | None
    ) -> None:
        values = _astuple(content)
        found = self._db.execute("SELECT seq FROM messages WHERE id = ?", (message_id,)).fetchone()
        if found is None:
            self._db.execute(
                f"UPDATE archive SET {_CONTENT}, result = ?, failure_reason = ? WHERE id = ?",  # noqa: S608 - constant
                (*values, result, failure_reason, message_id),
            )
            return
        self._db.execute(f"UPDATE contents SET {_CONTENT} WHERE seq = ?", (*values, found[0]))  # noqa: S608 - constant
        self._db.execute(
            "UPDATE messages SET result = ?, failure_reason = ? WHERE seq = ?",
            (result, failure_reason, found[0]),
        )

    def erasable(self, tenant: str, scope_id: int | None, after: int, limit: int) -> list[Stored]:
        # From now on what is overwritten or deleted is wiped from the pages of the file, not only unlinked.
        self._db.pragma("secure_delete", True)
        return [_stored(row) for row in self._db.execute(_ERASABLE, (tenant, scope_id, after, limit))]

    def forget_audit(self, tenant: str, message_ids: Sequence[str]) -> int:
        self._db.execute(
            "UPDATE audit SET details = '{}' WHERE tenant = ? AND details <> '{}'"
            " AND message_id IN (SELECT value FROM json_each(?))",
            (tenant, jsontext.text(list(message_ids))),
        )
        return self._db.changes()

    def forget_records(self, tenant: str, message_ids: Sequence[str]) -> int:
        self._db.execute(
            "UPDATE records SET data = '{}' WHERE tenant = ?"
            " AND message_id IN (SELECT value FROM json_each(?))",
            (tenant, jsontext.text(list(message_ids))),
        )
        return self._db.changes()


def _stored(row: tuple[Any, ...]) -> Stored:
    return Stored(Row(*row[:_WIDTH]), Content(*row[_WIDTH:]))


class SqliteServiceReads(SqliteServiceLookups):
    def audit(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        parts: list[str] = ["tenant = ?"]
        values: list[Any] = [wanted.tenant]
        fields = ("scope_id", "event_type", "actor_id", "correlation_id", "message_id", "allowed")
        for field in fields:
            value = getattr(wanted, field)
            if value is not None:
                parts.append(f"{field} = ?")
                values.append(value)
        for clause, moment in (("created_at >= ?", wanted.since), ("created_at < ?", wanted.until)):
            if moment is not None:
                parts.append(clause)
                values.append(moment)
        if wanted.queue_ids is not None:
            parts.append(f"queue_id IN (0{', ?' * len(wanted.queue_ids)})")
            values += wanted.queue_ids
        if after is not None:
            parts.append("seq < (" if wanted.newest_first else "seq > (")
            parts[-1] += "SELECT seq FROM audit WHERE id = ? AND tenant = ?)"
            values += [after, wanted.tenant]
        sql = f"SELECT {_AUDIT} FROM audit WHERE {' AND '.join(parts)} ORDER BY seq"  # noqa: S608 - bound values
        sql += " DESC LIMIT ?" if wanted.newest_first else " LIMIT ?"
        return [_entry(row) for row in self._db.execute(sql, (*values, limit))]

    def events_about(
        self, tenant: str, correlation_id: str, since: int, until: int, limit: int
    ) -> list[Event]:
        """Times rise with the numbers, so the span is found by halving; no index slows the writers down."""
        rows = self._db.execute(
            "SELECT * FROM ledger WHERE seq >= ? AND seq < ? AND correlation_id = ? AND tenant = ?"
            " ORDER BY seq LIMIT ?",
            (self._first_at(since), self._first_at(until + 1), correlation_id, tenant, limit),
        ).fetchall()
        return list(unroll(rows, b""))

    def _first_at(self, moment: int) -> int:
        """The number of the first event at or after a moment."""
        low, high = one(
            self._db.execute("SELECT coalesce(min(seq), 1), coalesce(max(seq), 0) + 1 FROM ledger")
        )
        while low < high:
            middle = (low + high) // 2
            found = self._db.execute("SELECT time FROM ledger WHERE seq = ?", (middle,)).fetchone()
            if found is not None and found[0] < moment:
                low = middle + 1
            else:
                high = middle
        return low


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    values = dict(zip(AuditEntry.__struct_fields__, row, strict=True))
    return AuditEntry(**{**values, "allowed": bool(values["allowed"])})
