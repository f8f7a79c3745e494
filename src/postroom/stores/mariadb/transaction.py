"""Reads and transactions on MariaDB, at READ COMMITTED: each question sees what is committed by then.

InnoDB locks every row that a locking question passes, also those it does not return. So rows are first looked
for without a lock, then locked by their numbers, and asked again.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import pymysql

from postroom.kernel.facts import REMEMBERED, Fact
from postroom.kernel.ledger import Head
from postroom.kernel.ports import RowFilter
from postroom.kernel.rows import Row, Stored
from postroom.kernel.states import State
from postroom.stores.mariadb.connection import MariadbReadConnection, MariadbWriteConnection, Pairs
from postroom.stores.mariadb.dialect import READ_SQL, READING, WRITE_SQL, WRITING
from postroom.stores.mariadb.errors import code_of
from postroom.stores.sql.contention import Overtaken
from postroom.stores.sql.dialect import SqlReads
from postroom.stores.sql.due_memo import DueMemo
from postroom.stores.sql.messages import FIND, to_stored
from postroom.stores.sql.server_transaction import ServerReads, ServerTransaction

_VERSION = (
    "SELECT n FROM figures FORCE INDEX (PRIMARY)"
    " WHERE queue_id = 0 AND subscription_id = 0 AND name = 'version' "
)
# Every transaction shares this lock; who changes what processes remember has it alone.
LOCK_VERSION_SHARED = _VERSION + "LOCK IN SHARE MODE"
LOCK_VERSION = _VERSION + "FOR UPDATE"
LOCK_IS_HELD = 1205
# Where a partial index leads elsewhere.
_ENDED = "m.finished_at <= ? AND m.finished_at IS NOT NULL"
_HELD = "m.due_at > 0 AND m.due_at IS NOT NULL"


class MariadbReads(ServerReads):
    def __init__(self, db: MariadbReadConnection) -> None:
        SqlReads.__init__(self, db, READ_SQL, READING)

    def _ids_by_key(self, keys: Sequence[tuple[int, str]]) -> list[tuple[int, str, str]]:
        return self._db.fetch(self._sql["keyed"], (Pairs(keys),))

    def find_statement(self, wanted: RowFilter, after: int, limit: int) -> tuple[str, tuple[Any, ...]]:
        sql, bindings = super().find_statement(wanted, after, limit)
        sql = sql.removesuffix(" FOR UPDATE").replace(_HELD, "m.seq IN (SELECT d.seq FROM due d)")
        if wanted.ended_before is not None and wanted.states:
            dead = set(wanted.states) == {State.DEAD}
            column, index = ("m.dead_at", "messages_dead") if dead else ("m.ended_at", "messages_finished")
            sql = sql.replace(_ENDED, f"{column} <= ?")
            sql = sql.replace("ORDER BY m.finished_at", f"ORDER BY {column}")
            # What the server knows of a table that has just grown can lead it through all of it.
            sql = sql.replace(FIND, FIND.replace(" WHERE ", f" FORCE INDEX ({index}) WHERE "))
        return sql, bindings


class MariadbTransaction(ServerTransaction, MariadbReads):
    TRY_VERSION = LOCK_VERSION + " NOWAIT"
    connection: MariadbWriteConnection

    def __init__(self, db: MariadbWriteConnection, version: int, now: int, due_memo: DueMemo) -> None:
        ServerTransaction.__init__(self, db, WRITE_SQL, WRITING, version, now, due_memo)

    def finish(self) -> tuple[bool, Head | None]:
        """Whether anything was changed, and by which event a lost commit is found."""
        done = self._finish()
        return done is not None, done[0] if done is not None and self.has_news else None

    def _try_version(self) -> bool:
        try:
            super()._try_version()
        except pymysql.MySQLError as error:
            if code_of(error) == LOCK_IS_HELD:
                return False
            raise
        return True

    def ready(self, lines: Sequence[int], limit: int, labels: Sequence[tuple[str, Any]] = ()) -> list[Stored]:
        """With labels most of what is passed is not wanted, and must stay free for others meanwhile."""
        if not labels:
            return super().ready(lines, limit)
        condition = f" AND {self._dialect.labelled()}" * len(labels)
        sql = self._sql["ready_labelled"].replace(" ORDER BY", f"{condition} ORDER BY")
        bound = tuple(value for label in labels for value in self._dialect.bind_label(*label))
        found: list[Stored] = []
        for line in lines:
            rows = self._db.fetch(sql, (line, *bound, limit - len(found))) if len(found) < limit else []
            if rows:
                numbers = [number for (number,) in rows]
                found += map(to_stored, self._db.fetch(self._sql["take_ready"], (numbers, line)))
        return found

    def find(self, wanted: RowFilter, after: int, limit: int) -> list[Row]:
        found = super().find(wanted, after, limit)
        if not found:
            return []
        locked = self._lock_numbers(found)
        sql, bindings = self.find_statement(wanted, after, limit)
        sql = sql.replace(" WHERE ", " FORCE INDEX (PRIMARY) WHERE m.seq IN ? AND ", 1)
        return [Row(*row) for row in self._db.fetch(sql, (locked, *bindings))]

    def _page(self, wanted: RowFilter, after: int | None, limit: int, *, archived: bool) -> list[Stored]:
        found = super()._page(wanted, after, limit, archived=archived)
        if archived or not found:
            return found
        self._lock_numbers([stored.row for stored in found])
        locked = {stored.row.id for stored in found}
        again = super()._page(wanted, after, limit, archived=False)
        return [stored for stored in again if stored.row.id in locked]

    def _lock_numbers(self, rows: Sequence[Row]) -> list[int]:
        return [n for (n,) in self._db.fetch(self._sql["lock_numbers"], (sorted(row.seq for row in rows),))]

    def _save_completed(self, rows: Sequence[Row]) -> None:
        by_result: defaultdict[bytes | None, list[Row]] = defaultdict(list)
        for row in rows:
            by_result[row.result].append(row)
        for result, alike in by_result.items():
            held = Pairs((row.seq, row.token) for row in alike)
            bindings = (self.now, self.now, result, [row.seq for row in alike], held)
            self.connection.write(self._sql["save_completed_alike"], bindings, expect=len(alike))

    def _save_extended(self, rows: Sequence[Row]) -> None:
        leases = [(row.lease_until, row.lease_until, self.now, row.seq) for row in rows]
        self._out.write_many(self._sql["save_extended"], leases)

    def put_facts(self, facts: Sequence[tuple[Fact, int]]) -> None:
        if any(fact.kind in REMEMBERED for fact, _ in facts):
            self._renew()
        statements = []
        # In one order, so that no two wait for each other.
        for fact, expected in sorted(facts, key=lambda each: (each[0].tenant, each[0].kind, each[0].key)):
            values = msgspec.structs.astuple(fact)
            if expected:
                bindings = (*values[3:], *values[:3], expected)
                statements.append((self._sql["replace_fact"], bindings))
            else:
                statements.append((self._sql["insert_fact"], values))
        if self.connection.change_each(statements) != len(facts):
            raise Overtaken("somebody else has changed the same thing in this moment")
