"""Each verb of the client as a call: method, path, body, and what the answer is. Both clients send these."""

from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from postroom.client.errors import refused
from postroom.client.model import Key, Message, Page, Queue, Rule, Scope
from postroom.errors import InvalidField

T = TypeVar("T")


class Call(Generic[T]):
    """`again`: whether it may be sent a second time when nobody answered the first."""

    def __init__(
        self,
        method: str,
        path: str,
        answer: Any,
        *,
        body: Any = None,
        query: dict[str, Any] | None = None,
        again: bool = False,
    ) -> None:
        self.method = method
        self.path = path
        self.body = body
        self.query = {name: value for name, value in (query or {}).items() if value is not None}
        self.again = again or method == "GET"
        self._answer = answer

    def read(self, status: int, content: bytes) -> T:
        try:
            document: Any = msgspec.json.decode(content) if content else None
        except msgspec.DecodeError:
            # Not from the service, but from something that stands before it.
            raise refused(status, {"error": {"message": "the answer is not JSON"}}) from None
        if status >= 400:
            raise refused(status, document)
        if self._answer is None:
            return document
        if not isinstance(document, dict) or "data" not in document:
            raise refused(status, {"error": {"message": "the answer is not one of the service"}})
        if isinstance(self._answer, tuple):
            (kind,) = self._answer
            items = msgspec.convert(document["data"], list[kind])
            return Page(items, document.get("next_cursor"))  # type: ignore[return-value]
        return msgspec.convert(document["data"], self._answer)


def _word(text: str, field: str) -> str:
    """A name as one step of a path; one that would lead elsewhere is none."""
    if text in ("", ".", ".."):
        raise InvalidField(field, f"{text!r} is no name")
    return quote(text, safe="")


def place(queue: str) -> str:
    """`scope/queue` as the path of its routes. Names of queues with more slashes: use the queue's id."""
    scope, _, slug = queue.partition("/")
    return f"{_scope(scope)}/queues/{_word(slug, 'queue')}"


def _scope(scope: str) -> str:
    return f"/scopes/{_word(scope, 'scope')}"


def _of(message: Message, verb: str) -> str:
    return f"{_scope(message.scope)}/messages/{_word(message.id, 'message_id')}/{verb}"


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def create_scope(slug: str, display_name: str, description: str) -> Call[Scope]:
    body = {"slug": slug, "display_name": display_name, "description": description}
    return Call("POST", "/scopes", Scope, body=body)


def scopes(cursor: str | None) -> Call[Page[Scope]]:
    return Call("GET", "/scopes", (Scope,), query={"cursor": cursor})


def create_queue(queue: str, settings: dict[str, Any]) -> Call[Queue]:
    scope, _, slug = queue.partition("/")
    return Call("POST", f"{_scope(scope)}/queues", Queue, body={"slug": slug, **settings})


def queues(scope: str, cursor: str | None) -> Call[Page[Queue]]:
    return Call("GET", f"{_scope(scope)}/queues", (Queue,), query={"cursor": cursor})


def queue(path: str) -> Call[Queue]:
    return Call("GET", place(path), Queue)


def publish(path: str, body: Any, options: dict[str, Any]) -> Call[Message]:
    sent = {"body": body, **options}
    return Call("POST", f"{place(path)}/messages", Message, body=sent, again="idempotency_key" in options)


def publish_many(path: str, messages: list[dict[str, Any]]) -> Call[Page[Message]]:
    again = all("idempotency_key" in message for message in messages)
    return Call("POST", f"{place(path)}/messages/batch", (Message,), body={"messages": messages}, again=again)


def claim(path: str, wish: dict[str, Any]) -> Call[list[Message]]:
    return Call("POST", f"{place(path)}/claim", list[Message], body=wish)


def complete(message: Message, result: Any) -> Call[Message]:
    body = {"result": result, **_given(claim_token=message.claim_token)}
    again = message.claim_token is not None
    return Call("POST", _of(message, "complete"), Message, body=body, again=again)


def fail(message: Message, reason: str, retry: bool, delay_s: float | None) -> Call[Message]:
    body = _given(claim_token=message.claim_token, reason=reason, retry=retry, delay_s=delay_s)
    return Call("POST", _of(message, "fail"), Message, body=body)


def release(message: Message) -> Call[Message]:
    return Call("POST", _of(message, "release"), Message, body=_given(claim_token=message.claim_token))


def extend(message: Message, seconds: float | None) -> Call[Message]:
    body = _given(claim_token=message.claim_token, extend_s=seconds)
    return Call("POST", _of(message, "extend"), Message, body=body)


def get(scope: str, message_id: str) -> Call[Message]:
    return Call("GET", f"{_scope(scope)}/messages/{_word(message_id, 'message_id')}", Message)


def messages(scope: str, filters: dict[str, Any]) -> Call[Page[Message]]:
    return Call("GET", f"{_scope(scope)}/messages", (Message,), query=filters)


def create_rule(scope: str, rule: dict[str, Any]) -> Call[Rule]:
    return Call("POST", f"{_scope(scope)}/routing-rules", Rule, body=rule)


def test_rules(scope: str, trial: dict[str, Any]) -> Call[dict[str, Any]]:
    return Call("POST", f"{_scope(scope)}/routing-rules/test", dict[str, Any], body=trial, again=True)


def create_pattern(scope: str, name: str, version: str, spec: dict[str, Any]) -> Call[dict[str, Any]]:
    body = {"name": name, "version": version, "spec": spec}
    return Call("POST", f"{_scope(scope)}/hitl-patterns", dict[str, Any], body=body)


def reviews(scope: str) -> Call[list[Message]]:
    return Call("GET", f"{_scope(scope)}/reviews", list[Message])


def answer(message: Message, values: dict[str, Any]) -> Call[Message]:
    body = {"answer": values, **_given(seen=message.seen)}
    return Call("POST", _of(message, "review"), Message, body=body)


def create_key(scope: str | None, name: str, options: dict[str, Any]) -> Call[Key]:
    path = "/api-keys" if scope is None else f"{_scope(scope)}/api-keys"
    return Call("POST", path, Key, body={"name": name, **options})


def trace(scope: str, correlation_id: str) -> Call[list[dict[str, Any]]]:
    path = f"{_scope(scope)}/audit/trace/{_word(correlation_id, 'correlation_id')}"
    return Call("GET", path, list[dict[str, Any]])


def anything(method: str, path: str, body: Any, query: dict[str, Any]) -> Call[Any]:
    return Call(method, path, None, body=body, query=query)
