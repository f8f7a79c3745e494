"""Events are derived from the ledger: the same whenever they are read, and to go on after any of them."""

from pathlib import Path
from typing import Any

from tests.acceptance.office import staffed
from tests.office.events.test_recorded import told
from tests.office.schedules.desk import DIRECTORY, a_book, furnish

from postroom import Room
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.office import queues
from postroom.office.events import ContractEvent, RoomLookup, contract_events, translator
from postroom.office.events.derive import length
from postroom.providers.protocol import ErrorKind
from postroom.providers.script_rules import ScriptRule

TEAM = (
    ScriptRule(agent="lead", reply="I ask. [@coder: fix it] [@reviewer: look]"),
    ScriptRule(agent="coder", reply="Fixed."),
    ScriptRule(agent="reviewer", reply="Good."),
)


def of(events: list[ContractEvent], *names: str) -> list[dict[str, Any]]:
    return [event.data for event in events if event.name in names]


async def events_of(room: Room, after: int = 0) -> list[ContractEvent]:
    lookup = RoomLookup(room, lambda: DIRECTORY)
    found: list[ContractEvent] = []
    async for event in room.events(after):
        found += await contract_events(event, lookup)
    return found


async def publish(room: Room, queue: str, **fields: Any) -> None:
    await room.run(c.Publish(queue=queue, messages=[NewMessage(**fields)]))


async def test_told_live_and_told_later_is_the_same(tmp_path: Path) -> None:
    async with staffed(tmp_path, *TEAM) as desk:
        live: list[ContractEvent] = []
        lookup = RoomLookup(desk.room, lambda: desk.office.directory)
        await desk.write("@dev the bug", platform_id="m_1")
        async for event in desk.room.events(follow=True):
            live += await contract_events(event, lookup)
            if live and live[-1].name == "team_chain_end":
                break
        await desk.quiet()
        later = await told(desk)
    assert [event.id for event in later[: len(live)]] == [event.id for event in live]
    assert later[: len(live)] == live
    assert len(of(later, "team_chain_end")) == 1


async def test_turns_that_end_at_the_same_time_end_their_chain_once(room: Room) -> None:
    """The clock stands: all of this has one time, as what is committed together has."""
    await furnish(room)
    talk = {"correlation_id": "web:1", "channel": "web", "sender": "Ann"}
    for agent, kind in (("lead", "office.mail"), ("coder", "office.note")):
        await publish(room, queues.inbox(agent), body={"text": "x"}, message_type=kind, agent=agent, **talk)
    for agent in ("lead", "coder"):
        [message] = await room.claim(queues.inbox(agent))
        turn = f"turn of {agent}"
        await room.run(
            c.Unit(
                commands=(
                    c.Complete(
                        message_id=message.id,
                        token=message.claim_token or "",
                        result={"answer": "done", "turn": turn},
                    ),
                    c.AddRecord(
                        kind="turn",
                        key=turn,
                        data={"agent": agent, "outcome": "finished"},
                        correlation_id="web:1",
                        message_id=message.id,
                    ),
                )
            )
        )
    events = await events_of(room)
    [end] = of(events, "team_chain_end")
    assert events[-1].data == end
    assert (end["totalSteps"], end["agents"]) == (2, ["lead", "coder"])


async def test_ids_are_unique_and_in_order_and_every_event_says_what_and_when(tmp_path: Path) -> None:
    async with staffed(tmp_path, *TEAM) as desk:
        await desk.write("@dev the bug")
        await desk.replies(3)
        await desk.quiet()
        events = await told(desk)
        places_ = [(event.seq, event.part) for event in events]
        assert places_ == sorted(set(places_))
        for event in events:
            assert list(event.data)[:2] == ["type", "timestamp"]
            assert event.data["type"] == event.name
        middle = events[len(events) // 2]
        rest = [
            event
            for event in await told(desk, middle.seq - 1)
            if (event.seq, event.part) > places_[len(events) // 2]
        ]
        assert rest == events[len(events) // 2 + 1 :]


async def test_a_failure_that_is_retried_is_no_answer(tmp_path: Path) -> None:
    rule = ScriptRule(agent="coder", fail=ErrorKind.AUTH, reply="never")
    async with staffed(tmp_path, rule) as desk:
        await desk.write("@coder fix", platform_id="m_1")
        await desk.replies(1)
        await desk.quiet()
        events = await told(desk)
    assert of(events, "agent:response") == []
    [done] = of(events, "message:done")
    assert "could not answer" in done["responseText"]
    assert done["messageId"] == "m_1"
    assert len(of(events, "team_chain_end")) == 1, "nobody is at it any more"


async def test_the_words_of_a_person_are_told_as_they_were_written(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(reply="ok")) as desk:
        for text in (
            "@coder   two  words",
            "no prefix",
            "[@coder: one] [@reviewer: two] shared",
            "@coder " + "x" * 300,
        ):
            await desk.write(text)
        await desk.quiet()
        said = [data["message"] for data in of(await told(desk), "message:incoming")]
    assert said[0] == "@coder   two  words"
    assert said[1] == "no prefix"
    assert said[2] == said[3] == "[@coder: one] [@reviewer: two] shared"
    assert said[4] == ("@coder " + "x" * 300)[:120]


async def test_a_schedule_is_not_told_as_if_somebody_wrote_but_a_heartbeat_is(
    room: Room, clock: ManualClock
) -> None:
    await furnish(room)
    book = a_book(room, clock)
    await book.add("coder", "x", cron="@daily", label="daily")
    await book.run_now("daily")
    assert await events_of(room) == []
    body = {"text": "How are things?", "team": None, "via": "given"}
    await publish(
        room,
        queues.inbox("coder"),
        body=body,
        message_type="office.mail",
        channel="heartbeat",
        sender="System",
        agent="coder",
        source_type="heartbeat",
    )
    [data] = of(await events_of(room), "message:incoming")
    assert (data["channel"], data["sender"], data["message"]) == ("heartbeat", "System", "How are things?")


async def test_a_message_nobody_asked_for_is_told_in_short(room: Room) -> None:
    await furnish(room)
    await room.run(queues.open_outbox("web"))
    await publish(
        room,
        queues.outbox("web"),
        body={"text": "By the way"},
        message_type="office.proactive",
        channel="web",
        sender="Ann",
        agent="coder",
        correlation_id="web:proactive_12345678",
    )
    [data] = of(await events_of(room), "message:done")
    assert list(data) == ["type", "timestamp", "channel", "sender", "messageId"]
    assert data["messageId"] == "proactive_12345678"


async def test_a_persons_post_to_a_room_is_from_user(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(reply="ok")) as desk:
        await publish(
            desk.room,
            queues.room_of("dev"),
            body={"text": "[Chat room #dev — @user]:\nhello", "team": "dev", "post": "hello"},
            message_type="office.post",
            channel="chatroom",
            sender="user",
        )
        await desk.quiet()
        invoked = of(await told(desk), "agent:invoke")
    assert {data["agentId"] for data in invoked} == {"lead", "coder", "reviewer"}
    assert {data["fromAgent"] for data in invoked} == {"user"}


async def test_what_others_do_with_their_own_queues_is_nobodys_news(room: Room) -> None:
    await room.create_queue("default/inbox/coder")
    await room.publish("default/inbox/coder", {"text": "x"}, type="office.mail", channel="web", sender="Ann")
    await room.record("turn", "x", {"agent": "coder", "outcome": "finished"})
    await room.record("turn.started", "x", {"agent": "coder"})
    assert await events_of(room) == []


async def test_of_what_was_pruned_nothing_is_told_and_nothing_breaks(room: Room) -> None:
    await furnish(room)
    about: dict[str, Any] = {"message_id": "gone", "correlation_id": "web:1"}
    for kind in ("turn.started", "turn.progress", "turn"):
        await room.run(c.AddRecord(kind=kind, key="t", data={"agent": "coder", "text": "x"}, **about))
    assert await events_of(room) == []


async def test_the_stream_gets_names_and_data(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(reply="ok")) as desk:
        await desk.write("@coder x")
        await desk.quiet()
        translate = translator(desk.room, lambda: desk.office.directory)
        names: list[str] = []
        async for event in desk.room.events():
            names += [name for name, _ in await translate(event)]
        assert names == [event.name for event in await told(desk)]


def test_lengths_are_as_clients_count_them() -> None:
    assert length("abc") == 3
    assert length("ö") == 1
    assert length("👍") == 2


async def test_combined_answers_are_told_when_they_are_sent(tmp_path: Path) -> None:
    async with _combined(tmp_path) as desk:
        await desk.write("@dev the bug", platform_id="m_1")
        await desk.replies(1)
        await desk.quiet()
        events = await told(desk)
    [done] = of(events, "message:done")
    assert "@lead:" in done["responseText"]
    assert done["messageId"] == "m_1"
    assert len(of(events, "agent:response")) == 3


def _combined(tmp_path: Path) -> Any:
    return staffed(tmp_path, *TEAM, replies={"mode": "combined"})
