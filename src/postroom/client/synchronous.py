"""The synchronous client."""

import time
from typing import Any, TypeVar

import httpx2

from postroom.client import calls
from postroom.client.calls import Call
from postroom.client.connection import options
from postroom.client.errors import ServiceError
from postroom.client.model import Key, Message, Page, Queue, Rule, Scope
from postroom.client.retry import pause_after

T = TypeVar("T")


class Client:
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

    def _send(self, call: Call[T]) -> T:
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
        return self._send(calls.anything(method, path, body, query))

    # places

    def create_scope(self, slug: str, *, display_name: str = "", description: str = "") -> Scope:
        return self._send(calls.create_scope(slug, display_name, description))

    def scopes(self, cursor: str | None = None) -> Page[Scope]:
        return self._send(calls.scopes(cursor))

    def create_queue(self, queue: str, **settings: Any) -> Queue:
        """`queue` is `scope/queue`; settings are those of the service."""
        return self._send(calls.create_queue(queue, settings))

    def queues(self, scope: str, cursor: str | None = None) -> Page[Queue]:
        return self._send(calls.queues(scope, cursor))

    def queue(self, queue: str) -> Queue:
        return self._send(calls.queue(queue))

    # messages

    def publish(self, queue: str, body: Any = None, **options: Any) -> Message:
        """With `idempotency_key` it may be repeated safely, and is, when nobody answers."""
        return self._send(calls.publish(queue, body, options))

    def publish_many(self, queue: str, messages: list[dict[str, Any]]) -> list[Message]:
        """All or none; each message is a dictionary of the service's fields."""
        return (self._send(calls.publish_many(queue, messages))).items

    def claim(self, queue: str, *, batch_size: int = 1, wait_s: float = 0, **wish: Any) -> list[Message]:
        return self._send(calls.claim(queue, {"batch_size": batch_size, "wait_s": wait_s, **wish}))

    def complete(self, message: Message, result: Any = None) -> Message:
        return self._send(calls.complete(message, result))

    def fail(
        self, message: Message, reason: str, *, retry: bool = True, delay_s: float | None = None
    ) -> Message:
        return self._send(calls.fail(message, reason, retry, delay_s))

    def release(self, message: Message) -> Message:
        return self._send(calls.release(message))

    def extend(self, message: Message, seconds: float | None = None) -> Message:
        return self._send(calls.extend(message, seconds))

    def get(self, scope: str, message_id: str) -> Message:
        return self._send(calls.get(scope, message_id))

    def messages(self, scope: str, **filters: Any) -> Page[Message]:
        """Filters are `correlation_id`, `parent_id`, `state`, `limit` and `cursor`."""
        return self._send(calls.messages(scope, filters))

    # rules and reviews

    def create_rule(self, scope: str, **rule: Any) -> Rule:
        return self._send(calls.create_rule(scope, rule))

    def test_rules(self, scope: str, **trial: Any) -> dict[str, Any]:
        """What would happen; nothing does."""
        return self._send(calls.test_rules(scope, trial))

    def create_pattern(
        self, scope: str, name: str, spec: dict[str, Any], version: str = "1.0"
    ) -> dict[str, Any]:
        return self._send(calls.create_pattern(scope, name, version, spec))

    def reviews(self, scope: str) -> list[Message]:
        """Reviews that wait for an answer."""
        return self._send(calls.reviews(scope))

    def answer(self, review: Message, **values: Any) -> Message:
        """Decide a review: a value for each field it asks for."""
        return self._send(calls.answer(review, values))

    # access and history

    def create_key(self, name: str, scope: str | None = None, **options: Any) -> Key:
        return self._send(calls.create_key(scope, name, options))

    def trace(self, scope: str, correlation_id: str) -> list[dict[str, Any]]:
        """Everything that happened in one conversation, in order."""
        return self._send(calls.trace(scope, correlation_id))
