"""What was is found by time and by whom it was about, page by page, and goes when it may."""

from typing import Any

import msgspec
import pytest
from tests.conformance.helpers import read
from tests.conformance.promises import check_promises
from tests.conformance.test_audit_entries import entry
from tests.conftest import OpenRoom

from postroom import Room
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField, MessageNotFound
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.housekeeping.housekeepers import ARCHIVER, PRUNER, Retention
from postroom.kernel.ports import AuditFilter, MessageFilter


async def test_events_of_a_conversation_are_found_within_a_span_of_time(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs")
    times = []
    for n in range(8):
        clock.advance(10)
        times.append(clock.now())
        await room.publish("jobs", n, correlation_id="talk" if n % 2 else "other")

    def about(talk: str, since: int, until: int, limit: int = 100) -> list[int]:
        found = read(room, lambda reader: reader.events_about("default", talk, since, until, limit))
        return [event.time for event in found]

    assert about("talk", 0, times[-1]) == times[1::2]
    assert about("talk", times[3], times[5]) == [times[3], times[5]]
    assert about("talk", times[3] + 1, times[5] - 1) == []
    assert about("other", times[0], times[6], limit=2) == [times[0], times[2]]
    assert about("nobody", 0, times[-1]) == []


async def test_audit_entries_are_found_by_what_they_are_about_and_when(room: Room) -> None:
    made = [
        msgspec.structs.replace(
            entry(f"e{n}"), created_at=n * SECOND, queue_id=n % 3, actor_id="ann" if n < 4 else "bob"
        )
        for n in range(6)
    ]
    await room.run(service_commands.RecordAudit(entries=tuple(made)))

    def found(after: str | None = None, limit: int = 100, **wanted: Any) -> list[str]:
        filter_ = AuditFilter(tenant="default", **wanted)
        return [each.id for each in read(room, lambda reader: reader.audit(filter_, after, limit))]

    assert found() == ["e5", "e4", "e3", "e2", "e1", "e0"]
    assert found(newest_first=False) == ["e0", "e1", "e2", "e3", "e4", "e5"]
    assert found(actor_id="bob") == ["e5", "e4"]
    assert found(since=2 * SECOND, until=5 * SECOND) == ["e4", "e3", "e2"]
    assert found(queue_ids=(1,)) == ["e4", "e3", "e1", "e0"], "what is about no queue is anybody's"
    assert found(limit=2) == ["e5", "e4"]
    assert found(after="e4", limit=2) == ["e3", "e2"]
    assert found(after="e1", newest_first=False) == ["e2", "e3", "e4", "e5"]
    assert found(allowed=False) == []


@pytest.fixture
async def ended(room: Room, clock: ManualClock) -> Room:
    """Five messages that have ended and are archived, in two queues."""
    for n in range(5):
        queue = f"jobs{n % 2}"
        await room.create_queue(queue, exist_ok=True)
        await room.publish(queue, n)
        await room.complete((await room.claim(queue))[0])
    clock.advance(7200)
    await room.housekeep(ARCHIVER)
    return room


async def test_history_that_somebody_else_keeps_can_be_dropped_step_by_step(
    ended: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.kernel.housekeeping.pruning.QUEUES_AT_ONCE", 1)
    head = (await ended.head()).seq
    prune = c.PruneHistory(what="messages", keep_s=60, up_to=head, limit=3)
    assert [await ended.run(prune) for _ in range(3)] == [3, 2, 0]
    drop = c.PruneHistory(what="events", keep_s=60, up_to=head, limit=1000)
    assert await ended.run(drop) > 0
    check_promises(ended)
    kept = msgspec.structs.replace(prune, keep_s=-1)
    with pytest.raises(InvalidField):
        await ended.run(kept)


async def test_history_that_is_too_young_or_that_nobody_has_passed_stays(ended: Room) -> None:
    for keep_s, up_to in ((100_000, 10_000), (60, 0)):
        for what in ("messages", "events"):
            assert await ended.run(c.PruneHistory(what=what, keep_s=keep_s, up_to=up_to)) == 0


async def test_what_shall_stay_for_ever_does(open_room: OpenRoom, clock: ManualClock) -> None:
    for_ever = Retention(
        archive_after_s=None,
        dead_after_s=None,
        accounts_s=None,
        audit_s=None,
        streams_s=None,
        keys_s=None,
        gone_s=None,
    )
    async with open_room(retention=for_ever) as room:
        await room.create_queue("jobs")
        receipt = await room.publish("jobs", 1)
        await room.complete((await room.claim("jobs"))[0])
        await room.run(service_commands.OpenStream(scope="default", stream_id="s"))
        await room.run(service_commands.RecordAudit(entries=(entry("e"),)))
        await room.run(c.PutDocument(kind="note", key="n", data={}))
        await room.run(c.DropDocument(kind="note", key="n"))
        clock.advance(10 * 365 * 86400)
        for name in (ARCHIVER, PRUNER):
            assert await room.housekeep(name) == 0
        stored = read(room, lambda reader: reader.get(receipt.id))
        assert stored is not None
        assert (stored.row.state, stored.archived) == ("completed", False)


async def test_each_queue_has_its_own_retention_and_all_others_the_common_one(
    open_room: OpenRoom, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.kernel.housekeeping.pruning.QUEUES_AT_ONCE", 2)
    async with open_room(retention=Retention(archive_after_s=10, archive_s=1000)) as room:
        ids = {}
        for number, seconds in enumerate((100, None, 5000, None, 100)):
            settings: Any = {} if seconds is None else {"retention_s": seconds}
            await room.create_queue(f"jobs{number}", **settings)
            ids[number] = (await room.publish(f"jobs{number}", number)).id
            await room.complete((await room.claim(f"jobs{number}"))[0])
        clock.advance(500)
        await room.housekeep(ARCHIVER)
        left = []
        for seconds in (0, 1000):
            clock.advance(seconds)
            for _ in range(8):
                await room.housekeep(PRUNER)
            found = read(room, lambda reader: reader.page(MessageFilter(), None, 100))
            left.append(sorted(number for number, id_ in ids.items() if id_ in {m.row.id for m in found}))
        assert left == [[1, 2, 3], [2]]


async def test_a_filter_by_names_that_are_not_there_finds_nothing(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    for filter_ in (
        MessageFilter(queue="default/gone"),
        MessageFilter(scope="gone"),
        MessageFilter(queue="default/jobs", queue_ids=(99,)),
    ):
        assert read(room, lambda reader, filter_=filter_: reader.page(filter_, None, 10)) == []
    assert read(room, lambda reader: reader.schemas("default", "gone")) == []
    with pytest.raises(KeyError):
        read(room, lambda reader: reader.queue_names()[99])


async def test_claims_extended_together_keep_those_that_are_still_held(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room() as room:
        await room.create_queue("jobs")
        for n in range(3):
            await room.publish("jobs", n)
        held, done, other = await room.claim("jobs", limit=3)
        await room.complete(done)
        claims = tuple((each.id, each.claim_token or "") for each in (held, done))
        ends = await room.run(
            c.ExtendMany(claims=(*claims, (other.id, "wrong"), ("nobody", "x")), lease_s=90)
        )
        assert ends == {held.id: clock.now() + 90 * SECOND}
        most = room.limits.claim_batch
        with pytest.raises(InvalidField):
            await room.run(c.ExtendMany(claims=claims * most))
        with pytest.raises(InvalidField):
            await room.run(c.ExtendMany(claims=claims, lease_s=-1))


async def test_an_archived_message_cannot_be_ended_again(ended: Room) -> None:
    [first, *_] = read(ended, lambda reader: reader.page(MessageFilter(), None, 10))
    for command in (c.Cancel(message_id=first.row.id), c.Kill(message_id=first.row.id, reason="x")):
        with pytest.raises(Exception, match="archived"):
            await ended.run(command)
    with pytest.raises(MessageNotFound):
        await ended.run(c.Cancel(message_id="nobody"))
