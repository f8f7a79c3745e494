"""The bar from below: plain apsw loops that write the same rows with the same durability, and nothing else.

They make ids and JSON as any program must, and refuse nothing: no checks, no chain, no counts, no wake-ups.
"""

import asyncio
import queue
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any, Literal

import apsw

from benchmarks.queueing.letter import BODY, encode
from benchmarks.queueing.pattern import Pattern
from postroom.ids import RandomIds
from postroom.stores.sqlite.store import CHECKPOINT_PAGES

Verb = Literal["publish", "claim", "complete"]
Claimed = tuple[int, str, bytes, str]

PENDING = """
SELECT m.seq, m.id, c.body FROM messages m CROSS JOIN contents c ON c.seq = m.seq
WHERE m.line = ? AND m.state = 'pending' ORDER BY m.sort_key, m.seq LIMIT ?
"""
IN_STATE = "SELECT seq FROM messages WHERE state = ? AND seq > ?"


def connect(path: Path, durability: str = "full") -> apsw.Connection:
    """With the settings of our store."""
    db = apsw.Connection(str(path), statementcachesize=200)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full" if durability == "full" else "normal")
    db.pragma("cache_size", -65536)
    db.pragma("temp_store", "memory")
    db.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
    db.pragma("journal_size_limit", 64 << 20)
    return db


def now_us() -> int:
    return time.time_ns() // 1000


class Writer:
    """The three writes, each for many messages at once, inside the caller's transaction."""

    def __init__(self, folder: Path, pattern: Pattern, durability: str = "full") -> None:
        path = folder / "bare.db"
        pattern.copy_to(path)
        self.db = connect(path, durability)
        self._pattern = pattern
        self._ids = RandomIds()
        self._messages = count(pattern.messages + 1)
        self._events = count(pattern.events + 1)

    def publish(self, bodies: list[bytes]) -> list[str]:
        pattern, now = self._pattern, now_us()
        ids = self._ids.make(len(bodies), now)
        rows = [(next(self._messages), id_, now) for id_ in ids]
        self.db.executemany(pattern.insert_message, rows)
        self.db.executemany(
            pattern.insert_content,
            [(row[0], None, None, body) for row, body in zip(rows, bodies, strict=True)],
        )
        self._record(pattern.insert_published, ids, now)
        return ids

    def claim(self, wanted: int) -> list[Claimed]:
        pattern, now = self._pattern, now_us()
        found: list[Any] = self.db.execute(PENDING, (pattern.line, wanted)).fetchall()
        nonce = self._ids.nonce()
        claimed: list[Claimed] = [(seq, id_, body, f"1-{nonce}") for seq, id_, body in found]
        self.db.executemany(pattern.claim, [(seq, None, now, token) for seq, _, _, token in claimed])
        self._record(pattern.insert_claimed, [id_ for _, id_, _, _ in claimed], now)
        return claimed

    def complete(self, claimed: list[Claimed]) -> None:
        pattern, now = self._pattern, now_us()
        self.db.executemany(pattern.complete, [(seq, None, now, token) for seq, _, _, token in claimed])
        self._record(pattern.insert_completed, [id_ for _, id_, _, _ in claimed], now)

    def _record(self, statement: str, ids: list[str], now: int) -> None:
        self.db.executemany(statement, [(None, id_, now, None, next(self._events)) for id_ in ids])

    def publish_alone(self) -> None:
        """One message, one commit."""
        self.db.execute("BEGIN IMMEDIATE")
        self.publish([encode(BODY)])
        self.db.execute("COMMIT")

    def publish_batch(self, size: int) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.publish([encode(BODY) for _ in range(size)])
        self.db.execute("COMMIT")

    def in_state(self, state: str) -> int:
        """How many messages of this run are in a state."""
        found = self.db.execute(IN_STATE, (state, self._pattern.messages)).fetchall()
        return len(found)

    def close(self) -> None:
        self.db.close()


Asked = tuple[Verb, Any, "asyncio.Future[Any]"]


class GroupLoop:
    """Requests of one tick of the event loop are committed together by a writer thread."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._batch: list[Asked] = []
        self._inbox: queue.SimpleQueue[list[Asked] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def ask(self, verb: Verb, what: Any = None) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._batch:
            self._loop.call_soon(self._flush)
        self._batch.append((verb, what, future))
        return future

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        self._inbox.put(batch)

    def _run(self) -> None:
        while (batch := self._inbox.get()) is not None:
            while not self._inbox.empty() and (more := self._inbox.get()) is not None:
                batch += more
            self._loop.call_soon_threadsafe(self._resolve, self._commit(batch))

    def _commit(self, batch: list[Asked]) -> list[tuple["asyncio.Future[Any]", Any]]:
        writer, answers = self._writer, []
        publishing = [(what, future) for verb, what, future in batch if verb == "publish"]
        completing = [(what, future) for verb, what, future in batch if verb == "complete"]
        claiming = [future for verb, _, future in batch if verb == "claim"]
        writer.db.execute("BEGIN IMMEDIATE")
        if publishing:
            ids = writer.publish([body for body, _ in publishing])
            answers += zip([future for _, future in publishing], ids, strict=True)
        if completing:
            writer.complete([claimed for claimed, _ in completing])
            answers += [(future, None) for _, future in completing]
        if claiming:
            answers += zip(claiming, writer.claim(len(claiming)), strict=True)
        writer.db.execute("COMMIT")
        return answers

    @staticmethod
    def _resolve(answers: list[tuple["asyncio.Future[Any]", Any]]) -> None:
        for future, answer in answers:
            future.set_result(answer)

    def close(self) -> None:
        self._inbox.put(None)
        self._thread.join()
