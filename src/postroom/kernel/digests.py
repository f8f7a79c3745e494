"""Digests of what the ledger only points to: contents, results, records, documents and audit entries.

An event carries them in its data, so the chain covers what it tells of. What they are made of never changes:
a digest of today must be the same in ten years. Another recipe gets another field name.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.model import Document
from postroom.kernel.ports import AuditEntry
from postroom.kernel.rows import Content

# In an event's data: of the content of its message.
DIGEST = "digest"
RESULT_DIGEST = "result_digest"
RECORD_DIGEST = "record_digest"
# A document is known by a digest of its key: keys are not for every reader of the ledger.
DOCUMENT = "document"
# What an erasure has left of messages, and of audit entries about them.
TOMBSTONES = "tombstones"
AUDIT_TOMBSTONES = "audit_tombstones"
# Of audit entries from the `first` to the `last`.
AUDIT_DIGESTED = "audit.digested"

SIZE = 20
_blake2b = hashlib.blake2b


class ContentHash:
    """The digest of contents that differ in their bodies only, and each by the message it belongs to."""

    __slots__ = ("_common",)

    def __init__(self, content: Content) -> None:
        common = (
            content.content_type,
            content.labels,
            None if content.ttl_s is None else float(content.ttl_s),
            content.deadline,
            content.delay_until,
            content.hitl_spec,
            content.source_type,
            content.source_id,
            content.channel,
            content.sender,
            content.sender_id,
            content.agent,
            content.from_agent,
            content.files,
            content.metadata,
        )
        self._common = _blake2b(jsontext.encode(common), digest_size=SIZE)

    def digest(self, message_id: str, body: bytes | None) -> str:
        hash_ = self._common.copy()
        if body is None:
            hash_.update(f"{message_id}-".encode())
        else:
            hash_.update(f"{message_id}+".encode())
            hash_.update(body)
        return hash_.hexdigest()


def content_digest(message_id: str, content: Content) -> str:
    return ContentHash(content).digest(message_id, content.body)


def result_digest(message_id: str, result: bytes) -> str:
    hash_ = _blake2b(f"{message_id}=".encode(), digest_size=SIZE)
    hash_.update(result)
    return hash_.hexdigest()


def record_digest(number: int, data: str) -> str:
    return _of((number, data))


def document_name(kind: str, key: str) -> str:
    return _of((kind, key))


def document_digest(kind: str, key: str, version: int, data: str) -> str:
    return _of((kind, key, version, data))


def note_document(document: Document) -> dict[str, Any]:
    """What an event says of a document that was put or is gone."""
    data = jsontext.text(document.data)
    return {
        DOCUMENT: {
            "kind": document.kind,
            "name": document_name(document.kind, document.key),
            "version": document.version,
            DIGEST: document_digest(document.kind, document.key, document.version, data),
        }
    }


def audit_digest(entry: AuditEntry, *, details: bool = True) -> str:
    """Of one entry. Without details: what remains of one that told of an erased message."""
    fields = msgspec.structs.asdict(entry) | ({} if details else {"details": "{}"})
    return _of({**fields, "allowed": bool(entry.allowed)})


def joint_digest(digests: Iterable[str]) -> str:
    """One for many, in their order."""
    return _blake2b("".join(digests).encode(), digest_size=SIZE).hexdigest()


def _of(value: Any) -> str:
    return _blake2b(jsontext.encode(value), digest_size=SIZE).hexdigest()
