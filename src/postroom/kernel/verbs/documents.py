"""Documents: small things that change under a name that stays, with a version that tells of every change.

What a document said is kept among the records, and each change is one event of the ledger.
"""

from typing import Any

from postroom.errors import DocumentChanged, DocumentNotFound
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.ledger import Draft
from postroom.kernel.model import Document


def put(desk: Desk, command: c.PutDocument) -> int:
    """The new version. With `expect`, only in place of that version; 0 stands for "not there"."""
    before = _checked(desk, command.kind, command.key, command.expect)
    text = checks.small_json("data", command.data, desk.limits.record_bytes) or "{}"
    document = Document.next(before, command.kind, command.key, command.data, desk.now)
    desk.tx.save_document(desk.tenant, document)
    told: dict[str, Any] = {}
    if command.history:
        kind, key = command.kind, command.key
        told["record"] = desk.tx.insert_record(desk.tenant, kind, key, text, None, None, desk.now)
    _tell(desk, document, told)
    return document.version


def drop(desk: Desk, command: c.DropDocument) -> None:
    before = _checked(desk, command.kind, command.key, command.expect)
    if before is None or before.gone:
        raise DocumentNotFound(kind=command.kind, key=command.key)
    document = before.gone_at(desk.now)
    desk.tx.save_document(desk.tenant, document)
    _tell(desk, document, {"gone": True})


def expect(desk: Desk, command: c.ExpectDocument) -> None:
    """Changes nothing: it stops a unit of work whose grounds have changed."""
    _checked(desk, command.kind, command.key, command.version)


def _checked(desk: Desk, kind: str, key: str, expected: int | None) -> Document | None:
    checks.check_name("kind", kind, desk.limits)
    checks.check_name("key", key, desk.limits)
    found = desk.tx.document(desk.tenant, kind, key)
    if expected is not None:
        version = 0 if found is None or found.gone else found.version
        if version != expected:
            raise DocumentChanged(kind=kind, key=key, expected=expected, found=version)
    return found


def _tell(desk: Desk, document: Document, more: dict[str, Any]) -> None:
    data = {"key": document.key, "version": document.version, **more}
    desk.tx.append(
        Draft(
            desk.now,
            f"document.{document.kind}",
            desk.tenant,
            None,
            None,
            None,
            None,
            None,
            desk.actor,
            jsontext.text(data),
        )
    )
