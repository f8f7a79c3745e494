"""However much there is, what is asked all the time touches only what it returns: both servers count the rows
that each statement of a message's life touches."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postroom
from postroom import SyncRoom
from postroom.kernel.housekeeping.housekeepers import ARCHIVER, EXPIRY, VISIBILITY
from postroom.stores.mariadb import connection as mariadb_connection
from postroom.stores.postgres import connection as postgres_connection
from postroom.stores.postgres.dialect import translate
from tests.stores.servers.kinds import KINDS, ServerKind

BATCH = 50
# Of one statement. A batch is 50 messages, each with its content, by a plan of a few steps.
MOST_ROWS = 20 * BATCH
LARGE_TABLES = {"messages", "contents", "archive", "ledger", "documents"}
_COLUMNS = (
    "seq, id, tenant, scope_id, queue_id, line, state, sort_key, due_at, message_type, priority_tier,"
    " priority_score, created_at, updated_at, expires_at, correlation_id, hop, idempotency_key, attempts,"
    " claims, finished_at"
)
# Half of it waits, half has ended; of a tenth somebody will come for at a time.
_MESSAGES = f"""
INSERT INTO messages ({_COLUMNS})
SELECT 10000000 + n, {{id}}, tenant, scope_id, queue_id, line,
    CASE WHEN n % 2 = 0 THEN 'pending' ELSE 'completed' END,
    sort_key + n, CASE WHEN n % 10 = 0 THEN created_at + 900000000000 + n END, message_type, priority_tier,
    priority_score, created_at + n, updated_at + n, NULL, {{correlation}}, 0, {{key}}, 0, 0,
    CASE WHEN n % 2 = 1 THEN created_at + 900000000000 + n END
FROM messages JOIN ({{numbers}}) numbers ON 1 = 1
"""
_CONTENTS = (
    "INSERT INTO contents (seq, content_type, source_type)"
    " SELECT seq, 'application/json', 'api' FROM messages WHERE seq > 10000000"
)
_ARCHIVED = _COLUMNS.replace("seq, id", "seq + 100000000, {archived}", 1).replace("idempotency_key", "NULL")
_ARCHIVE = (
    f"INSERT INTO archive ({_COLUMNS}, content_type, source_type, archived_seq)"
    f" SELECT {_ARCHIVED},"
    " 'application/json', 'api', 1 FROM messages WHERE state = 'completed'"
)
_DOCUMENTS = (
    "INSERT INTO documents (tenant, kind, {name}, version, data, created_at, updated_at, gone)"
    " SELECT '', 'thing', {id}, 1, '1', n, n, false FROM ({numbers}) numbers"
)
_LEDGER = (
    "INSERT INTO ledger SELECT 1000 + n, time, type, tenant, scope, queue, {id}, {correlation}, causation_id,"
    " actor, data, hash FROM ledger JOIN ({numbers}) numbers ON 1 = 1 WHERE ledger.seq = 1"
)
_HEAD = "UPDATE figures SET n = (SELECT max(seq) FROM ledger) WHERE queue_id = 0 AND name = 'head'"
_WORDS = {
    "postgres": {
        "id": "'m' || n",
        "archived": "'a' || seq",
        "correlation": "'c' || (n % 1000)",
        "key": "'k' || n",
        "name": "key",
        "numbers": "SELECT generate_series(1, %d) AS n",
        # Without what tests before have left: a plan counts dead rows of an index as well.
        "analyze": "VACUUM (ANALYZE) messages, contents, archive, documents, ledger, count_changes",
    },
    "mariadb": {
        "id": "CONCAT('m', n)",
        "archived": "CONCAT('a', seq)",
        "correlation": "CONCAT('c', n % 1000)",
        "key": "CONCAT('k', n)",
        "name": "`key`",
        "numbers": "SELECT seq AS n FROM seq_1_to_%d",
        "analyze": "ANALYZE TABLE messages, contents, archive, documents, ledger, ready, due",
    },
}


def fill(kind: ServerKind, url: str, count: int) -> None:
    words = dict(_WORDS[kind.name])
    words["numbers"] %= count
    script = [text.format(**words) for text in (_MESSAGES, _CONTENTS, _ARCHIVE, _DOCUMENTS, _LEDGER, _HEAD)]
    if kind.name == "postgres":
        with psycopg.connect(url, autocommit=True) as db:
            for sql in (*script, words["analyze"]):
                db.execute(sql.encode())
        return
    for sql in (*script, words["analyze"]):
        kind.fetch(url, sql)


Touched = list[tuple[str, int, str]]
"""Statements, how many rows each has touched, and how it came to them."""


@contextmanager
def watched_postgres(monkeypatch: pytest.MonkeyPatch, url: str) -> Iterator[Touched]:
    """What is sent, explained after it."""
    sent: list[tuple[str, Sequence[Any]]] = []
    for owner in (
        postgres_connection.PostgresReadConnection,
        postgres_connection.PostgresWriteConnection,
    ):
        for name in ("fetch", "write", "change"):
            if hasattr(owner, name):
                monkeypatch.setattr(owner, name, _noting(getattr(owner, name), sent))
    touched: Touched = []
    yield touched
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as db:
        postgres_connection.set_up(db)
        for sql, bindings in {sql: (sql, bindings) for sql, bindings in sent}.values():
            if not re.match(r"SELECT|WITH|UPDATE|DELETE", sql) or re.search(
                "pg_notify|SAVEPOINT|INSERT", sql
            ):
                continue
            db.execute("BEGIN")
            [(found,)] = db.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {translate(sql)}".encode(), bindings)
            db.execute("ROLLBACK")
            plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
            nodes = list(walk(plan))
            scans = [node for node in nodes if node["Node Type"] == "Seq Scan"]
            large = [node for node in scans if node.get("Relation Name") in LARGE_TABLES]
            rows = sum(count_rows(node) for node in nodes)
            touched.append((sql, rows if not large else 10**9, json.dumps(plan)))


def _noting(call: Callable[..., Any], sent: list[tuple[str, Sequence[Any]]]) -> Callable[..., Any]:
    def note(connection: Any, sql: str, bindings: Sequence[Any] = (), **expected: int) -> Any:
        sent.append((sql, bindings))
        return call(connection, sql, bindings, **expected)

    return note


def walk(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from walk(part)


def count_rows(node: dict[str, Any]) -> int:
    per_loop = node["Actual Rows"] + sum(
        value for name, value in node.items() if name.startswith("Rows Removed")
    )
    return int(per_loop * node["Actual Loops"])


@contextmanager
def watched_mariadb(monkeypatch: pytest.MonkeyPatch, url: str) -> Iterator[Touched]:
    """What is sent together, counted by the session that it was sent in."""
    touched: Touched = []
    run = mariadb_connection.run

    def count(db: Any) -> int:
        with db.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
            return sum(int(n) for _, n in cursor.fetchall())

    def run_counted(db: Any, statements: Sequence[bytes]) -> Any:
        before = count(db)
        found = run(db, statements)
        touched.append((b";".join(statements).decode("utf-8", "replace")[:2000], count(db) - before, ""))
        return found

    monkeypatch.setattr(mariadb_connection, "run", run_counted)
    yield touched


WATCHED = {"postgres": watched_postgres, "mariadb": watched_mariadb}


def live(room: SyncRoom) -> None:
    """Everything that is done to messages all the time."""
    room.publish("jobs", 1)
    room.publish("jobs", 2, key="mine", correlation_id="c1")
    room.publish("jobs", 2, key="mine", correlation_id="c1")
    room.publish_many("jobs", list(range(BATCH)))
    one, two, three, four = room.claim("jobs", limit=4)
    room.extend(one, 60)
    room.complete(one, {"done": True})
    room.fail(two, "not yet")
    room.release(three)
    room.snooze(four, until=four.created_at + 10**12)
    with room.unit() as unit:
        for message in room.claim("jobs", limit=BATCH):
            unit.complete(message)
    room.publish_many("jobs", list(range(BATCH)))
    room.complete_many([(message, None) for message in room.claim("jobs", limit=BATCH)])
    room.cancel(room.publish("jobs", 3).id)
    room.reprioritise(room.publish("jobs", 4).id, score=7)
    room.get(one.id)
    room.counts("jobs")
    room.messages(queue="jobs", limit=10)
    room.messages(queue="jobs", state="pending", limit=10)
    list(room.events(room.head().seq - 10))
    for name in (VISIBILITY, EXPIRY, ARCHIVER):
        room.housekeep(name)


SAMPLES = {"postgres": 10_000, "mariadb": 2_000}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_hot_statement_touches_only_what_it_returns(
    kind: ServerKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_statements(kind, tmp_path, monkeypatch, SAMPLES[kind.name])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_hot_statement_touches_only_what_it_returns_among_a_million(
    kind: ServerKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_statements(kind, tmp_path, monkeypatch, 1_000_000)


def check_statements(kind: ServerKind, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    url = kind.url(folder)
    with postroom.open_sync(url, housekeeping=False) as room:
        room.create_queue("jobs")
        room.publish("jobs", "the first")
    fill(kind, url, count)
    with postroom.open_sync(url, housekeeping=False) as room, WATCHED[kind.name](monkeypatch, url) as touched:
        live(room)
    assert len(touched) > 20
    costly = [(sql, rows, plan) for sql, rows, plan in touched if rows > MOST_ROWS]
    assert not costly, costly
