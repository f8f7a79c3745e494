"""Documents of the service (keys, grants, rules, patterns, webhooks), and the audit.

Unlike other documents their earlier versions are not kept among the records: they may hold secrets.
"""

from collections.abc import Callable
from typing import Any

from postroom.errors import DocumentNotFound, SlugTaken
from postroom.kernel import checks, service, streams
from postroom.kernel.desk import Desk
from postroom.kernel.model import Document
from postroom.kernel.reviews import answering, patterns
from postroom.kernel.rules import rule
from postroom.kernel.verbs import erasing


def file(desk: Desk, command: service.File) -> Document:
    checks.check_name("kind", command.kind, desk.limits)
    checks.check_name("key", command.key, desk.limits)
    checks.small_json("data", command.data, desk.limits.record_bytes)
    _check(command)
    before = desk.tx.document(desk.tenant, command.kind, command.key)
    there = before is not None and not before.gone
    if command.new and there:
        raise SlugTaken(kind=command.kind.replace("_", " "), slug=command.label or command.key)
    document = Document.next(before, command.kind, command.key, command.data, desk.now)
    desk.tx.save_document(desk.tenant, document)
    _tell(desk, command, "updated" if there else "created")
    return document


def unfile(desk: Desk, command: service.Unfile) -> None:
    before = desk.tx.document(desk.tenant, command.kind, command.key)
    if before is None or before.gone:
        raise DocumentNotFound(kind=command.kind.replace("_", " "), key=command.key)
    document = before.gone_at(desk.now)
    desk.tx.save_document(desk.tenant, document)
    _tell(desk, command, "deleted")


def _tell(desk: Desk, command: service.File | service.Unfile, what: str) -> None:
    if command.kind == "rule":
        desk.tx.forget_rules()
        desk.ruled = desk.tx.ruled_scopes()
    desk.record(f"{command.kind}.{what}", scope=command.scope, data=command.note)


def audit(desk: Desk, command: service.Audit) -> None:
    """Not an event of the ledger: a look at something is no change of it."""
    for entry in command.entries:
        desk.tx.add_audit(entry)


def _check(command: service.File) -> None:
    """Documents on which messages will depend are checked here, whoever files them."""
    if command.kind == rule.KIND:
        rule.check(rule.read(command.data))
    elif command.kind == patterns.KIND:
        patterns.check_pattern(
            command.data.get("name"), command.data.get("version"), command.data.get("spec")
        )


HANDLERS: dict[type[Any], Callable[[Desk, Any], Any]] = {
    service.File: file,
    service.Unfile: unfile,
    service.Audit: audit,
    service.AnswerReview: answering.answer,
    service.OpenStream: streams.open_stream,
    service.AppendChunks: streams.append,
    service.CloseStream: streams.close,
    service.Erase: erasing.erase,
    service.EraseEchoes: erasing.erase_echoes,
    service.FinishErasure: erasing.finish,
}
