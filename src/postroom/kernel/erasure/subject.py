"""Erasure of a person's data: which messages are about a subject, and what is left of them afterwards.

Ids, times and states stay, so that the ledger can still be folded and verified; what people wrote goes.
"""

import hashlib
from typing import Any, Protocol

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import checks, jsontext
from postroom.kernel.reviews.spec import is_sound
from postroom.kernel.rows import Content, Stored

KIND = "erasure"
# Which messages an erasure has found so far, so that one that is repeated reaches all of them elsewhere too.
ERASED_IDS = "erased_ids"
ERASED = "erased"
PLAIN = ("source_id", "sender", "sender_id", "agent", "channel", "correlation_id")
MOST_DEPTH = 20


class ErasableLake(Protocol):
    """What erasure asks of the pipeline's tables. The pipeline brings its own."""

    async def search(
        self, tenant: str, scope: str, subject: "Subject", queues: list[str] | None
    ) -> list[str]:
        """Messages of a scope, or of some of its queues, about a subject: also those that were pruned from
        the hot store."""
        ...

    async def preview(self, tenant: str, message_ids: list[str]) -> int:
        """How many rows hold something of these messages."""
        ...

    async def erase(self, tenant: str, message_ids: list[str]) -> int:
        """Erase them and answer how many rows were changed; asking again must do no harm."""
        ...


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Whom it is about: the value of a field. `labels.x`, `body.a.b`, or one of the plain fields."""

    field: str
    value: str | int | float | bool


def check_subject(subject: Subject) -> None:
    name = subject.field
    deep = name.startswith(("labels.", "body.")) and len(name.split(".")) <= MOST_DEPTH
    if name not in PLAIN and not deep:
        known = ", ".join((*PLAIN, "labels.<name>", "body.<path>"))
        raise InvalidField("subject.field", f"is {name!r}, must be one of {known}")
    if subject.value == "":
        raise InvalidField("subject.value", "must not be empty")


def concerns(stored: Stored, subject: Subject) -> bool:
    name, content = subject.field, stored.content
    if name == "correlation_id":
        return stored.row.correlation_id == subject.value
    if name in PLAIN:
        return getattr(content, name) == subject.value
    place, _, path = name.partition(".")
    if place == "labels":
        labels: dict[str, Any] = jsontext.decode_any(content.labels, {})
        return path in labels and _same(labels[path], subject.value)
    if content.content_type != checks.JSON or content.body is None:
        return False
    return _found(jsontext.decode(content.body), path.split("."), subject.value)


def _found(part: Any, path: list[str], value: Any) -> bool:
    """A path goes through every item of a list."""
    if isinstance(part, list):
        return any(_found(item, path, value) for item in part)
    if not path:
        return _same(part, value)
    return isinstance(part, dict) and path[0] in part and _found(part[path[0]], path[1:], value)


def _same(known: Any, value: Any) -> bool:
    return known == value and isinstance(known, bool) == isinstance(value, bool)


def emptied(content: Content) -> Content:
    """The content with nothing in it of what anybody wrote."""
    body = jsontext.encode({ERASED: True}) if content.content_type == checks.JSON else None
    return msgspec.structs.replace(
        content,
        body=body,
        labels=None,
        hitl_spec=None,
        source_id=None,
        sender=None,
        sender_id=None,
        files=None,
        metadata=None,
    )


def redacted(content: Content, subject: Subject) -> Content:
    """The content with the subject's value taken out wherever it stands, and nothing else."""

    def clean(text: str | None) -> str | None:
        return None if text is None else jsontext.text(_without(jsontext.decode(text), subject.value))

    body = content.body
    if body is not None and content.content_type == checks.JSON:
        body = jsontext.encode(_without(jsontext.decode(body), subject.value))
    elif body is not None and isinstance(subject.value, str):
        body = body.replace(subject.value.encode(), ERASED.encode())
    plain = {
        name: None for name in ("source_id", "sender", "sender_id") if getattr(content, name) == subject.value
    }
    return msgspec.structs.replace(
        content,
        body=body,
        labels=clean(content.labels),
        hitl_spec=_answerable(clean(content.hitl_spec)),
        metadata=clean(content.metadata),
        **plain,
    )


def _answerable(spec: str | None) -> str | None:
    """A review of which more than its words is gone asks nobody any more."""
    document = jsontext.decode_any(spec, {})
    return None if "sections" in document and not is_sound(document) else spec


def redacted_bytes(data: bytes | None, subject: Subject) -> bytes | None:
    return None if data is None else jsontext.encode(_without(jsontext.decode(data), subject.value))


def redacted_text(text: str | None, subject: Subject) -> str | None:
    return text if text is None else str(_without(text, subject.value))


def tells_of(text: str | None, subject: Subject) -> bool:
    """Whether the subject can be read in a text."""
    value = subject.value if isinstance(subject.value, str) else jsontext.text(subject.value)
    return text is not None and value.casefold() in text.casefold()


def _without(part: Any, value: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without(item, value) for name, item in part.items()}
    if isinstance(part, list):
        return [_without(item, value) for item in part]
    if isinstance(part, str) and isinstance(value, str):
        return part.replace(value, f"[{ERASED}]")
    return f"[{ERASED}]" if _same(part, value) else part


def proof_of(subject: Subject, salt: str) -> str:
    """What the ledger keeps of a subject: enough to recognise it, for whoever knows it already."""
    text = f"{salt}:{subject.field}={jsontext.text(subject.value)}"
    return hashlib.sha256(text.encode()).hexdigest()
