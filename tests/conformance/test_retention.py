"""What is old goes, in bounded steps; never what is still needed, and never without the ledger knowing."""

from typing import Any

import pytest
from tests.conformance.helpers import events, one, read
from tests.conformance.promises import check_promises
from tests.conformance.test_rules import add_rule, route
from tests.conftest import OpenRoom

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import DocumentChanged, InvalidField, MessageNotFound
from postroom.kernel import commands as c
from postroom.kernel import jsontext, service_commands, streams
from postroom.kernel.access import keys
from postroom.kernel.budgets.model import Charge
from postroom.kernel.facts import MOVED_KEY
from postroom.kernel.housekeeping.housekeepers import ARCHIVER, PRUNER
from postroom.kernel.housekeeping.steps import HousekeepingStep
from postroom.kernel.ports import AuditEntry, AuditFilter, FactFilter
from postroom.kernel.retention import DAY_S, RecordRule, Retention

ALL = Retention(
    archive_s=DAY_S, ledger_s=DAY_S, records_s=DAY_S, audit_s=DAY_S, streams_s=DAY_S, gone_s=DAY_S
)


def keys_of(records: list[Any]) -> list[tuple[str, Any]]:
    return [(record.key, record.data.get("n")) for record in records]


async def note(room: Room, kind: str, key: str, n: int = 0) -> None:
    await room.record(kind, key, {"n": n})


async def ended(room: Room, queue: str = "jobs", **options: Any) -> str:
    receipt = await room.publish(queue, 1, **options)
    await room.complete(await one(room, queue))
    return receipt.id


# records


async def test_facts_go_when_they_are_old_enough(open_room: OpenRoom, clock: ManualClock) -> None:
    rules = (RecordRule(kind="turn", keep_s=10 * DAY_S), RecordRule(kind="step", keep_s=DAY_S))
    async with open_room(retention=Retention(records=rules)) as room:
        for n in range(3):
            await note(room, "turn", f"t{n}", n)
            await note(room, "step", f"t{n}", n)
            await note(room, "own", "k", n)
        clock.advance(DAY_S + 1)
        await note(room, "step", "young")
        assert await room.housekeep(PRUNER) == 3
        assert keys_of(await room.records("step")) == [("young", 0)]
        assert len(await room.records("turn")) == 3
        clock.advance(10 * DAY_S)
        await room.housekeep(PRUNER)
        assert await room.records("turn") == []
        assert len(await room.records("own")) == 3, "kinds without a rule stay unless somebody says otherwise"


async def test_of_a_state_the_newest_of_each_key_stays(open_room: OpenRoom, clock: ManualClock) -> None:
    rules = (RecordRule(kind="session", keep_s=DAY_S, state=True, last_s=30 * DAY_S),)
    async with open_room(retention=Retention(records=rules)) as room:
        for n in range(3):
            await note(room, "session", "ann", n)
        await note(room, "session", "bob", 1)
        clock.advance(2 * DAY_S)
        assert await room.housekeep(PRUNER) == 2
        assert keys_of(await room.records("session")) == [("ann", 2), ("bob", 1)]
        clock.advance(20 * DAY_S)
        await note(room, "session", "bob", 2)
        clock.advance(10 * DAY_S)
        await room.housekeep(PRUNER)
        assert keys_of(await room.records("session")) == [("bob", 2)]


async def test_a_state_about_an_account_stays_as_long_as_the_account(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    rules = (RecordRule(kind="guard", keep_s=DAY_S, state=True, account=True),)
    async with open_room(retention=Retention(records=rules, accounts_s=5 * DAY_S)) as room:
        await room.run(c.Freeze(account="paused", reason="asked"))
        await room.run(c.Freeze(account="stopped", reason="done", final=True))
        for account in ("paused", "stopped", "unknown"):
            await note(room, "guard", account)
        clock.advance(2 * DAY_S)
        await note(room, "other", "x")
        await room.housekeep(PRUNER)
        assert [key for key, _ in keys_of(await room.records("guard"))] == ["paused", "stopped"]
        clock.advance(10 * DAY_S)
        await room.housekeep(PRUNER)
        await room.housekeep(PRUNER)
        assert [key for key, _ in keys_of(await room.records("guard"))] == ["paused"]


async def test_a_number_is_never_given_again(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=Retention(records=(RecordRule(kind="step", keep_s=0),))) as room:
        for n in range(5):
            await note(room, "step", "k", n)
        before = (await room.records("step"))[-1].id
        clock.advance(1)
        await room.housekeep(PRUNER)
        await note(room, "step", "k", 9)
        assert (await room.records("step"))[-1].id == before + 1


async def test_records_wait_for_a_reader_that_holds(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=Retention(records=(RecordRule(kind="step", keep_s=0),))) as room:
        await note(room, "step", "a")
        clock.advance(1)
        seen = (await room.head()).seq
        await note(room, "step", "b")
        clock.advance(1)
        await note(room, "step", "c")
        clock.advance(DAY_S)
        await room.set_position("pipeline", 0, hold=True)
        assert await room.housekeep(PRUNER) == 0
        await room.set_position("pipeline", seen + 1, hold=True)
        assert await room.housekeep(PRUNER) == 1, "what the reader has passed goes, and nothing after it"
        assert [key for key, _ in keys_of(await room.records("step"))] == ["b", "c"]


async def test_old_states_that_stay_do_not_keep_the_pruner_from_the_others(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    rules = (RecordRule(kind="sticky", keep_s=DAY_S, state=True),)
    async with open_room(retention=Retention(records=rules)) as room:
        for n in range(25):
            await note(room, "sticky", f"chat {n}")
        for n in range(5):
            await note(room, "sticky", "busy", n)
        clock.advance(2 * DAY_S)
        for _ in range(6):
            step: HousekeepingStep = await room.run(c.Housekeep(name=PRUNER, limit=10))
            assert step.items <= 10
        assert len(await room.records("sticky")) == 26


# messages and their keys


async def test_queues_without_a_retention_of_their_own_have_that_of_the_room(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=Retention(archive_s=10 * DAY_S)) as room:
        await room.create_queue("jobs")
        await room.create_queue("brief", retention_s=DAY_S)
        jobs, brief = await ended(room), await ended(room, "brief")
        clock.advance(2 * DAY_S)
        await room.housekeep(ARCHIVER)
        assert await room.housekeep(PRUNER) == 1
        with pytest.raises(MessageNotFound):
            await room.get(brief)
        assert (await room.get(jobs)).archived
        clock.advance(9 * DAY_S)
        assert await room.housekeep(PRUNER) == 1


async def test_a_message_that_ends_and_is_archived_in_one_transaction_waits_for_a_reader_of_its_end(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    """Its last events have no numbers yet when it is archived; the reader has not seen them all the same."""
    retention = Retention(archive_after_s=0, archive_s=DAY_S)
    async with open_room(retention=retention) as room:
        await room.create_queue("jobs")
        receipt = await room.publish("jobs", 1)
        claimed = await one(room, "jobs")
        before = (await room.head()).seq
        done = room.run(c.Complete(message_id=claimed.id, token=claimed.claim_token or ""))
        archived = room.run(c.Housekeep(name=ARCHIVER))
        await done
        assert (await archived).items == 1, "both in one group"
        await room.set_position("lake", before, hold=True)
        clock.advance(2 * DAY_S)
        await room.housekeep(PRUNER)
        assert (await room.get(receipt.id)).state is State.COMPLETED
        await room.set_position("lake", (await room.head()).seq, hold=True)
        await room.housekeep(PRUNER)
        with pytest.raises(MessageNotFound):
            await room.get(receipt.id)


async def test_what_belongs_to_an_open_conversation_stays(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=Retention(archive_s=0)) as room:
        await room.create_queue("jobs")
        asked = await ended(room, correlation_id="talk")
        root = await room.publish("jobs", "waits for its part")
        part = await room.publish("jobs", "part", correlation_id=root.id)
        claimed = {message.id: message for message in await room.claim("jobs", limit=2)}
        await room.complete(claimed[part.id])
        await room.release(claimed[root.id])
        waiting = await room.publish("jobs", "late", correlation_id="talk", delay=40 * DAY_S)
        clock.advance(30 * DAY_S)
        await room.housekeep(ARCHIVER)
        assert await room.housekeep(PRUNER) == 0
        assert (await room.get(asked)).archived
        assert (await room.get(part.id)).archived
        await room.cancel(waiting.id)
        await room.cancel(root.id)
        assert await room.housekeep(PRUNER) == 2


async def test_the_key_of_a_moved_message_goes_with_the_message(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=Retention(archive_s=DAY_S)) as room:
        await room.create_queue("orders")
        await room.create_queue("bulk")
        await add_rule(room, source_queue_id="orders", action=route("bulk"))
        first = await room.publish("orders", 1, key="k")
        await room.complete(await one(room, "bulk"))
        clock.advance(3601)
        await room.housekeep(ARCHIVER)
        again = await room.publish("orders", 1, key="k")
        assert (again.id, again.created) == (first.id, False)
        clock.advance(2 * DAY_S)
        await room.housekeep(PRUNER)
        anew = await room.publish("orders", 1, key="k")
        assert anew.created
        moved = read(room, lambda reader: reader.reads.scan(FactFilter(kind=MOVED_KEY), 10))
        assert [jsontext.decode(fact.data) for fact in moved] == [anew.id]


# the ledger


async def test_a_fold_goes_on_from_where_things_stood_when_events_were_pruned(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=ALL) as room:
        await room.create_queue("jobs", max_retries=1)
        await room.publish_many("jobs", range(4))
        dying, completing, held, _ = await room.claim("jobs", limit=4)
        await room.fail(dying, "broken")
        await room.run(c.Reserve(holder="a", charges=(Charge("money", 5),), seconds=10))
        await room.run(c.Settle(holder="a", charges=(Charge("money", 7),)))
        await room.run(c.SetLimit(account="money", limit=100))
        for pause in (0, DAY_S - 10):
            clock.advance(pause)
            await room.extend(held, DAY_S)
            await room.extend(completing, DAY_S)
        clock.advance(DAY_S - 5)
        await room.housekeep(PRUNER)
        anchor = read(room, lambda reader: reader.anchor())
        assert anchor.seq > 10
        check_promises(room)
        messages, accounts = read(room, lambda reader: reader.standing())
        assert messages[completing.id].state is State.CLAIMED
        assert accounts["default", "money"].spent == 7
        await room.complete(completing)
        await room.replay(dying.id)
        await room.run(c.Settle(holder="b", charges=(Charge("money", 1),)))
        check_promises(room)
        assert (await room.accounts("money"))["money"].spent == 8


async def test_how_a_message_stood_goes_with_the_message(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=ALL) as room:
        await room.create_queue("jobs")
        gone = await ended(room)
        clock.advance(DAY_S / 2)
        await room.publish("jobs", "later")
        clock.advance(DAY_S / 2 + 3601)
        await room.housekeep(ARCHIVER)
        await room.housekeep(PRUNER)
        with pytest.raises(MessageNotFound):
            await room.get(gone)
        assert gone not in read(room, lambda reader: reader.standing()[0])
        check_promises(room)


# the rest


async def test_a_dropped_document_is_forgotten_and_its_changes_still_count(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=ALL) as room:
        for key in ("a", "b"):
            await room.run(c.PutDocument(kind="task", key=key, data={"n": 1}, expect=0))
        await room.run(c.DropDocument(kind="task", key="a"))
        changes = await room.document_changes("task")
        with pytest.raises(DocumentChanged):
            await room.run(c.PutDocument(kind="task", key="a", data={}, expect=1))
        clock.advance(2 * DAY_S)
        await room.housekeep(PRUNER)
        assert await room.document_changes("task") == changes
        assert await room.run(c.PutDocument(kind="task", key="a", data={}, expect=0)) == 1
        assert await room.document_changes("task") == changes + 1
        assert (await room.document("task", "b")) is not None


async def test_a_stream_goes_with_its_parts(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=ALL) as room:
        for name in ("old", "young"):
            await room.run(service_commands.OpenStream(scope="default", stream_id=name))
            await room.run(
                service_commands.AppendChunks(scope="default", stream_id=name, chunks=((0, b"part"),))
            )
            clock.advance(DAY_S - 10)
        await room.housekeep(PRUNER)
        parts = {
            name: read(room, lambda reader, name=name: reader.chunks(name, -1, 9))
            for name in ("old", "young")
        }
        assert (parts["old"], len(parts["young"])) == ([], 1)
        kept = await room.documents(streams.KIND)
        assert [document.data["id"] for document in kept] == ["young"]


async def test_keys_of_one_moment_do_not_hide_a_later_one(open_room: OpenRoom, clock: ManualClock) -> None:
    """More of them than one step looks at, all of one moment and all of them in use."""
    async with open_room(retention=Retention(keys_s=DAY_S)) as room:
        for name in ("a", "b", "c", "d", "e"):
            key, _ = keys.new_key(key_id=name, tenant="default", name=name, now=clock.now())
            await room.run(keys.kept(key, "tester"))
        clock.advance(1)
        revoked, _ = keys.new_key(
            key_id="revoked", tenant="default", name="revoked", now=clock.now(), revoked_at=clock.now()
        )
        await room.run(keys.kept(revoked, "tester"))
        clock.advance(2 * DAY_S)
        for _ in range(4):
            await room.run(c.Housekeep(name=PRUNER, limit=2))
        assert [document.key for document in await room.documents(keys.KIND)] == ["a", "b", "c", "d", "e"]


async def test_keys_that_open_nothing_any_more_are_forgotten(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=Retention(keys_s=DAY_S)) as room:
        now = clock.now()
        for name, more in (
            ("alive", {}),
            ("revoked", {"revoked_at": now}),
            ("expired", {"expires_at": now + 1}),
        ):
            key, _ = keys.new_key(key_id=name, tenant="default", name=name, now=now, **more)
            await room.run(keys.kept(key, "tester"))
        key, _ = keys.new_key(key_id="rotated", tenant="default", name="rotated", now=now)
        await room.run(keys.opens("old", key, "tester", until=now + 1))
        await room.run(keys.opens("new", key, "tester"))
        clock.advance(3 * DAY_S)
        assert await room.housekeep(PRUNER) == 3
        assert [document.key for document in await room.documents(keys.KIND)] == ["alive"]
        hashes = read(room, lambda reader: reader.documents(keys.NOBODY, keys.HASHES, "", "", 9))
        assert [document.key for document in hashes] == ["new"]
        assert [event.details for event in events(room) if event.type == "documents.pruned"] == [
            {"kind": "api_key", "documents": 2},
            {"kind": "api_key_hash", "documents": 1},
        ]


def entry(number: int, now: int) -> AuditEntry:
    return AuditEntry(
        id=f"e{number}",
        tenant="default",
        scope_id=1,
        queue_id=0,
        message_id=None,
        correlation_id=None,
        event_type="message.read",
        permission="read",
        allowed=True,
        status=200,
        actor_type="user",
        actor_id="ann",
        request_id="r",
        details="{}",
        created_at=now,
    )


async def test_the_audit_goes_when_it_is_old_in_bounded_steps(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=ALL) as room:
        await room.run(service_commands.RecordAudit(entries=tuple(entry(n, clock.now()) for n in range(25))))
        clock.advance(2 * DAY_S)
        await room.run(service_commands.RecordAudit(entries=(entry(99, clock.now()),)))
        left = []
        for _ in range(4):
            await room.run(c.Housekeep(name=PRUNER, limit=10))
            left.append(len(read(room, lambda reader: reader.audit(AuditFilter(tenant="default"), None, 99))))
        assert left == [16, 6, 1, 1]


async def test_a_deleted_queue_is_forgotten_when_its_last_message_is(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=Retention(archive_s=10 * DAY_S)) as room:
        await room.create_scope("shop")
        for name in ("kept", "emptied", "rejecting"):
            await room.create_queue(f"shop/{name}", max_retries=1)
        kept = await ended(room, "shop/kept")
        refused = await room.publish("shop/rejecting", 1)
        await room.fail(await one(room, "shop/rejecting"), "no")
        await room.discard(refused.id)
        for name in ("kept", "emptied", "rejecting"):
            await room.delete_queue(f"shop/{name}")
        clock.advance(3601)
        await room.housekeep(ARCHIVER)
        assert await room.housekeep(PRUNER) == 1, "only the one that no message names"
        assert (await room.get(kept)).path == "shop/kept"
        assert (await room.get(refused.id)).origin_queue == "rejecting"
        clock.advance(11 * DAY_S)
        await room.housekeep(PRUNER)
        await room.housekeep(PRUNER)
        names = read(room, lambda reader: {slug for _, slug in reader.queue_names().values()})
        assert not names & {"kept", "emptied", "rejecting"}
        await room.create_queue("shop/kept")
        assert (await room.counts("shop/kept")).completed == 0


async def test_a_deleted_scope_never_gives_its_number_away(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=ALL) as room:
        number = (await room.create_scope("shop")).id
        await room.delete_scope("shop")
        clock.advance(2 * DAY_S)
        await room.housekeep(PRUNER)
        assert (await room.create_scope("other")).id > number, "grants and rules are known by it"


async def test_leaderships_that_ended_and_readers_that_left_are_forgotten(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=ALL) as room:
        await room.run(c.Lead(name="lane/gone", holder="x", seconds=1))
        await room.set_position("left", 1)
        await room.set_position("pipeline", 0, hold=True)
        clock.advance(2 * DAY_S)
        await room.run(c.Lead(name="lane/there", holder="x", seconds=1))
        assert await room.housekeep(PRUNER) == 1
        clock.advance(400 * DAY_S)
        assert await room.housekeep(PRUNER) == 2
        assert [position.name for position in await room.positions()] == ["pipeline"]


async def test_a_position_past_the_end_of_the_ledger_is_refused(room: Room) -> None:
    head = (await room.head()).seq
    await room.set_position("reader", head)
    with pytest.raises(InvalidField, match=f"ends at {head}"):
        await room.set_position("reader", head + 1)
    assert [position.seq for position in await room.positions()] == [head]
