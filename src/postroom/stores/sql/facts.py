"""Facts, records, the audit and parts of streams in SQL."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.kernel.facts import REMEMBERED, Fact
from postroom.kernel.ports import (
    AuditEntry,
    AuditFilter,
    Chunk,
    FactFilter,
    RecordFilter,
    StoredRecord,
)
from postroom.stores.sql.dialect import Dialect, SqlReads, SqlWrites
from postroom.stores.sql.filters import LAST
from postroom.stores.sql.statements import AUDIT_FIELDS, columns

_astuple = msgspec.structs.astuple
_RECORD = "SELECT id, tenant, kind, key, data, correlation_id, message_id, created_at FROM records WHERE "
_AUDIT = f"SELECT {columns(AUDIT_FIELDS)} FROM audit WHERE "  # noqa: S608 - names of columns


def record_statement(wanted: RecordFilter, limit: int, dialect: Dialect) -> tuple[str, tuple[Any, ...]]:
    if wanted.after_kind is not None:
        return f"{_RECORD}kind > ? ORDER BY kind LIMIT ?", (wanted.after_kind, limit)
    if wanted.numbers is not None:
        where = dialect.among("id", "integer")
        return f"{_RECORD}{where} ORDER BY id LIMIT ?", (dialect.bind_list(wanted.numbers), limit)
    parts = {"tenant = ?": wanted.tenant, "kind = ?": wanted.kind, "key = ?": wanted.key}
    given = {clause: value for clause, value in parts.items() if value is not None}
    where = " AND ".join((*given, "id > ?"))
    order = "id DESC" if wanted.newest_first else "id"
    return f"{_RECORD}{where} ORDER BY {order} LIMIT ?", (*given.values(), wanted.after, limit)


class FactReads(SqlReads):
    def facts(self, keys: Sequence[tuple[str, str, str]]) -> list[Fact]:
        if len(keys) == 1:
            return [_to_fact(row) for row in self._db.fetch(self._sql["fact"], keys[0])]
        by_kind: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for tenant, kind, key in keys:
            by_kind[tenant, kind].append(key)
        found = []
        for about, names in sorted(by_kind.items()):
            rows = self._db.fetch(self._sql["facts"], (*about, self._dialect.bind_list(names)))
            found += [_to_fact(row) for row in rows]
        return found

    def scan(self, wanted: FactFilter, limit: int) -> list[Fact]:
        if wanted.before is None:
            bounds = (max(wanted.prefix, wanted.after), wanted.prefix + LAST, wanted.after)
            name, bindings = "scan", (wanted.tenant, wanted.kind, *bounds)
        elif wanted.gone:
            name, bindings = "scan_gone", (wanted.before,)
        else:
            name, bindings = "scan_by_age", (wanted.kind, *wanted.after_age, wanted.before)
        return [_to_fact(row) for row in self._db.fetch(self._sql[name], (*bindings, limit))]

    def changes(self, tenant: str, kind: str) -> int:
        return self._db.fetch(self._sql["fact_changes"], (tenant, kind))[0][0]

    def records(self, wanted: RecordFilter, limit: int) -> list[StoredRecord]:
        rows = self._db.fetch(*record_statement(wanted, limit, self._dialect))
        return [StoredRecord(*row) for row in rows]

    def superseded(self, numbers: Sequence[int]) -> set[int]:
        rows = self._db.fetch(self._sql["superseded"], (self._dialect.bind_list(numbers),))
        return {number for (number,) in rows}

    def audit(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        parts: list[str] = ["1 = 1" if wanted.tenant is None else "tenant = ?"]
        values: list[Any] = [] if wanted.tenant is None else [wanted.tenant]
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
        if wanted.message_ids is not None:
            parts.append(self._dialect.among("message_id", "text"))
            values.append(self._dialect.bind_list(wanted.message_ids))
        if after is not None and wanted.tenant is None:
            parts.append("seq > COALESCE((SELECT seq FROM audit WHERE id = ?), 0)")
            values.append(after)
        elif after is not None:
            parts.append("seq < (" if wanted.newest_first else "seq > (")
            parts[-1] += "SELECT seq FROM audit WHERE id = ? AND tenant = ?)"
            values += [after, wanted.tenant]
        order = "seq DESC" if wanted.newest_first else "seq"
        rows = self._db.fetch(f"{_AUDIT}{' AND '.join(parts)} ORDER BY {order} LIMIT ?", (*values, limit))
        return [_to_entry(row) for row in rows]

    def chunks(self, stream_id: str, after: int, limit: int) -> list[Chunk]:
        rows = self._db.fetch(self._sql["chunks"], (stream_id, after, limit))
        return [Chunk(number, bytes(data)) for number, data in rows]


def _to_fact(row: tuple[Any, ...]) -> Fact:
    *fields, gone = row
    return Fact(*fields, gone=bool(gone))


def _to_entry(row: tuple[Any, ...]) -> AuditEntry:
    values = dict(zip(AUDIT_FIELDS, row, strict=True))
    return AuditEntry(**{**values, "allowed": bool(values["allowed"])})


class FactWrites(FactReads, SqlWrites):
    def put_facts(self, facts: Sequence[tuple[Fact, int]]) -> None:
        if any(fact.kind in REMEMBERED for fact, _ in facts):
            self._renew()
        self._out.write_many(self._sql["put_fact"], [_astuple(fact) for fact, _ in facts])

    def drop_facts(self, keys: Sequence[tuple[str, str, str]]) -> None:
        if any(kind in REMEMBERED for _, kind, _ in keys):
            self._renew()
        self._out.write_many(self._sql["drop_fact"], keys)

    def add_records(self, records: Sequence[StoredRecord]) -> None:
        self._out.write_many(self._sql["insert_record"], map(_astuple, records))

    def drop_records(self, numbers: Sequence[int]) -> int:
        return self._out.change(self._sql["drop_records"], (self._dialect.bind_list(numbers),))

    def forget(self, tenant: str, message_ids: Sequence[str]) -> None:
        for name in ("forget_records", "forget_audit"):
            self._out.write(self._sql[name], (tenant, self._dialect.bind_list(message_ids)))

    def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        self._out.write_many(self._sql["insert_audit"], map(_astuple, entries))

    def prune_audit(self, before: int, limit: int) -> int:
        return self._out.change(self._sql["prune_audit"], (limit, before))

    def add_chunks(self, stream_id: str, chunks: Sequence[Chunk]) -> None:
        rows = [(stream_id, chunk.number, chunk.data) for chunk in chunks]
        self._out.write_many(self._sql["insert_chunk"], rows)

    def drop_chunks(self, stream_ids: Sequence[str]) -> None:
        self._out.write(self._sql["drop_chunks"], (self._dialect.bind_list(stream_ids),))
