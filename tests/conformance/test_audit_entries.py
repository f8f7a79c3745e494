"""The audit entry of a command says what came of it, in the same commit."""

from typing import Any

import pytest
from tests.conformance.helpers import read

from postroom import NewMessage, Room
from postroom.errors import QueueNotFound
from postroom.kernel import commands as c
from postroom.kernel import jsontext, service_commands
from postroom.kernel.ports import AuditEntry, AuditFilter


def entry(name: str) -> AuditEntry:
    return AuditEntry(
        id=name,
        tenant="default",
        scope_id=0,
        queue_id=0,
        message_id=None,
        correlation_id=None,
        event_type=name,
        permission="p",
        allowed=True,
        status=201,
        actor_type="user",
        actor_id="ann",
        request_id=name,
        details="{}",
        created_at=0,
    )


async def run(room: Room, command: type[c.Command], name: str, **options: Any) -> Any:
    return await room.run(command(audit=entry(name), actor="ann", **options))


def entries(room: Room) -> dict[str, AuditEntry]:
    wanted = AuditFilter(tenant="default", newest_first=False)
    return {each.id: each for each in read(room, lambda reader: reader.audit(wanted, None, 100))}


def details(room: Room, name: str) -> Any:
    return jsontext.decode(entries(room)[name].details)


async def test_a_publish_names_its_first_message_and_how_many_are_new(room: Room) -> None:
    await room.create_queue("jobs")
    messages = [NewMessage(body=1, idempotency_key="k"), NewMessage(body=2)]
    first, _ = await run(room, c.Publish, "both", queue="jobs", messages=messages)
    assert entries(room)["both"].message_id == first.id
    assert entries(room)["both"].correlation_id == first.id
    assert details(room, "both") == {"messages": 2, "created": 2}
    await run(room, c.Publish, "again", queue="jobs", messages=messages[:1])
    assert entries(room)["again"].status == 200, "nothing was made"
    await run(room, c.Publish, "none", queue="jobs", messages=[])
    assert entries(room)["none"].message_id is None


async def test_a_claim_names_what_it_got_and_one_that_got_nothing_leaves_nothing(room: Room) -> None:
    await room.create_queue("jobs")
    await run(room, c.Claim, "empty", queues=("jobs",))
    ids = [(await room.publish("jobs", n)).id for n in range(3)]
    await run(room, c.Claim, "one", queues=("jobs",), limit=1)
    await run(room, c.Claim, "two", queues=("jobs",), limit=2)
    assert entries(room).keys() == {"one", "two"}
    assert entries(room)["one"].message_id == ids[0]
    assert details(room, "two") == {"claimed": ids[1:]}
    assert entries(room)["two"].message_id is None


async def test_scopes_and_queues_are_named_by_their_numbers(room: Room) -> None:
    scope = await run(room, c.CreateScope, "scope", slug="more")
    queue = await run(room, c.CreateQueue, "queue", queue="more/jobs")
    assert entries(room)["scope"].scope_id == scope.id
    assert (entries(room)["queue"].scope_id, entries(room)["queue"].queue_id) == (scope.id, queue.id)


@pytest.mark.parametrize(("verb", "word"), [(c.Replay, "replayed"), (c.Discard, "discarded")])
async def test_dead_letters_of_a_scope_are_counted(
    room: Room, verb: type[c.DeadLetterCommand], word: str
) -> None:
    await room.create_queue("jobs", max_retries=0)
    for n in range(2):
        receipt = await room.publish("jobs", n)
        await room.kill(receipt.id, "enough")
    await run(room, verb, "dead", scope="default")
    assert details(room, "dead") == {word: 2}


async def test_a_closed_stream_names_its_message(room: Room) -> None:
    await room.create_queue("texts")
    await run(
        room, service_commands.OpenStream, "open", scope="default", stream_id="s", queue="default/texts"
    )
    closed = await run(room, service_commands.CloseStream, "close", scope="default", stream_id="s")
    assert closed.message_id is not None
    assert entries(room)["close"].message_id == closed.message_id


async def test_the_commands_of_a_unit_have_their_entries_with_the_time_of_the_change(room: Room) -> None:
    await room.create_queue("jobs")
    made = c.Publish(queue="jobs", messages=[NewMessage(body=1)], audit=entry("in a unit"))
    await room.run(c.Unit(commands=(made, c.SetPosition(name="me", seq=0))))
    assert entries(room)["in a unit"].created_at == room.clock.now()


async def test_a_refused_command_leaves_no_entry_of_its_own(room: Room) -> None:
    with pytest.raises(QueueNotFound):
        await run(room, c.Publish, "refused", queue="nowhere", messages=[NewMessage(body=1)])
    assert entries(room) == {}


async def test_dead_letters_of_some_queues_are_found_among_many_others(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.kernel.transitions.replay.PAGE", 2)
    wanted = await room.create_queue("wanted")
    await room.create_queue("other")
    ids = []
    for n in range(6):
        receipt = await room.publish("wanted" if n % 3 == 2 else "other", n)
        await room.kill(receipt.id, "enough")
        if n % 3 == 2:
            ids.append(receipt.id)
    replay = c.Replay(scope="default", origins=(wanted.id,), limit=1)
    assert await room.run(replay) == ids[:1]
    assert await room.run(c.Replay(scope="default", origins=(wanted.id,))) == ids[1:]
    assert await room.run(c.Discard(scope="default", origins=(wanted.id,))) == []
