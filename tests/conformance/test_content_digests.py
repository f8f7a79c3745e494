"""The chain covers what it points to: whoever changes a body, a result, a record, a document or an audit
entry in the store is found, and what was erased by right is not.
"""

from typing import Any

import pytest
from tests.conformance.helpers import events, one, read
from tests.conformance.promises import all_events, check_contents
from tests.conftest import StoreKind

from postroom import NewMessage, Room
from postroom.clock import ManualClock
from postroom.errors import LedgerBroken
from postroom.kernel import commands as c
from postroom.kernel.erasure.subject import Subject
from postroom.kernel.housekeeping.housekeepers import ARCHIVER, DIGESTER
from postroom.kernel.ports import AuditEntry
from postroom.kernel.reader import Reader
from postroom.services import callers
from postroom.services.container import Services
from postroom.services.keys import KeyDraft
from postroom.stores.postgres import PostgresStore
from postroom.stores.sqlite import SqliteStore

OFFICER = callers.owner(actor="officer")


def check(room: Room) -> None:
    read(room, lambda reader: check_contents(reader, all_events(reader)))


def check_after(room: Room, *statements: str) -> None:
    """As if somebody had changed something with the store's own tools; it is taken back afterwards."""
    store: Any = room._core.store
    tx = store.begin()
    try:
        for statement in statements:
            tx._out.change(statement, ())
        check_contents(Reader(tx), all_events(Reader(tx)))
    finally:
        store.rollback(tx)


def blob(room: Room, text: str) -> str:
    store = room._core.store
    if isinstance(store, SqliteStore):
        return f"CAST('{text}' AS BLOB)"
    return f"'{text}'::bytea" if isinstance(store, PostgresStore) else f"'{text}'"


def audited(name: str, message: NewMessage | None = None) -> c.Publish:
    entry = AuditEntry(
        id=name,
        tenant="default",
        scope_id=0,
        queue_id=0,
        message_id=None,
        correlation_id=None,
        event_type="message.publish",
        permission="message:publish",
        allowed=True,
        status=201,
        actor_type="user",
        actor_id="ann",
        request_id=f"request of {name}",
        details="{}",
        created_at=0,
    )
    return c.Publish(queue="mail", messages=[message or NewMessage(body=name)], audit=entry)


@pytest.fixture(autouse=True)
def _numbers_begin_at_one(store_kind: StoreKind) -> None:
    store_kind.count_from_one()


@pytest.fixture
async def mail(room: Room) -> Room:
    await room.create_queue("mail")
    return room


@pytest.mark.parametrize(
    "change",
    ["body = BODY", "sender = 'Eve'", "labels = '{}'", "content_type = 'x/y'", "ttl_s = 8", "files = '[]'"],
)
async def test_a_changed_content_is_found(mail: Room, change: str) -> None:
    for number in range(3):
        await mail.publish("mail", [number], sender="Ann", labels={"a": 1}, ttl=7, metadata={"m": 1})
    check(mail)
    change = change.replace("BODY", blob(mail, "[3]"))
    with pytest.raises(LedgerBroken, match=r"the content of message .* is not the one it tells of"):
        check_after(mail, f"UPDATE contents SET {change} WHERE seq = 2")


async def test_bodies_that_are_published_together_have_digests_of_their_own(mail: Room) -> None:
    await mail.publish_many("mail", [1, 1, 2])
    noted = [event.details["digest"] for event in events(mail) if event.type == "message.published"]
    assert len(set(noted)) == 3
    with pytest.raises(LedgerBroken, match="the content of message"):
        check_after(mail, f"UPDATE contents SET body = {blob(mail, '2')}")


async def test_a_changed_or_added_result_is_found_also_in_the_archive(mail: Room, clock: ManualClock) -> None:
    for result in ({"paid": 5}, None):
        await mail.publish("mail", 1)
        await mail.complete(await one(mail, "mail"), result)
    clock.advance(90 * 24 * 3600)
    assert await mail.housekeep(ARCHIVER) == 2
    check(mail)
    for change in (f"{blob(mail, '7')} WHERE result IS NULL", "NULL"):
        with pytest.raises(LedgerBroken, match="the result of message"):
            check_after(mail, f"UPDATE archive SET result = {change}")


async def test_a_changed_record_and_a_changed_document_are_found(mail: Room) -> None:
    await mail.record("seen", "k", {"n": 1})
    for number in (1, 2):
        await mail.run(c.PutDocument(kind="note", key="k", data={"n": number}))
    check(mail)
    with pytest.raises(LedgerBroken, match="record 1 is not the one it tells of"):
        check_after(mail, "UPDATE records SET data = '{\"n\":9}' WHERE id = 1")
    with pytest.raises(LedgerBroken, match="the document note/k"):
        check_after(mail, "UPDATE documents SET data = '{\"n\":9}' WHERE kind = 'note'")
    with pytest.raises(LedgerBroken, match="the document note/k"):
        check_after(mail, "UPDATE documents SET data = '{\"n\":1}', version = 1 WHERE kind = 'note'")


async def test_keys_and_rules_of_the_service_are_covered_and_the_ledger_does_not_tell_them(
    mail: Room,
) -> None:
    made = await Services(mail).keys.create(OFFICER, KeyDraft(name="for tests"))
    check(mail)
    assert not any(made.secret in event.data for event in events(mail))
    with pytest.raises(LedgerBroken, match="the document api_key/"):
        check_after(mail, "UPDATE documents SET data = replace(data, 'for tests', 'for Eve')")


async def test_audit_entries_have_digests_and_a_changed_or_missing_one_is_found(
    mail: Room, clock: ManualClock
) -> None:
    for number in range(5):
        await mail.run(audited(f"entry-{number}"))
    assert await mail.housekeep(DIGESTER) == 0, "the newest wait"
    clock.advance(61)
    assert await mail.housekeep(DIGESTER) == 5
    assert await mail.housekeep(DIGESTER) == 0
    await mail.run(audited("later"))
    clock.advance(61)
    assert await mail.housekeep(DIGESTER) == 1
    check(mail)
    with pytest.raises(LedgerBroken, match="audit entries up to"):
        check_after(mail, "UPDATE audit SET actor_id = 'nobody' WHERE seq = 3")
    with pytest.raises(LedgerBroken, match="audit entries up to"):
        check_after(mail, "DELETE FROM audit WHERE seq = 3")
    with pytest.raises(LedgerBroken, match="audit entries up to"):
        check_after(mail, "DELETE FROM audit WHERE seq > 5")
    check_after(mail, "DELETE FROM audit WHERE seq <= 2")  # as the pruner does


@pytest.mark.parametrize("mode", ["erase", "redact"])
async def test_what_was_erased_by_right_leaves_a_tombstone_that_is_verified(
    mail: Room, clock: ManualClock, mode: str
) -> None:
    services = Services(mail)
    await mail.run(audited("one", NewMessage(body={"text": "I am ann"}, sender_id="ann")))
    gone = await one(mail, "mail", worker="w")
    await mail.record("seen", "k", {"by": "ann"}, about=gone)
    await mail.complete(gone, {"to": "ann"})
    clock.advance(120)
    assert await mail.housekeep(DIGESTER) > 0
    subject = Subject(field="sender_id", value="ann")
    job = await services.erasures.create(OFFICER, "default", subject, mode=mode)
    await services.erasures.execute(OFFICER, "default", job.id)
    assert not any("I am ann" in event.data for event in events(mail))
    check(mail)
    with pytest.raises(LedgerBroken, match=f"the content of message {gone.id}"):
        check_after(mail, f"UPDATE contents SET body = {blob(mail, '{}')}")
    with pytest.raises(LedgerBroken, match="the audit entry"):
        check_after(mail, f"UPDATE audit SET actor_id = 'eve' WHERE message_id = '{gone.id}'")


async def test_what_was_written_before_there_were_digests_is_believed(mail: Room) -> None:
    await mail.publish("mail", 1)
    old = [event for event in read(mail, all_events) if "digest" not in event.data]
    store: Any = mail._core.store
    with store.reader() as reads:
        check_contents(Reader(reads), old)
