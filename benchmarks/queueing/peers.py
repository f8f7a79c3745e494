"""The other queues, each driven the way that is best for it, from one thread per caller.

huey is called at its storage, below its task objects; both get the message as ready JSON bytes. huey deletes
a message when it is taken and knows no acknowledgement: its cycle is two commits, the others' three.
"""

from pathlib import Path

from huey.storage import SqliteStorage
from persistqueue import SQLiteAckQueue

from benchmarks.queueing.letter import BODY, decode, encode

HUEY = "huey"
PERSIST_QUEUE = "persist-queue"
SYNCED = 2


class Huey:
    def __init__(self, folder: Path) -> None:
        self._storage = SqliteStorage("bench", str(folder / "huey.db"), fsync=True)

    def publish(self) -> None:
        self._storage.enqueue(encode(BODY))

    def cycle(self) -> None:
        self._storage.enqueue(encode(BODY))
        data = self._storage.dequeue()
        assert data is not None
        decode(bytes(data))

    def waiting(self) -> int:
        return self._storage.queue_size()

    def close(self) -> None:
        assert self._storage.conn.execute("PRAGMA synchronous").fetchone()[0] == SYNCED
        self._storage.close()


class PersistQueue:
    def __init__(self, folder: Path) -> None:
        self._queue = SQLiteAckQueue(str(folder / "persist"), multithreading=True, auto_commit=True)
        for connection in (self._queue._getter, self._queue._putter):
            connection.execute("PRAGMA synchronous = FULL")

    def publish(self) -> None:
        self._queue.put(encode(BODY))

    def cycle(self) -> None:
        self._queue.put(encode(BODY))
        item = self._queue.get(block=False, raw=True)
        decode(item["data"])
        self._queue.ack(item)

    def waiting(self) -> int:
        return self._queue.size

    def close(self) -> None:
        self._queue.close()
