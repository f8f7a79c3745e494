"""One request as a value: method, path, body, and what the answer is. Both clients send these."""

from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

import msgspec

from postroom.client.errors import refused
from postroom.client.model import Message, Page
from postroom.errors import InvalidField

T = TypeVar("T")


class PageOptions(TypedDict, total=False):
    """Which part of a list."""

    limit: int
    cursor: str | None


class Call(Generic[T]):
    """`again`: whether it may be sent a second time when nobody answered the first."""

    def __init__(
        self,
        method: str,
        path: str,
        answer: Any = None,
        *,
        body: Any = None,
        query: Any = None,
        again: bool = False,
    ) -> None:
        self.method = method
        self.path = path
        self.body = body
        self.query = drop_missing(**(query or {}))
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


def path_step(text: str, field: str) -> str:
    """A name as one step of a path; one that would lead elsewhere is none."""
    if text in ("", ".", ".."):
        raise InvalidField(field, f"{text!r} is no name")
    return quote(text, safe="")


def scope_path(scope: str, *steps: str) -> str:
    """`steps` are names of things below the scope; the words between them belong to the service."""
    return "/".join(("/scopes", path_step(scope, "scope"), *steps))


def queue_path(queue: str, *steps: str) -> str:
    """`scope/queue` as the path of its routes. Names of queues with more slashes: use the queue's id."""
    scope, _, slug = queue.partition("/")
    return scope_path(scope, "queues", path_step(slug, "queue"), *steps)


def message_path(message: Message, *steps: str) -> str:
    return scope_path(message.scope, "messages", path_step(message.id, "message_id"), *steps)


def drop_missing(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
