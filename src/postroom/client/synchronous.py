"""The synchronous client."""

import time
from collections.abc import Iterator
from typing import Any, TypeVar

import httpx2

from postroom.client.access_verbs import AccessVerbs
from postroom.client.calls import Call
from postroom.client.connection import options
from postroom.client.errors import ServiceError, refused
from postroom.client.message_verbs import MessageVerbs, stream_path
from postroom.client.model import StreamEvent, read_event
from postroom.client.place_verbs import PlaceVerbs
from postroom.client.retry import pause_after

T = TypeVar("T")


class Client(MessageVerbs, PlaceVerbs, AccessVerbs):
    """`key` is an API key or the owner's token. Too many requests are waited for up to `patience_s`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        tenant: str | None = None,
        patience_s: float = 60.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._patience_s = patience_s
        self._http = httpx2.Client(transport=transport, **options(url, key, tenant))

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[T]) -> T:
        tried = 0
        while True:
            try:
                answer = self._http.request(call.method, call.path, json=call.body, params=call.query or None)
                return call.read(answer.status_code, answer.content)
            except (ServiceError, httpx2.TransportError) as error:
                pause = pause_after(error, call, tried, self._patience_s)
                if pause is None:
                    raise
            tried += 1
            time.sleep(pause)

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any route of the service, `path` beginning after /v1; the whole answer as it came."""
        return self.send(Call(method, path, body=body, query=query))

    def follow_stream(self, scope: str, stream_id: str, *, after: int = -1) -> Iterator[StreamEvent]:
        """Every part of a stream as it comes, and at last how it ended."""
        path, query = stream_path(scope, stream_id, "follow"), {"after": after}
        with self._http.stream("GET", path, params=query, timeout=None) as answer:
            if answer.is_error:
                answer.read()
                raise refused(answer.status_code, answer.json())
            for event in httpx2.EventSource(answer):
                yield read_event(event.event, event.data)
