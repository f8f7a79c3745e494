"""Documents of the service (keys, grants, rules, patterns, webhooks), and the audit.

Unlike other documents their earlier versions are not kept among the records: they may hold secrets.
"""

from collections.abc import Callable
from typing import Any

from postroom.errors import DocumentNotFound, InvalidField, SlugTaken
from postroom.kernel import checks, service_commands, streams
from postroom.kernel.access import version
from postroom.kernel.digests import note_document
from postroom.kernel.erasure import steps
from postroom.kernel.model import Document
from postroom.kernel.reviews import answering, patterns
from postroom.kernel.rules import rule
from postroom.kernel.transitions import processes, request_counts
from postroom.kernel.transitions.context import TransitionContext


def put(ctx: TransitionContext, command: service_commands.PutServiceDocument) -> Document:
    checks.check_name("kind", command.kind, ctx.limits)
    checks.check_name("key", command.key, ctx.limits)
    checks.small_json("data", command.data, ctx.limits.record_bytes)
    _check(command)
    before = ctx.session.document(ctx.tenant, command.kind, command.key)
    there = before is not None and not before.gone
    if command.new and there:
        raise SlugTaken(kind=command.kind.replace("_", " "), slug=command.label or command.key)
    if command.kind == rule.KIND and not there:
        _check_room_for_rule(ctx, command.key)
    document = Document.next(before, command.kind, command.key, command.data, ctx.now)
    ctx.session.put_document(ctx.tenant, document)
    _emit(ctx, command, document, "updated" if there else "created")
    return document


def drop(ctx: TransitionContext, command: service_commands.DropServiceDocument) -> None:
    before = ctx.session.document(ctx.tenant, command.kind, command.key)
    if before is None or before.gone:
        raise DocumentNotFound(kind=command.kind.replace("_", " "), key=command.key)
    document = before.gone_at(ctx.now)
    ctx.session.put_document(ctx.tenant, document)
    _emit(ctx, command, document, "deleted")


def _emit(
    ctx: TransitionContext,
    command: service_commands.PutServiceDocument | service_commands.DropServiceDocument,
    document: Document,
    what: str,
) -> None:
    if command.kind in version.COUNTED:
        version.move_version(ctx.session, ctx.now)
    ctx.emit(f"{command.kind}.{what}", scope=command.scope, data={**command.note, **note_document(document)})


def audit(ctx: TransitionContext, command: service_commands.RecordAudit) -> None:
    """Not an event of the ledger: a look at something is no change of it."""
    ctx.session.add_audit(command.entries)


def _check_room_for_rule(ctx: TransitionContext, key: str) -> None:
    scope_id = key.partition("/")[0]
    if scope_id.isdecimal():
        found = ctx.session.documents(ctx.tenant, rule.KIND, f"{scope_id}/", "", rule.MOST_RULES)
        if len(found) >= rule.MOST_RULES:
            raise InvalidField("name", f"is one too many: a scope has at most {rule.MOST_RULES} rules")


def _check(command: service_commands.PutServiceDocument) -> None:
    """Documents on which messages will depend are checked here, whoever writes them."""
    if command.kind == rule.KIND:
        rule.check(rule.read(command.data))
    elif command.kind == patterns.KIND:
        patterns.check_pattern(
            command.data.get("name"), command.data.get("version"), command.data.get("spec")
        )


HANDLERS: dict[type[Any], Callable[[TransitionContext, Any], Any]] = {
    service_commands.PutServiceDocument: put,
    service_commands.DropServiceDocument: drop,
    service_commands.RecordAudit: audit,
    service_commands.ShareRequestCounts: request_counts.share,
    service_commands.ListProcesses: processes.list_processes,
    service_commands.AnswerReview: answering.answer,
    service_commands.OpenStream: streams.open_stream,
    service_commands.AppendChunks: streams.append,
    service_commands.CloseStream: streams.close,
    service_commands.Erase: steps.erase,
    service_commands.EraseEchoes: steps.erase_echoes,
    service_commands.FinishErasure: steps.finish,
}
