"""One step of an erasure, and its end: counted first, then carried out, with proof in the ledger."""

from collections.abc import Iterator
from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import jsontext, service_commands, webhooks
from postroom.kernel.digests import AUDIT_TOMBSTONES, TOMBSTONES, audit_digest, content_digest, result_digest
from postroom.kernel.erasure import subject as erasure
from postroom.kernel.erasure.subject import Subject
from postroom.kernel.model import Document
from postroom.kernel.ports import MANY, AuditFilter, Rewritten, RowFilter
from postroom.kernel.rows import Stored
from postroom.kernel.states import OPEN, State
from postroom.kernel.transitions.context import TransitionContext

AT_ONCE = 100


class ErasureStep(msgspec.Struct, frozen=True):
    """The messages of this step, those that must wait for their claim to end, and where the next goes on.

    `earlier` are those that the same erasure has found before, told with its first step.
    """

    found: tuple[str, ...]
    claimed: tuple[str, ...]
    next_after: int | None
    earlier: tuple[str, ...] = ()


def erase(ctx: TransitionContext, command: service_commands.Erase) -> ErasureStep:
    subject = msgspec.convert(command.subject, Subject)
    erasure.check_subject(subject)
    if command.mode not in ("erase", "redact"):
        raise InvalidField("mode", f"is {command.mode!r}, must be erase or redact")
    scope_id = ctx.scope(command.scope).id if command.scope is not None else None
    looked = _page(ctx, scope_id, command.after, command.limit)
    reached = set(command.queue_ids) if command.queue_ids is not None else None
    concerned = [
        stored for stored in looked if _is_reached(stored, reached) and erasure.concerns(stored, subject)
    ]
    claimed = [stored.row.id for stored in concerned if stored.row.state == State.CLAIMED]
    free = [stored for stored in concerned if stored.row.state != State.CLAIMED]
    earlier = _earlier(ctx, command.job_id) if command.execute and not command.after else ()
    if command.execute and free:
        erased = _erase(ctx, free, subject, command.mode)
        ids = [stored.row.id for stored in free]
        tombstones = _tombstones(ctx, erased)
        ctx.session.direct.forget(ctx.tenant, ids)
        _remember(ctx, f"{command.job_id}/{looked[-1].row.seq:020}", ids)
        data = {"job": command.job_id, "messages": len(ids), "mode": command.mode, **tombstones}
        ctx.emit("erasure.step", scope=command.scope, data=data)
    more = looked[-1].row.seq if len(looked) == command.limit else None
    return ErasureStep(tuple(stored.row.id for stored in free), tuple(claimed), more, earlier)


def _is_reached(stored: Stored, queue_ids: set[int] | None) -> bool:
    """A dead letter is reached by those who reach where it came from too."""
    places = {stored.row.queue_id, stored.row.origin_queue_id} - {None}
    return queue_ids is None or places <= queue_ids


def _page(ctx: TransitionContext, scope_id: int | None, after: int, limit: int) -> list[Stored]:
    """Messages live and archived, deliveries too; whether they are about the subject is to be seen."""
    wanted = RowFilter(tenant=ctx.tenant, scope_id=scope_id)
    return ctx.session.page(wanted, after=after, limit=limit, archived=True)


def _lists(ctx: TransitionContext, job_id: str) -> Iterator[Document]:
    after = ""
    while found := ctx.session.documents(ctx.tenant, erasure.ERASED_IDS, f"{job_id}/", after, AT_ONCE):
        yield from found
        after = found[-1].key


def _earlier(ctx: TransitionContext, job_id: str) -> tuple[str, ...]:
    return tuple(message_id for each in _lists(ctx, job_id) for message_id in each.data["ids"])


def _remember(ctx: TransitionContext, key: str, ids: list[str]) -> None:
    """With those an earlier run has found in the same place: once erased, they are not found again."""
    before = ctx.session.document(ctx.tenant, erasure.ERASED_IDS, key)
    known = before.data.get("ids", []) if before is not None else []
    data = {"ids": list(dict.fromkeys([*known, *ids]))}
    ctx.session.put_document(ctx.tenant, Document.next(before, erasure.ERASED_IDS, key, data, ctx.now))


def _erase(ctx: TransitionContext, found: list[Stored], subject: Subject, mode: str) -> list[Rewritten]:
    erased: list[Rewritten] = []
    done: list[Rewritten] = []
    for stored in found:
        rewritten = _erase_one(stored, subject, mode)
        asks = stored.content.hitl_spec is not None and rewritten.content.hitl_spec is None
        if asks and stored.row.state in OPEN:
            # What waits for it may be among those erased already, and is told why it ends.
            ctx.session.rewrite_many(erased)
            done += erased
            erased = []
            ctx.hooks.give_up_review(ctx, stored.row, "it was erased")
        erased.append(rewritten)
    ctx.session.rewrite_many(erased)
    return done + erased


def _tombstones(ctx: TransitionContext, erased: list[Rewritten]) -> dict[str, Any]:
    """What is left in their places, for whoever verifies the ledger: digests of contents and results by
    message, and of audit entries about them as they were and as they are."""
    about = AuditFilter(tenant=ctx.tenant, message_ids=tuple(each.message_id for each in erased))
    audited = ctx.session.tx.audit(about, None, MANY)
    return {
        TOMBSTONES: {
            each.message_id: [
                content_digest(each.message_id, each.content),
                None if each.result is None else result_digest(each.message_id, each.result),
            ]
            for each in erased
        },
        AUDIT_TOMBSTONES: {
            entry.id: [audit_digest(entry), audit_digest(entry, details=False)] for entry in audited
        },
    }


def _erase_one(stored: Stored, subject: Subject, mode: str) -> Rewritten:
    content = stored.content
    if mode == "redact":
        content = erasure.redacted(content, subject)
        result = erasure.redacted_bytes(stored.row.result, subject)
        reason = erasure.redacted_text(stored.row.failure_reason, subject)
    else:
        content, result = erasure.emptied(content), None
        reason = None if stored.row.failure_reason is None else erasure.ERASED
    key = None
    if erasure.tells_of(stored.row.idempotency_key, subject):
        # It stays taken, under a name that tells of nobody.
        key = stored.row.idempotency_key = f"{erasure.ERASED}:{stored.row.id}"
    return Rewritten(stored.row.id, content, result, reason, key)


def erase_echoes(ctx: TransitionContext, command: service_commands.EraseEchoes) -> ErasureStep:
    """What was told to others of these messages: deliveries of webhooks, and copies for subscribers."""
    about = set(command.message_ids)
    looked = _page(ctx, None, command.after, command.limit)
    found = [stored for stored in looked if _echo_of(stored) in about]
    erased = []
    for stored in found:
        reason = None if stored.row.failure_reason is None else erasure.ERASED
        content = erasure.emptied(stored.content)
        # A delivery must still be known by its webhook.
        content.labels = stored.content.labels
        erased.append(Rewritten(stored.row.id, content, None, reason))
    ctx.session.rewrite_many(erased)
    if erased:
        ctx.emit("erasure.echoes", data={"messages": len(erased), **_tombstones(ctx, erased)})
    more = looked[-1].row.seq if len(looked) == command.limit else None
    return ErasureStep(tuple(stored.row.id for stored in found), (), more)


def _echo_of(stored: Stored) -> str | None:
    if stored.row.message_type == webhooks.MESSAGE:
        return jsontext.decode_any(stored.content.labels, {}).get("about")
    return stored.row.causation_id if stored.row.message_type in webhooks.EVENTS else None


def finish(ctx: TransitionContext, command: service_commands.FinishErasure) -> None:
    for each in list(_lists(ctx, command.job_id)):
        ctx.session.put_document(ctx.tenant, each.gone_at(ctx.now))
    ctx.emit("erasure.completed", scope=command.scope, data={"job": command.job_id, **command.proof})
