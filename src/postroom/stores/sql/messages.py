"""Messages in SQL: found by id, by filter or because their time has come; inserted, updated, archived."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.kernel.model import Counts
from postroom.kernel.ports import (
    Due,
    NewMessages,
    PrunedMessage,
    Rewritten,
    RowFilter,
    Shape,
    UniformMessages,
)
from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS, Content, Row, Stored
from postroom.stores.sql import filters
from postroom.stores.sql.dialect import SqlReads, SqlWrites
from postroom.stores.sql.statements import MOVED, MUTABLE, columns

WIDTH = len(ROW_FIELDS)
_astuple = msgspec.structs.astuple
_MUTABLE_AT = tuple(ROW_FIELDS.index(name) for name in MUTABLE)
_MOVED_AT = tuple(ROW_FIELDS.index(name) for name in (*MUTABLE, *MOVED))
_ROW = "SELECT " + columns(ROW_FIELDS, "m.")
_WHOLE = _ROW + ", " + columns(CONTENT_FIELDS, "c.")
FIND = _ROW + " FROM messages m WHERE "
LIVE = _WHOLE + " FROM messages m JOIN contents c ON c.seq = m.seq WHERE "
ARCHIVED = _WHOLE + " FROM archive m JOIN archive c ON c.seq = m.seq WHERE "
# The other way round: of what asks a person there is little, and an index leads to it.
REVIEWS = _WHOLE + " FROM contents c CROSS JOIN messages m ON m.seq = c.seq WHERE "


def to_stored(row: tuple[Any, ...], *, archived: bool = False) -> Stored:
    return Stored(Row(*row[:WIDTH]), Content(*row[WIDTH:]), archived)


class MessageReads(SqlReads):
    def rows(self, message_ids: Sequence[str]) -> list[Row]:
        found = self._db.fetch(self._sql["rows"], (self._dialect.bind_list(message_ids),))
        return [Row(*row) for row in found]

    def stored(self, message_ids: Sequence[str]) -> list[Stored]:
        ids = self._dialect.bind_list(message_ids)
        found = [to_stored(row) for row in self._db.fetch(self._sql["stored"], (ids,))]
        if len(found) < len(message_ids):
            archived = self._db.fetch(self._sql["archived"], (ids,))
            found += [to_stored(row, archived=True) for row in archived]
        return found

    def keyed(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Stored]:
        """Mostly there are none, so only their ids are looked for at first."""
        ids = {(queue_id, key): message_id for queue_id, key, message_id in self._ids_by_key(keys)}
        found = {stored.row.id: stored for stored in self.stored(sorted(set(ids.values())))} if ids else {}
        return {pair: found[message_id] for pair, message_id in ids.items() if message_id in found}

    def _ids_by_key(self, keys: Sequence[tuple[int, str]]) -> list[tuple[int, str, str]]:
        """Queue, key and id of messages that are live, archived, or moved from there."""
        raise NotImplementedError

    def due(self, now: int, limit: int) -> Due:
        """Mostly nothing is, so the first is looked at alone."""
        next_at = self._find_next_due()
        found = self._fetch_due(now, limit) if limit and next_at and next_at <= now else []
        return Due([Row(*row) for row in found], None if found else next_at)

    def _find_next_due(self) -> int | None:
        first = self._db.fetch(self._sql["next_due"])
        return first[0][0] if first else None

    def _fetch_due(self, now: int, limit: int) -> list[tuple[Any, ...]]:
        return self._db.fetch(self._sql["due"], (now, limit))

    def find(self, wanted: RowFilter, after: int, limit: int) -> list[Row]:
        sql, bindings = self.find_statement(wanted, after, limit)
        return [Row(*row) for row in self._db.fetch(sql, bindings)]

    def find_statement(self, wanted: RowFilter, after: int, limit: int) -> tuple[str, tuple[Any, ...]]:
        found = filters.clauses(wanted, self._dialect)
        if after:
            found.append(("m.seq > ?", (after,)))
        where, bindings = filters.join(found)
        order = "m.seq"
        if wanted.ended_before is not None:
            order = "m.finished_at"
        elif wanted.claimed_by is not None:
            order = "m.due_at"
        return f"{FIND}{where} ORDER BY {order} LIMIT ? {self._dialect.lock}", (*bindings, limit)

    def unfinished(self, message_ids: Sequence[str]) -> set[str]:
        rows = self._db.fetch(self._sql["unfinished"], (self._dialect.bind_list(message_ids),))
        return {parent for (parent,) in rows}

    def page(
        self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool = True
    ) -> list[Stored]:
        found = self._page(wanted, after, limit, archived=False)
        if archived and filters.may_be_archived(wanted):
            found += self._page(wanted, after, limit, archived=True)
            found.sort(key=lambda stored: stored.row.seq, reverse=wanted.newest_first)
        return found[:limit]

    def _page(self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool) -> list[Stored]:
        sql, bindings = self.page_statement(wanted, after, limit, archived=archived)
        return [to_stored(row, archived=archived) for row in self._db.fetch(sql, bindings)]

    def page_statement(
        self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool
    ) -> tuple[str, tuple[Any, ...]]:
        found = filters.clauses(wanted, self._dialect)
        head, seq = (REVIEWS, "c.seq") if wanted.reviews and not archived else (LIVE, "m.seq")
        if after is not None:
            found.append((f"{seq} < ?" if wanted.newest_first else f"{seq} > ?", (after,)))
        where, bindings = filters.join(found)
        order = f"{seq} DESC" if wanted.newest_first else seq
        return f"{ARCHIVED if archived else head}{where} ORDER BY {order} LIMIT ?", (*bindings, limit)

    def counts(self, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Counts]:
        queue_ids = self._dialect.bind_list(sorted({queue_id for queue_id, _ in places}))
        wanted = set(places)
        found: dict[tuple[int, int], dict[str, int]] = {}
        for queue_id, subscription_id, state, n in self._db.fetch(self._sql["counts"], (queue_ids,)):
            if (queue_id, subscription_id) in wanted:
                found.setdefault((queue_id, subscription_id), {})[state] = n
        return {place: Counts(**counted) for place, counted in found.items()}


class MessageWrites(MessageReads, SqlWrites):
    def insert(self, batches: Sequence[NewMessages | UniformMessages]) -> list[tuple[int, str]]:
        for batch in batches:
            if isinstance(batch, UniformMessages):
                self._insert_uniform(batch)
            else:
                self._insert_rows(batch.rows, batch.contents)
        return []

    def _insert_rows(self, rows: list[Row], contents: list[Content]) -> None:
        self._number(rows)
        if len(rows) == 1:
            self._out.write(self._sql["insert_message"], _astuple(rows[0]))
            self._out.write(self._sql["insert_content"], (rows[0].seq, *_astuple(contents[0])))
            return
        self._out.write_many(self._sql["insert_message"], map(_astuple, rows))
        numbered = ((row.seq, *_astuple(content)) for row, content in zip(rows, contents, strict=True))
        self._out.write_many(self._sql["insert_content"], numbered)

    def _insert_uniform(self, batch: UniformMessages) -> None:
        rows, contents = [], []
        for message_id, body in zip(batch.ids, batch.bodies, strict=True):
            talk = batch.row.correlation_id or message_id
            rows.append(msgspec.structs.replace(batch.row, id=message_id, correlation_id=talk))
            contents.append(msgspec.structs.replace(batch.content, body=body))
        self._insert_rows(rows, contents)

    def _number(self, rows: list[Row]) -> None:
        """Give new rows their numbers."""
        raise NotImplementedError

    def update(self, rows: Sequence[Row], shape: Shape) -> None:
        if shape is Shape.CLAIMED:
            self._save_claimed(rows)
        elif shape is Shape.COMPLETED:
            self._save_completed(rows)
        elif shape is Shape.EXTENDED:
            self._save_extended(rows)
        else:
            self._save(rows, shape)

    def _save(self, rows: Sequence[Row], shape: Shape) -> None:
        at, name = (_MOVED_AT, "save_moved") if shape is Shape.MOVED else (_MUTABLE_AT, "save_changed")
        changed = []
        for row in rows:
            values = _astuple(row)
            changed.append((*[values[i] for i in at], row.seq))
        self._out.write_many(self._sql[name], changed)

    def _save_claimed(self, rows: Sequence[Row]) -> None:
        self._out.write_many(
            self._sql["save_claimed"],
            [
                (
                    row.lease_until,
                    row.lease_until,
                    row.claimed_at,
                    row.claimed_at,
                    row.attempts,
                    row.claims,
                    row.token,
                    row.claimed_by,
                    row.seq,
                )
                for row in rows
            ],
        )

    def _save_extended(self, rows: Sequence[Row]) -> None:
        self._save(rows, Shape.CHANGED)

    def _save_completed(self, rows: Sequence[Row]) -> None:
        changed = [(row.finished_at, row.finished_at, row.result, row.seq) for row in rows]
        self._out.write_many(self._sql["save_completed"], changed)

    def rewrite(self, messages: Sequence[Rewritten], *, wipe: bool = False) -> None:
        for name in ("rewrite_content", "rewrite_row", "rewrite_archived"):
            changed = []
            for each in messages:
                content = () if name == "rewrite_row" else _astuple(each.content)
                rest = () if name == "rewrite_content" else (each.result, each.failure_reason)
                changed.append((*content, *rest, each.message_id))
            self._out.write_many(self._sql[name], changed)
        keys = [(each.idempotency_key, each.message_id) for each in messages if each.idempotency_key]
        if keys:
            for name in ("rewrite_key", "rewrite_archived_key"):
                self._out.write_many(self._sql[name], keys)

    def _archive(self, rows: Sequence[Row], ledger_length: int) -> None:
        self._out.write_many(self._sql["archive"], [(ledger_length, row.seq) for row in rows])
        self._out.write_many(self._sql["drop_message"], [(row.seq,) for row in rows])
        self._out.write_many(self._sql["drop_content"], [(row.seq,) for row in rows])

    def prune_messages(
        self, queue_ids: Sequence[int], ended_before: int, up_to_seq: int | None, limit: int
    ) -> list[PrunedMessage]:
        up_to = 2**62 if up_to_seq is None else up_to_seq
        queues = self._dialect.bind_list(queue_ids)
        rows = self._db.fetch(self._sql["prunable"], (queues, ended_before, up_to, limit))
        pruned = [PrunedMessage(*row) for row in rows]
        if pruned:
            ids = self._dialect.bind_list([each.id for each in pruned])
            self._out.write(self._sql["prune_archive"], (ids,))
            self._out.write(self._sql["prune_standing"], (ids,))
        return pruned
