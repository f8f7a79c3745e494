"""Ranges of a SQLite store as Arrow batches, read beside the process that owns the file.

Only `mode=ro` connections are made, through a SQLite of our own bringing. Columns are named one by one, so
that a newer store with more of them is read as well.
"""

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import apsw
import msgspec
import pyarrow as pa

from postroom.errors import StoreCorrupt, StoreError
from postroom.kernel.ledger import GENESIS
from postroom.kernel.time_steps import KEY, decode_steps, first_at, rising_parts
from postroom.pipeline.errors import SourceUnknown
from postroom.stores.sqlite.migrate import APPLICATION_ID

BATCH_ROWS = 32_768
"""What is done with a batch then finds it in the processor's caches."""
BUSY_MS = 10_000
PREFIX = "sqlite:///"

ENDING = (
    "message.completed",
    "message.dead_lettered",
    "message.expired",
    "message.cancelled",
    "message.discarded",
    "message.published",
)

# Each begins with a typed row: the driver guesses types from what comes first.
_LEDGER = """
SELECT 0 AS seq, 0 AS time, '' AS type, '' AS tenant, '' AS scope, '' AS queue, '' AS message_id,
    '' AS correlation_id, '' AS causation_id, '' AS actor, '' AS data, x'' AS hash
UNION ALL
SELECT seq, time, type, tenant, scope, queue, message_id, correlation_id, causation_id, actor, data, hash
FROM ledger WHERE seq > ? AND seq <= ?
"""
# What repeats comes as one text: handing over each value costs more than putting them together.
_PACKED = """
SELECT 0 AS seq, 0 AS time, '' AS repeated, '' AS message_id, '' AS correlation_id, '' AS causation_id,
    '' AS data, x'' AS hash
UNION ALL
SELECT seq, time, json_array(type, tenant, scope, queue, actor), message_id, correlation_id, causation_id,
    data, hash
FROM ledger WHERE seq > ? AND seq <= ?
"""

_RECORDS = """
SELECT 0 AS id, '' AS tenant, '' AS kind, '' AS key, '' AS data, '' AS correlation_id, '' AS message_id,
    0 AS created_at
UNION ALL
SELECT id, tenant, kind, key, data, correlation_id, message_id, created_at
FROM records WHERE id > ? AND id <= ?
"""

_ENDED_FIRST = """
SELECT 0 AS seq, '' AS id, '' AS tenant, '' AS scope, '' AS queue, '' AS origin_queue, '' AS subscription,
    '' AS state, '' AS message_type, '' AS content_type, x'' AS body, '' AS labels, '' AS metadata,
    '' AS files, '' AS priority_tier, 0 AS priority_score, 0 AS created_at, 0 AS updated_at,
    0 AS finished_at, 0 AS expires_at, '' AS correlation_id, '' AS causation_id, '' AS parent_id, 0 AS hop,
    '' AS idempotency_key, 0 AS attempts, 0 AS claims, '' AS failure_reason, '' AS failure_kind,
    x'' AS result, '' AS source_type, '' AS source_id, '' AS channel, '' AS sender, '' AS sender_id,
    '' AS agent, '' AS from_agent, 0 AS ended_seq
"""
# A row is taken with the event that ended it: the last thing that happened to it has the row's own time.
_ENDED = """
SELECT m.seq, m.id, m.tenant,
    CASE instr(s.slug, '#') WHEN 0 THEN s.slug ELSE substr(s.slug, 1, instr(s.slug, '#') - 1) END,
    q.slug, o.slug,
    coalesce(sub.name, CASE WHEN m.subscription_id IS NOT NULL THEN '#' || m.subscription_id END),
    m.state, m.message_type, c.content_type, c.body, c.labels, c.metadata, c.files, m.priority_tier,
    m.priority_score, m.created_at, m.updated_at, m.finished_at, m.expires_at, m.correlation_id,
    m.causation_id, m.parent_id, m.hop, m.idempotency_key, m.attempts, m.claims, m.failure_reason,
    m.failure_kind, m.result, c.source_type, c.source_id, c.channel, c.sender, c.sender_id, c.agent,
    c.from_agent, l.seq
FROM ledger l CROSS JOIN {rows} m ON m.id = l.message_id {contents}
CROSS JOIN queues q ON q.id = m.queue_id CROSS JOIN scopes s ON s.id = m.scope_id
LEFT JOIN queues o ON o.id = m.origin_queue_id
LEFT JOIN subscriptions sub ON sub.id = m.subscription_id
WHERE l.seq > ? AND l.seq <= ? AND l.type IN ({ending}) AND m.updated_at = l.time
    AND m.state IN ('completed', 'dead', 'expired', 'cancelled')
    AND m.state = json_extract(l.data, '$.state')
"""


_AND_THEN = "UNION ALL"


def _adbc() -> Any:
    """The driver that reads many rows at once. With it comes pandas, where there is one: who asks for a few
    rows does not wait for that."""
    from adbc_driver_sqlite import dbapi

    return dbapi


@functools.cache
def _schema_of(sql: str) -> tuple[list[str], list[pa.DataType]]:
    """The names and types of the columns of a query that asks for no table."""
    with _adbc().connect(":memory:") as db, db.cursor() as cursor:
        cursor.execute(sql)
        found = cursor.fetch_record_batch().schema
    return found.names, found.types


class Wanted(msgspec.Struct, frozen=True):
    """Only rows with one of these values in a column. A hint: a source may give more than was asked for."""

    column: str
    values: tuple[int | str, ...]


class Snapshot(msgspec.Struct, frozen=True):
    """How far the store had come at one moment."""

    head: int
    head_hash: bytes
    anchor: int
    records: int
    messages: int


class SqliteSource(msgspec.Struct, frozen=True):
    """The file, by its path, so that it can be sent to executors."""

    path: str

    def snapshot(self) -> Snapshot:
        with self._look() as db:
            db.execute("BEGIN")  # one view of all of it
            head, hash_, messages = _one(db, "SELECT seq, hash, message_seq FROM chain WHERE name = 'head'")
            (anchor,) = _one(db, "SELECT seq FROM chain WHERE name = 'anchor'")
            (last,) = _one(db, "SELECT max(id) FROM records")
        return Snapshot(head, hash_, anchor, last or 0, messages)

    def hash_of(self, seq: int) -> bytes | None:
        """The hash of an event, or of the anchor; None when the ledger no longer has it."""
        if not seq:
            return GENESIS
        with self._look() as db:
            found = db.execute("SELECT hash FROM ledger WHERE seq = ?", (seq,)).fetchone()
            if found is None:
                found = db.execute(
                    "SELECT hash FROM chain WHERE name = 'anchor' AND seq = ?", (seq,)
                ).fetchone()
        return found[0] if found else None

    def seq_before(self, time: int, *, latest: bool = False) -> int:
        """The number of the last event before a moment; where time was set back there may be two."""
        with self._look() as db:
            low, high = _one(db, "SELECT coalesce(min(seq), 1), coalesce(max(seq), 0) + 1 FROM ledger")
            steps = db.execute(
                "SELECT data FROM documents WHERE (tenant, kind, key) = (?, ?, ?)", KEY
            ).fetchone()
            parts = rising_parts(low, high, decode_steps(steps[0]) if steps else [])

            def time_of(number: int) -> int | None:
                row = db.execute(
                    "SELECT time FROM ledger WHERE seq >= ? ORDER BY seq LIMIT 1", (number,)
                ).fetchone()
                return row[0] if row is not None else None

            found = [(first_at(time, *part, time_of), part) for part in parts]
        inside = [at for at, (_, end) in found if at < end] or [high]
        return (max if latest else min)(inside) - 1

    def record_before(self, time: int, *, latest: bool = False) -> int:
        """The number of the last record before a moment; where time was set back there may be two."""
        with self._look() as db:
            (last,) = _one(db, "SELECT coalesce(max(id), 0) FROM records WHERE created_at < ?", time)
            if latest:
                return last
            (first,) = _one(db, "SELECT min(id) FROM records WHERE created_at >= ?", time)
        return last if first is None else min(first - 1, last)

    def conversation_of(self, wanted: str) -> tuple[str, str] | None:
        """The tenant and the conversation of the message with this id."""
        with self._look() as db:
            for table in ("messages", "archive"):
                found = db.execute(
                    f"SELECT tenant, coalesce(correlation_id, id) FROM {table} WHERE id = ?",  # noqa: S608 - ours
                    (wanted,),
                ).fetchone()
                if found:
                    return found
        return None

    def tenants_of(self, talk: str) -> list[str]:
        """The tenants that have a conversation with this id."""
        with self._look() as db:
            found = {
                tenant
                for table in ("messages", "archive")
                for (tenant,) in db.execute(
                    f"SELECT DISTINCT tenant FROM {table} WHERE correlation_id = ?",  # noqa: S608 - ours
                    (talk,),
                )
            }
        return sorted(found)

    def conversation(self, talk: str, tenant: str) -> list[dict[str, Any]]:
        """All messages of a conversation that the store still has."""
        rows = []
        with self._look() as db:
            for table in ("messages", "archive"):
                for clause in ("m.correlation_id = ? AND m.correlation_id <> m.id", "m.id = ?"):
                    sql = _BRIEF.format(table=table, clause=f"{clause} AND m.tenant = ?", **_PARTS[table])
                    rows += _dicts(db, sql, (talk, tenant, 10_000))
        return list({row["id"]: row for row in rows}.values())

    def search(
        self,
        words: Sequence[str],
        limit: int,
        *,
        agent: str | None = None,
        channel: str | None = None,
        sender: str | None = None,
        since: int | None = None,
    ) -> list[dict[str, Any]]:
        """Messages of the store with all these words, the newest of each table first."""
        rows = []
        with self._look() as db:
            for table in ("messages", "archive"):
                c = _PARTS[table]["c"]
                asked: list[tuple[str, Any]] = [
                    (self._find_words(f"{c}.body"), self._write_pattern(f"%{_escaped(word)}%"))
                    for word in words
                ]
                if agent:
                    asked.append((f"? IN ({c}.agent, {c}.from_agent)", agent))
                if channel:
                    asked.append((f"{c}.channel = ?", channel))
                if sender:
                    asked.append((f"? IN ({c}.sender, {c}.sender_id)", sender))
                if since is not None:
                    asked.append(("m.created_at >= ?", since))
                clause = " AND ".join(each for each, _ in asked) or "1 = 1"
                sql = _BRIEF.format(table=table, clause=clause, **_PARTS[table]).replace(
                    "LIMIT", "ORDER BY m.seq DESC LIMIT"
                )
                rows += _dicts(db, sql, (*(value for _, value in asked), limit))
        return rows

    def _find_words(self, column: str) -> str:
        return f"CAST({column} AS TEXT) LIKE ? ESCAPE '!'"

    def _write_pattern(self, text: str) -> str:
        return text

    def ledger(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        """Events of a range, in order."""
        more, values = _conditions(wanted)
        return self._batches(_LEDGER + more, (after, up_to, *values))

    def packed(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        """The same with the columns that repeat as one, a JSON list of type, tenant, scope, queue, actor."""
        return self._batches(_PACKED, (after, up_to))

    def records(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        more, values = _conditions(wanted)
        return self._batches(_RECORDS + more, (after, up_to, *values))

    def ended(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        """Messages that an event of this range ended, as they are."""
        ending = ", ".join(f"'{kind}'" for kind in ENDING)
        live = _ENDED.format(
            rows="messages", contents="CROSS JOIN contents c ON c.seq = m.seq", ending=ending
        )
        kept = _ENDED.format(rows="archive", contents="", ending=ending).replace("c.", "m.")
        sql = f"{_ENDED_FIRST} UNION ALL {live} UNION ALL {kept}"
        return self._batches(sql, (after, up_to, after, up_to))

    def rows(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        """All messages of a range, whatever their state, in the shape of those that have ended."""
        place = "FROM ledger l CROSS JOIN {rows} m ON m.id = l.message_id {contents}"
        every = (
            _ENDED[: _ENDED.index("WHERE")].replace(place, "FROM {rows} m {contents}").replace("l.seq", "0")
        )
        more, values = _conditions(wanted, "m.")
        clause = f"WHERE m.seq > ? AND m.seq <= ?{more}"
        live = every.format(rows="messages", contents="CROSS JOIN contents c ON c.seq = m.seq") + clause
        kept = (every.format(rows="archive", contents="") + clause).replace("c.", "m.")
        sql = f"{_ENDED_FIRST} UNION ALL {live} UNION ALL {kept}"
        return self._batches(sql, (after, up_to, *values, after, up_to, *values))

    def _batches(self, sql: str, bindings: tuple[int | str, ...]) -> Iterator[pa.RecordBatch]:
        adbc = _adbc()
        try:
            with adbc.connect(self._address()) as db, db.cursor() as cursor:
                # Beside other readers a moment may have to be waited for, as when the log is looked through.
                cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
                cursor.fetchall()
                options = {"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)}
                cursor.adbc_statement.set_options(**options)
                typed, _, rows = sql.partition(_AND_THEN)
                names, kinds = _schema_of(typed)
                # To go through two queries as one costs an eighth of the whole reading.
                cursor.execute(rows, bindings)
                found = cursor.fetch_record_batch()
                if found.schema.types == kinds:
                    yield from (batch.rename_columns(names) for batch in found)
                    return
                # There are no rows, or a column has nothing in the first of them. The typed row is cut off.
                cursor.execute(sql, bindings)
                first = True
                for batch in cursor.fetch_record_batch():
                    yield batch.slice(1) if first else batch
                    first = False
        except adbc.Error as error:
            raise StoreCorrupt(path=self.path, problem=" ".join(str(error).split())) from error

    def _address(self) -> str:
        return f"file:{quote(self.path)}?mode=ro"

    @contextlib.contextmanager
    def _look(self) -> Iterator[apsw.Connection]:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        try:
            db = apsw.Connection(self._address(), flags=flags)
            try:
                db.set_busy_timeout(BUSY_MS)
                if db.pragma("application_id") != APPLICATION_ID:
                    raise StoreCorrupt(path=self.path, problem="it is no store of Postroom")
                yield db
            finally:
                db.close()
        except apsw.Error as error:
            raise StoreCorrupt(path=self.path, problem=str(error)) from error


_BRIEF = """
SELECT m.seq, m.id, s.slug AS scope, q.slug AS queue, m.state, m.message_type, m.correlation_id,
    m.causation_id, m.parent_id, m.hop, m.created_at, m.finished_at, m.failure_kind, m.failure_reason,
    {c}.channel, {c}.sender, {c}.sender_id, {c}.agent, {c}.from_agent, CAST({c}.body AS TEXT) AS body
FROM {table} m {join} JOIN queues q ON q.id = m.queue_id JOIN scopes s ON s.id = m.scope_id
WHERE {clause} LIMIT ?
"""
_PARTS = {
    "messages": {"c": "c", "join": "JOIN contents c ON c.seq = m.seq"},
    "archive": {"c": "m", "join": ""},
}


def _conditions(wanted: Sequence[Wanted], prefix: str = "") -> tuple[str, list[int | str]]:
    """More of a WHERE, and its values. Columns are those of tables, never anybody's words."""
    text = "".join(
        f" AND {prefix}{each.column} IN ({', '.join('?' * len(each.values))})"
        for each in wanted
        if each.values
    )
    return text, [value for each in wanted for value in each.values]


def _escaped(word: str) -> str:
    """As it stands in JSON, with what LIKE would read as more than itself marked."""
    text = msgspec.json.encode(word).decode()[1:-1]
    return re.sub(r"([!%_])", r"!\1", text)


def _dicts(db: apsw.Connection, sql: str, bindings: tuple[Any, ...]) -> list[dict[str, Any]]:
    cursor = db.execute(sql, bindings)
    found: list[dict[str, Any]] = [dict(zip(_BRIEF_NAMES, row, strict=True)) for row in cursor.fetchall()]
    for row in found:
        if isinstance(row["body"], bytes):  # as servers give it
            row["body"] = row["body"].decode("utf-8", "replace")
    return found


_BRIEF_NAMES = (
    "seq", "id", "scope", "queue", "state", "message_type", "correlation_id", "causation_id", "parent_id",
    "hop", "created_at", "finished_at", "failure_kind", "failure_reason", "channel", "sender", "sender_id",
    "agent", "from_agent", "body",
)  # fmt: skip


def _one(db: apsw.Connection, sql: str, *bindings: int) -> tuple[Any, ...]:
    found = db.execute(sql, bindings).fetchone()
    if found is None:
        raise StoreError
    return found


def open_source(url: str) -> SqliteSource:
    """The source behind a store's address."""
    from postroom.pipeline.sources.server import open_server

    server = open_server(url)
    if server is not None:
        return server
    path = url.removeprefix(PREFIX) if url.startswith(PREFIX) else url
    if not path or "://" in path:
        raise SourceUnknown(url=url)
    return SqliteSource(path)
