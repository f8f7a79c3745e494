"""One step of an erasure, and its end: counted first, then carried out, with proof in the ledger."""

from collections.abc import Iterator

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import erasure, jsontext, service, webhooks
from postroom.kernel.desk import Desk
from postroom.kernel.erasure import Subject
from postroom.kernel.model import Document
from postroom.kernel.reviews import timeouts
from postroom.kernel.rows import Stored
from postroom.kernel.states import OPEN, State

AT_ONCE = 100


class Step(msgspec.Struct, frozen=True):
    """The messages of this step, those that must wait for their claim to end, and where the next goes on.

    `earlier` are those that the same erasure has found before, told with its first step.
    """

    found: tuple[str, ...]
    claimed: tuple[str, ...]
    next_after: int | None
    earlier: tuple[str, ...] = ()


def erase(desk: Desk, command: service.Erase) -> Step:
    subject = msgspec.convert(command.subject, Subject)
    erasure.check_subject(subject)
    if command.mode not in ("erase", "redact"):
        raise InvalidField("mode", f"is {command.mode!r}, must be erase or redact")
    scope_id = desk.scope(command.scope).id if command.scope is not None else None
    looked = desk.tx.erasable(desk.tenant, scope_id, command.after, command.limit)
    concerned = [stored for stored in looked if erasure.concerns(stored, subject)]
    claimed = [stored.row.id for stored in concerned if stored.row.state == State.CLAIMED]
    free = [stored for stored in concerned if stored.row.state != State.CLAIMED]
    earlier = _earlier(desk, command.job_id) if command.execute and not command.after else ()
    if command.execute and free:
        for stored in free:
            _erase_one(desk, stored, subject, command.mode)
        ids = [stored.row.id for stored in free]
        desk.tx.forget_records(desk.tenant, ids)
        desk.tx.forget_audit(desk.tenant, ids)
        _remember(desk, f"{command.job_id}/{looked[-1].row.seq:020}", ids)
        data = {"job": command.job_id, "messages": len(ids), "mode": command.mode}
        desk.record("erasure.step", scope=command.scope, data=data)
    more = looked[-1].row.seq if len(looked) == command.limit else None
    return Step(tuple(stored.row.id for stored in free), tuple(claimed), more, earlier)


def _lists(desk: Desk, job_id: str) -> Iterator[Document]:
    after = ""
    while found := desk.tx.documents(desk.tenant, erasure.ERASED_IDS, f"{job_id}/", after, AT_ONCE):
        yield from found
        after = found[-1].key


def _earlier(desk: Desk, job_id: str) -> tuple[str, ...]:
    return tuple(message_id for each in _lists(desk, job_id) for message_id in each.data["ids"])


def _remember(desk: Desk, key: str, ids: list[str]) -> None:
    """With those an earlier run has found in the same place: once erased, they are not found again."""
    before = desk.tx.document(desk.tenant, erasure.ERASED_IDS, key)
    known = before.data.get("ids", []) if before is not None else []
    data = {"ids": list(dict.fromkeys([*known, *ids]))}
    desk.tx.save_document(desk.tenant, Document.next(before, erasure.ERASED_IDS, key, data, desk.now))


def _erase_one(desk: Desk, stored: Stored, subject: Subject, mode: str) -> None:
    content = stored.content
    if mode == "redact":
        content = erasure.redacted(content, subject)
        result = erasure.redacted_bytes(stored.row.result, subject)
        reason = erasure.redacted_text(stored.row.failure_reason, subject)
    else:
        content, result = erasure.emptied(content), None
        reason = None if stored.row.failure_reason is None else erasure.ERASED
    if content.hitl_spec is None and stored.content.hitl_spec is not None and stored.row.state in OPEN:
        timeouts.given_up(desk, stored.row, "it was erased")
    desk.tx.rewrite(stored.row.id, content, result=result, failure_reason=reason)


def erase_echoes(desk: Desk, command: service.EraseEchoes) -> Step:
    """What was told to others of these messages: deliveries of webhooks, and copies for subscribers."""
    about = set(command.message_ids)
    looked = desk.tx.erasable(desk.tenant, None, command.after, command.limit)
    found = [stored for stored in looked if _echo_of(stored) in about]
    for stored in found:
        reason = None if stored.row.failure_reason is None else erasure.ERASED
        content = erasure.emptied(stored.content)
        # A delivery must still be known by its webhook.
        content.labels = stored.content.labels
        desk.tx.rewrite(stored.row.id, content, result=None, failure_reason=reason)
    more = looked[-1].row.seq if len(looked) == command.limit else None
    return Step(tuple(stored.row.id for stored in found), (), more)


def _echo_of(stored: Stored) -> str | None:
    if stored.row.message_type == webhooks.MESSAGE:
        return jsontext.decode_any(stored.content.labels, {}).get("about")
    return stored.row.causation_id if stored.row.message_type in webhooks.EVENTS else None


def finish(desk: Desk, command: service.FinishErasure) -> None:
    for each in list(_lists(desk, command.job_id)):
        desk.tx.save_document(desk.tenant, each.gone_at(desk.now))
    desk.record("erasure.completed", scope=command.scope, data={"job": command.job_id, **command.proof})
