"""Where the ledger stood, signed and kept in a file beside the store: one that was put back, cut or rewritten
is found at the next start without anybody having written anything down.

A thread of its own notes the head about once a second while there is something new, and looks whether the
store's file is still there. It never touches the database, and a commit never waits for it.
"""

import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from postroom.errors import StoreRewritten, StoreRolledBack, StoreVanished
from postroom.kernel.ledger import Head
from postroom.kernel.ports import Reads

log = logging.getLogger("postroom.store")

EVERY_S = 1.0
# When the file has twice as many lines, the older half of it goes.
MOST_KEPT = 5000
KEY_BYTES = 32


class NotedHead(msgspec.Struct, frozen=True):
    seq: int
    hash: str
    time: int
    signature: str


class SignedHeads:
    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}.heads")
        self._key_path = store.with_name(f"{store.name}.key")
        self._store = store
        self._lines = 0
        self._last = 0

    def check_present(self) -> None:
        """Raise if there was a store here and there is none."""
        last = self.last()
        if last is not None and last.seq and not self._store.exists():
            raise StoreVanished(path=str(self._store), heads=str(self.path), seq=last.seq)

    def check(self, reads: Reads) -> None:
        """Raise if the store is not the one whose heads were noted."""
        last, chain = self.last(), reads.chain()
        if last is None or last.seq <= chain.anchor.seq:
            return
        about = {"path": str(self._store), "heads": str(self.path)}
        if chain.head.seq < last.seq:
            raise StoreRolledBack(
                seq=chain.head.seq, noted=last.seq, missing=last.seq - chain.head.seq, **about
            )
        found = reads.events(last.seq - 1, 1)
        if not found or found[0].hash.hex() != last.hash:
            raise StoreRewritten(seq=last.seq, **about)
        self._last = last.seq

    def last(self) -> NotedHead | None:
        heads = self.read()
        return heads[-1] if heads else None

    def read(self) -> list[NotedHead]:
        """Those that this key has signed; a line that was cut by a crash is none."""
        try:
            lines, key = self.path.read_bytes().splitlines(), self._key_path.read_bytes()
        except OSError:
            return []
        heads: list[NotedHead] = []
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError):
                head = msgspec.json.decode(line, type=NotedHead)
                if hmac.compare_digest(head.signature.encode(), _sign(key, head).encode()):
                    heads.append(head)
        self._lines = len(lines)
        return heads

    def note(self, head: Head) -> None:
        if head.seq <= self._last:
            return
        key = self._key()
        noted = NotedHead(head.seq, head.hash.hex(), head.time, "")
        noted = msgspec.structs.replace(noted, signature=_sign(key, noted))
        if self._lines >= 2 * MOST_KEPT:
            self._cut()
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, msgspec.json.encode(noted) + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        self._lines += 1
        self._last = head.seq

    def _cut(self) -> None:
        kept = self.read()[-MOST_KEPT:]
        part = self.path.with_name(f".{self.path.name}.part")
        part.write_bytes(b"".join(msgspec.json.encode(head) + b"\n" for head in kept))
        part.chmod(0o600)
        os.replace(part, self.path)
        self._lines = len(kept)

    def _key(self) -> bytes:
        try:
            return self._key_path.read_bytes()
        except FileNotFoundError:
            handle = os.open(self._key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            key = secrets.token_bytes(KEY_BYTES)
            try:
                os.write(handle, key)
                os.fsync(handle)
            finally:
                os.close(handle)
            return key


class HeadKeeper:
    """`head` tells what is committed; None while nobody has written."""

    def __init__(self, store: Path, heads: SignedHeads, head: Callable[[], Head | None]) -> None:
        self._store = store
        self._heads = heads
        self._head = head
        self._file = os.stat(store)
        self._stop = threading.Event()
        self.is_moved = False
        self._thread = threading.Thread(target=self._run, name="postroom-heads", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._note()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self.look()

    def look(self) -> None:
        try:
            found = os.stat(self._store)
            moved = (found.st_dev, found.st_ino) != (self._file.st_dev, self._file.st_ino)
        except OSError:
            moved = True
        if moved and not self.is_moved:
            log.error("%s was moved or deleted while it is in use: nothing is accepted", self._store)
        self.is_moved = moved
        if not moved:
            self._note()

    def _note(self) -> None:
        head = self._head()
        if head is not None and not self.is_moved:
            try:
                self._heads.note(head)
            except OSError as error:
                log.warning("%s could not be written: %s", self._heads.path, error)


def _sign(key: bytes, head: NotedHead) -> str:
    text = f"{head.seq} {head.hash} {head.time}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
