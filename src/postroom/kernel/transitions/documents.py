"""Documents: small things that change under a name that stays, with a version that tells of every change.

What a document said is kept among the records, and each change is one event of the ledger.
"""

from typing import Any

from postroom.errors import DocumentChanged, DocumentNotFound
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.digests import RECORD_DIGEST, note_document, record_digest
from postroom.kernel.model import Document
from postroom.kernel.transitions.context import TransitionContext


def put(ctx: TransitionContext, command: c.PutDocument) -> int:
    """The new version. With `expect`, only in place of that version; 0 stands for "not there"."""
    before = _check_version(ctx, command.kind, command.key, command.expect)
    text = checks.small_json("data", command.data, ctx.limits.record_bytes) or "{}"
    document = Document.next(before, command.kind, command.key, command.data, ctx.now)
    ctx.session.put_document(ctx.tenant, document)
    details: dict[str, Any] = {}
    if command.history:
        kind, key = command.kind, command.key
        number = ctx.session.add_record(ctx.tenant, kind, key, text, ctx.now)
        details = {"record": number, RECORD_DIGEST: record_digest(number, text)}
    _emit(ctx, document, details)
    return document.version


def drop(ctx: TransitionContext, command: c.DropDocument) -> None:
    before = _check_version(ctx, command.kind, command.key, command.expect)
    if before is None or before.gone:
        raise DocumentNotFound(kind=command.kind, key=command.key)
    document = before.gone_at(ctx.now)
    ctx.session.put_document(ctx.tenant, document)
    _emit(ctx, document, {"gone": True})


def expect(ctx: TransitionContext, command: c.ExpectDocument) -> None:
    """Changes nothing: it stops a unit of work whose grounds have changed."""
    _check_version(ctx, command.kind, command.key, command.version)


def _check_version(ctx: TransitionContext, kind: str, key: str, expected: int | None) -> Document | None:
    checks.check_name("kind", kind, ctx.limits)
    checks.check_name("key", key, ctx.limits)
    found = ctx.session.document(ctx.tenant, kind, key)
    if expected is not None:
        version = 0 if found is None or found.gone else found.version
        if version != expected:
            raise DocumentChanged(kind=kind, key=key, expected=expected, found=version)
    return found


def _emit(ctx: TransitionContext, document: Document, details: dict[str, Any]) -> None:
    data = {"key": document.key, "version": document.version, **details, **note_document(document)}
    ctx.emit(f"document.{document.kind}", data=data)
