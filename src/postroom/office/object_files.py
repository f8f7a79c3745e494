"""Files of messages in an object store. What programs of this host need is fetched to its disk, and goes from
there when it has gone from the store. Keys and the like come from the environment (`AWS_…`).
"""

import contextlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from postroom.clock import SECOND
from postroom.office.file_retention import DAY_S
from postroom.office.files import MAX_FILE_BYTES, FileProblem, FileRefused, OutFile, Receiving
from postroom.office.message_files import (
    OURS,
    PREFIX,
    FilesAway,
    HomeFiles,
    MessageFiles,
    SharedFiles,
    name_of,
)
from postroom.settings.model import Settings
from postroom.settings.paths import expanded

log = logging.getLogger("postroom.files")

TIMEOUT_S = 60
CONNECT_S = 5
RETRY_S = 15
PIECE_BYTES = 1024 * 1024
AT_ONCE = 500
SWEEP_S = 3600.0
# What was put a moment ago may not be in a list that was begun before.
FRESH_S = 600.0
NO_BUCKET = "NoSuchBucket"


class ObjectFiles(SharedFiles):
    def __init__(
        self, url: str, home: HomeFiles, *, days: float | None = None, most_bytes: int = 2**62
    ) -> None:
        super().__init__(home.root, home)
        self._url = url
        self._days = days
        self._most_bytes = most_bytes
        self._opening = threading.Lock()
        self._opened: Any = None
        self._swept_at = 0.0

    @contextlib.contextmanager
    def receiving(self, folder: str, name: str, *, max_bytes: int = MAX_FILE_BYTES) -> Iterator[Receiving]:
        """On the disk first, so that nothing of a file that ends early is ever in the store."""
        with super().receiving(folder, name, max_bytes=max_bytes) as taken:
            yield taken
        try:
            with self._asking() as (objects, store):
                objects.put(store, taken.ref.removeprefix(PREFIX), taken.path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._forget_copy(taken.path)
            if isinstance(error, FileNotFoundError):
                raise _missing(taken.ref, error) from None
            raise
        self._sweep_when_due()

    def check(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> OutFile:
        if not ref.startswith(PREFIX) or self._path(ref).exists():
            return super().check(ref, max_bytes=max_bytes)
        with self._asking() as (objects, store):
            try:
                # Only its beginning is read. A HEAD would not tell a missing object from a missing bucket.
                size = int(objects.get(store, ref.removeprefix(PREFIX)).meta["size"])
            except FileNotFoundError as error:
                raise _missing(ref, error) from None
        if size > max_bytes:
            reason = f"it has {size} bytes, and at most {max_bytes} may be sent"
            raise FileRefused(path=ref[:200], why=FileProblem.TOO_LARGE, reason=reason)
        return OutFile(self._path(ref), name_of(ref), size)

    def fetch(self, ref: str) -> Path:
        if not ref.startswith(PREFIX):
            return super().fetch(ref)
        path = self._path(ref)
        if not path.exists():
            self._fetch(ref, path)
            self._sweep_when_due()
        return path

    def _fetch(self, ref: str, path: Path) -> None:
        """Whole or not at all, also when two want it at once."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".fetched-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as target, self._asking() as (objects, store):
                for piece in objects.get(store, ref.removeprefix(PREFIX)).stream(min_chunk_size=PIECE_BYTES):
                    target.write(piece)
            os.replace(name, path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(name)
                path.parent.rmdir()
            if isinstance(error, FileNotFoundError):
                raise _missing(ref, error) from None
            raise

    def _forget(self, path: Path) -> None:
        with self._asking() as (objects, store):
            objects.delete(store, [path.relative_to(self.root).as_posix()])
        self._forget_copy(path)

    def _forget_copy(self, path: Path) -> None:
        super()._forget(path)

    def tidy(self, now: int) -> int:
        """Remove what is too old, and the oldest of what is too much; how many files that was."""
        known = sorted(self._list(), key=lambda each: each["last_modified"])
        oldest = datetime.min.replace(tzinfo=UTC)
        if self._days is not None:
            oldest = datetime.fromtimestamp(now / SECOND - self._days * DAY_S, UTC)
        total = sum(each["size"] for each in known)
        old: list[str] = []
        for each in known:
            if each["last_modified"] >= oldest and total <= self._most_bytes:
                break
            old.append(each["path"])
            total -= each["size"]
        with self._asking() as (objects, store):
            for at in range(0, len(old), AT_ONCE):
                objects.delete(store, old[at : at + AT_ONCE])
        self._sweep({each["path"] for each in known} - set(old))
        return len(old)

    def probe(self) -> None:
        with self._asking() as (objects, store):
            try:
                next(iter(objects.list(store, chunk_size=1)), None)
            except FileNotFoundError as error:
                raise _missing(self._url, error) from None

    def _list(self) -> list[dict[str, Any]]:
        """Of a bucket that holds other things too, only what is ours."""
        with self._asking() as (objects, store):
            pages = objects.list(store)
            return [each for page in pages for each in page if OURS.fullmatch(each["path"])]

    def _sweep_when_due(self) -> None:
        if time.monotonic() - self._swept_at < SWEEP_S:
            return
        self._swept_at = time.monotonic()
        try:
            self._sweep({each["path"] for each in self._list()})
        except FilesAway as error:
            log.warning("copies of files are not looked through at the moment: %s", error)

    def _sweep(self, known: set[str]) -> None:
        """What has left the store, by its age or because it was erased, leaves this disk too."""
        for path in list(self.root.glob("**/*")):
            key = path.relative_to(self.root).as_posix()
            with contextlib.suppress(OSError):
                if OURS.fullmatch(key) and key not in known and time.time() - path.stat().st_mtime > FRESH_S:
                    self._forget_copy(path)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[tuple[Any, Any]]:
        """The library and the store; whatever keeps us from it is told as one thing."""
        try:
            import obstore
            from obstore.exceptions import BaseError
        except ImportError:
            raise FilesAway(reason='obstore is not installed: pip install "postroom[s3]"') from None
        try:
            yield obstore, self._store()
        except BaseError as error:
            reason = " ".join(str(error).partition("Debug source")[0].split())[:300]
            log.warning("%s: %s", self._url, reason)
            raise FilesAway(reason=f"{self._url} does not answer") from None

    def _store(self) -> Any:
        from obstore.store import from_url

        with self._opening:
            if self._opened is None:
                plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
                self._opened = from_url(
                    self._url,
                    client_options={
                        "allow_http": plain,
                        "timeout": timedelta(seconds=TIMEOUT_S),
                        "connect_timeout": timedelta(seconds=CONNECT_S),
                    },
                    retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=RETRY_S)},
                )
            return self._opened


def open_files(settings: Settings, home: Path) -> MessageFiles:
    """Where the settings say that files of messages are."""
    bounds = {"days": settings.retention.files_days, "most_bytes": settings.limits.files_folder_bytes}
    own, url = HomeFiles(home, **bounds), settings.files.url
    if not url:
        return own
    if url.startswith("s3://"):
        return ObjectFiles(url, own, **bounds)
    return SharedFiles(expanded(url), own, **bounds)


def _missing(ref: str, error: FileNotFoundError) -> FileRefused | FilesAway:
    if NO_BUCKET in str(error):
        return FilesAway(reason="there is no such bucket; correct files.url, or make it")
    return FileRefused(path=ref[:200], why=FileProblem.MISSING, reason="there is no such file")
