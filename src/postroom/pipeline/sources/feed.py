"""Ranges of a store as Arrow over HTTP: for executors that cannot reach its file.

The process that owns the store serves them; any number of executors ask at the same time, each for ranges of
its own. An answer that breaks off is an error, never a shorter answer.
"""

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import pyarrow as pa

from postroom.errors import InvalidField
from postroom.pipeline.errors import FeedBroken
from postroom.pipeline.sources.sqlite import SqliteSource, Wanted

PATH = "/internal/feed"
KINDS = ("ledger", "packed", "records", "ended", "rows")
MEDIA_TYPE = "application/vnd.apache.arrow.stream"
PATIENCE_S = 300.0


class FedSource(SqliteSource, frozen=True, kw_only=True):
    """A store whose rows come from the process that owns it. What the driver asks in a line it still reads
    from the file."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"FedSource({self.path!r}, {self.url!r})"

    def hash_of(self, seq: int) -> bytes | None:
        with self._answer(f"{PATH}/hash", seq=seq) as answer:
            found = json.load(answer)["hash"]
        return bytes.fromhex(found) if found else None

    def ledger(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        return self._ranges("ledger", after, up_to)

    def packed(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        return self._ranges("packed", after, up_to)

    def records(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        return self._ranges("records", after, up_to)

    def ended(self, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        return self._ranges("ended", after, up_to)

    def rows(self, after: int, up_to: int, wanted: Sequence[Wanted] = ()) -> Iterator[pa.RecordBatch]:
        return self._ranges("rows", after, up_to)

    def _ranges(self, kind: str, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
        with self._answer(f"{PATH}/{kind}", after=after, up_to=up_to) as answer:
            try:
                with pa.ipc.open_stream(answer) as batches:
                    yield from batches
            except pa.ArrowInvalid as error:
                raise FeedBroken(url=self.url, reason=" ".join(str(error).split())) from error

    @contextlib.contextmanager
    def _answer(self, path: str, **asked: int) -> Iterator[Any]:
        request = Request(
            f"{self.url.rstrip('/')}{path}?{urlencode(asked)}",
            headers={"authorization": f"Bearer {self.token}"},
        )
        try:
            with _OPENER.open(request, timeout=PATIENCE_S) as answer:
                yield answer
        except HTTPError as error:
            raise FeedBroken(url=self.url, reason=f"it answers with status {error.code}") from error
        except URLError as error:
            raise FeedBroken(url=self.url, reason=str(error.reason)) from error
        except (OSError, HTTPException) as error:  # also an answer that broke off
            raise FeedBroken(url=self.url, reason=str(error) or type(error).__name__) from error


class _NoRedirect(HTTPRedirectHandler):
    """The token goes to the address that was given, and nowhere else."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


# Also no proxy of the environment's.
_OPENER = build_opener(ProxyHandler({}), _NoRedirect())


def fed(source: SqliteSource, url: str, token: str) -> FedSource:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidField("--feed", f"is {url!r}, must be an address like http://10.0.0.5:3777")
    return FedSource(source.path, url=url, token=token)


def encode_range(source: SqliteSource, kind: str, after: int, up_to: int) -> Iterator[bytes]:
    """The rows of a range as an Arrow stream, piece by piece."""
    ways: dict[str, Callable[[int, int], Iterator[pa.RecordBatch]]] = {
        "ledger": source.ledger, "packed": source.packed, "records": source.records, "ended": source.ended,
        "rows": source.rows,
    }  # fmt: skip
    sink, writer = io.BytesIO(), None
    for batch in ways[kind](after, up_to):
        if writer is None:
            writer = pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        writer.write_batch(batch)
        yield _taken(sink)
    if writer is not None:
        writer.close()
        yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    piece = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return piece
