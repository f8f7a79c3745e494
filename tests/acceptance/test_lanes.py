"""One turn at a time for each agent, whoever works: stopped, killed, cancelled, frozen or broken."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import State
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.office.lanes import lane as lanes
from postroom.office.lanes.lane import Lane
from postroom.providers.protocol import Finished, TurnRequest
from postroom.providers.script_rules import ScriptRule
from postroom.runtime import core
from tests.acceptance.office import AGENTS, Gate, Puppet, Staffed, opened, signed, staffed, text, until
from tests.conformance.helpers import until_waiting

CODER: dict[str, Any] = {"agents": {"coder": {"provider": "puppet"}}, "teams": {}}


async def outbox(desk: Staffed) -> list[str]:
    page = await desk.room.messages(scope="office", limit=500)
    return [text(m) for m in page.messages if m.queue.startswith("outbox/")]


async def test_a_stop_lets_the_turn_in_hand_finish(tmp_path: Path) -> None:
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, **CODER) as desk:
        await desk.write("@coder one")
        await gate.begun()
        await desk.write("@coder two", sender_id="bob")
        stopping = asyncio.create_task(desk.office.stop(grace=60))
        [lane] = desk.office._lanes
        await until(lane._stopping.is_set)
        gate.open.set()
        await stopping
        assert await outbox(desk) == ["done\n\n- [coder]"]
        page = await desk.room.messages(queue="office/inbox/coder")
        assert [(m.state, m.attempts) for m in page.messages] == [(State.COMPLETED, 1), (State.PENDING, 0)]


async def test_after_the_grace_the_turn_is_ended_and_its_mail_given_back(tmp_path: Path) -> None:
    gate = Gate()
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, puppets={"puppet": gate.puppet}, **CODER) as desk:
            await desk.write("@coder one")
            await gate.begun()
            await desk.office.stop(grace=0.05)
            assert gate.puppet.working == 0
            [mail] = (await room.messages(queue="office/inbox/coder")).messages
            assert (mail.state, mail.attempts) == (State.PENDING, 0)
            assert await outbox(desk) == []
        answering = Puppet(lambda request: "here")
        async with opened(room, tmp_path, puppets={"puppet": answering}, **CODER) as desk:
            assert [text(m) for m in await desk.replies(1)] == ["here\n\n- [coder]"]


async def test_what_was_claimed_besides_the_turn_in_hand_is_given_back_too(tmp_path: Path) -> None:
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, start=False, **CODER) as desk:
        for person in ("ann", "bob", "cy"):
            await desk.write("@coder hello", sender_id=person)
        desk.office.start()
        await gate.begun()
        await desk.office.stop(grace=0.05)
        page = await desk.room.messages(queue="office/inbox/coder")
        assert [(m.state, m.attempts) for m in page.messages] == [(State.PENDING, 0)] * 3


async def test_two_offices_take_one_turn_at_a_time_for_an_agent(tmp_path: Path) -> None:
    async def briefly(request: TurnRequest) -> str:
        await asyncio.sleep(0.05)
        return "done"

    puppet = Puppet(briefly)
    async with (
        postroom.open(str(tmp_path / "room.db")) as room,
        opened(room, tmp_path, puppets={"puppet": puppet}, **CODER) as one,
        opened(room, tmp_path, puppets={"puppet": puppet}, **CODER),
    ):
        for number in range(6):
            await one.write("@coder go", sender_id=f"person {number}")
        await one.replies(6)
    assert puppet.most_working == 1


async def test_a_frozen_office_loses_its_turn_after_the_lease_and_its_late_result_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a machine sleeps: no heartbeat, and then it wakes up and goes on as if nothing had been."""
    gate = Gate("from the frozen one")
    other = Puppet(lambda request: "from the other one")
    options = {**CODER, "limits": {"lease_s": 1.0}}
    clock = ManualClock()
    async with postroom.open(str(tmp_path / "room.db"), clock=clock) as room:
        beats = Lane._keep

        async def no_beats(lane: Lane) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(Lane, "_keep", no_beats)
        async with opened(room, tmp_path, puppets={"puppet": gate.puppet}, **options) as frozen:
            await frozen.write("@coder hello")
            await gate.begun()
            monkeypatch.setattr(Lane, "_keep", beats)
            clock.advance(1.1)
            async with opened(room, tmp_path, puppets={"puppet": other}, **options) as desk:
                assert [text(m) for m in await desk.replies(1)] == ["from the other one\n\n- [coder]"]
                gate.open.set()
                await gate.over()
                [lane] = frozen.office._lanes
                await until(lambda: lane._in_hand is None)
                assert await outbox(desk) == ["from the other one\n\n- [coder]"]
                turns = [turn.data["outcome"] for turn in await room.records("turn")]
                assert turns == ["finished"], "nothing of the refused turn is kept"


async def test_a_turn_longer_than_the_lease_keeps_its_claim(tmp_path: Path) -> None:
    """Time passes only while the claim is good: a lane that beats never loses it."""
    gate = Gate()
    puppet = gate.puppet
    options = {**CODER, "limits": {"lease_s": 1.0}}
    clock = ManualClock()

    async def ends(message_id: str) -> int:
        return (await room.get(message_id)).claim_expires_at or 0

    async with (
        postroom.open(str(tmp_path / "room.db"), clock=clock) as room,
        opened(room, tmp_path, puppets={"puppet": puppet}, **options) as desk,
        opened(room, tmp_path, puppets={"puppet": puppet}, **options),
    ):
        sent = (await desk.write("@coder hello")).receipts[0].id
        await gate.begun()
        first = await ends(sent)
        while clock.now() <= first:
            held = await ends(sent)
            clock.advance(0.6)
            async with asyncio.timeout(60):
                while await ends(sent) <= held:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        gate.open.set()
        assert len(await desk.replies(1)) == 1
        [mail] = (await room.messages(queue="office/inbox/coder")).messages
        assert (mail.state, mail.attempts, len(puppet.asked)) == (State.COMPLETED, 1, 1)


async def test_an_office_that_lost_its_lane_stops_working(tmp_path: Path) -> None:
    gate = Gate()
    options = {**CODER, "limits": {"lease_s": 1.0}}
    clock = ManualClock()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, clock=clock, **options) as desk:
        room = desk.room
        await desk.write("@coder hello")
        await gate.begun()
        [mail] = (await room.messages(queue="office/inbox/coder")).messages
        await room.run(c.Lead(name="lane/coder", holder=mail.claimed_by or "", seconds=0))
        assert await room.run(c.Lead(name="lane/coder", holder="somebody else", seconds=600))
        clock.advance(0.5)
        await gate.over()
        assert await outbox(desk) == []


async def test_an_office_that_lost_its_lane_while_it_waited_serves_nothing(tmp_path: Path) -> None:
    """As when a machine slept through its lease with nothing to do: whoever has the lane has the mail."""
    puppet = Puppet(lambda request: "done")
    clock = ManualClock()
    async with staffed(tmp_path, puppets={"puppet": puppet}, clock=clock, **CODER) as desk:
        [lane] = desk.office._lanes
        other: dict[str, Any] = {"name": "lane/coder", "holder": "somebody else"}
        await until(lambda: lane._leader.leads)
        clock.advance(60)
        assert await desk.room.run(c.Lead(**other, seconds=600))
        before = (await desk.room.head()).seq
        await desk.write("@coder hello")

        async def is_released() -> bool:
            changes = [event.type async for event in desk.room.events(before)]
            return "message.claimed" in changes and "message.released" in changes

        await until(is_released)

        async def is_given_back() -> bool:
            [mail] = (await desk.room.messages(queue="office/inbox/coder")).messages
            return (mail.state, mail.attempts) == (State.PENDING, 0)

        await until(is_given_back)
        assert puppet.asked == []
        await desk.room.run(c.Lead(**other, seconds=0))
        assert len(await desk.replies(1)) == 1, "and it is served when the other is gone"


async def test_cancelling_a_message_ends_its_turn_at_once_and_sends_nothing(tmp_path: Path) -> None:
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, **CODER) as desk:
        running = await desk.write("@coder one")
        await gate.begun()
        waiting = await desk.write("@coder two", sender_id="bob")
        [held] = running.receipts
        ends = (await desk.room.get(held.id)).claim_expires_at or 0
        await desk.office.cancel(waiting.receipts[0].id)

        async def has_looked() -> bool:
            """The lane, which then keeps what it still has."""
            return ((await desk.room.get(held.id)).claim_expires_at or 0) > ends

        await until(has_looked)
        assert gate.puppet.working == 1, "a waiting message is cancelled without touching the running one"
        await desk.office.cancel(running.receipts[0].id)
        await gate.over()
        everything = await desk.quiet()
        assert {m.state for m in everything} == {State.CANCELLED}
        gate.open.set()
        await desk.write("@coder three")
        assert len(await desk.replies(1)) == 1


async def test_what_was_cancelled_behind_a_turn_in_hand_is_never_begun(tmp_path: Path) -> None:
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, start=False, **CODER) as desk:
        people = ("ann", "bob", "cy")
        sent = [(await desk.write("@coder hello", sender_id=one)).receipts[0].id for one in people]
        desk.office.start()
        await gate.begun()
        # Not by the office itself, which would have its lanes look: as another process does it.
        await desk.room.cancel(sent[1])
        gate.open.set()
        assert sorted(m.sender_id or "" for m in await desk.replies(2)) == ["ann", "cy"]
        await desk.quiet()
        assert len(gate.puppet.asked) == 2


async def test_cancelling_what_only_rides_along_does_not_end_the_turn(tmp_path: Path) -> None:
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, start=False, **CODER) as desk:
        sent = [(await desk.write(f"@coder {word}")).receipts[0].id for word in ("one", "two", "three")]
        desk.office.start()
        await gate.begun()
        await desk.office.cancel(sent[1])
        [lane] = desk.office._lanes
        await until(lambda: sent[1] not in lane._claimed)
        gate.open.set()
        assert len(await desk.replies(1)) == 1
        states = [(await desk.room.get(each)).state for each in sent]
        assert states == [State.COMPLETED, State.CANCELLED, State.COMPLETED]
        assert len(gate.puppet.asked) == 1


async def test_a_provider_that_nobody_knows_is_told_to_the_person(tmp_path: Path) -> None:
    async with staffed(tmp_path, agents={"coder": {"provider": "nonsense"}}, teams={}) as desk:
        sent = await desk.write("@coder hello")
        [told] = await desk.replies(1)
        assert told.message_type == "office.failure"
        assert "No adapter registered for provider 'nonsense'" in text(told)
        assert (await desk.room.get(sent.receipts[0].id)).state is State.DEAD


async def test_a_broken_provider_wears_a_message_out_and_the_person_is_told_once(tmp_path: Path) -> None:
    def broken(request: TurnRequest) -> list[Any]:
        raise RuntimeError("a bug")

    options = {**CODER, "guards": {"attempts": 2}}
    async with staffed(tmp_path, puppets={"puppet": Puppet(broken)}, **options) as desk:
        await desk.room.update_queue("office/inbox/coder", backoff_base_s=0.01)
        sent = await desk.write("@coder hello")
        [told] = await desk.replies(1)
        assert "@coder could not answer: RuntimeError: a bug" in text(told)
        assert sent.receipts[0].id in text(told)
        await desk.write("@coder again")
        assert len(await desk.replies(2)) == 2, "the lane goes on"


async def test_a_message_that_kills_its_workers_is_buried_and_the_person_is_told_once(tmp_path: Path) -> None:
    options = {**CODER, "guards": {"attempts": 2, "crashes": 2}}
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, start=False, **options) as desk:
            sent = await desk.write("@coder hello")
            for _ in range(2):
                assert await room.claim("office/inbox/coder", lease=0.001, worker="who dies")
                await asyncio.sleep(0.01)
        puppet = Puppet(lambda request: "never")
        told = None
        for _ in range(2):
            async with opened(room, tmp_path, puppets={"puppet": puppet}, **options) as desk:
                [told] = await desk.replies(1)
                await room.run(c.SetPosition(name="office-clerk", seq=0))
        assert told is not None
        assert "the lease of who dies ran out on attempt 2" in text(told)
        assert f"postroom dead replay {sent.receipts[0].id}" in text(told)
        assert puppet.asked == []


async def test_a_message_that_expires_unread_is_told_to_the_person(tmp_path: Path) -> None:
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, start=False, **CODER):
            await room.publish(
                "office/inbox/coder",
                {"text": "soon!"},
                type="office.mail",
                channel="web",
                sender="Ann",
                sender_id="ann",
                agent="coder",
                ttl=0.001,
            )
            await asyncio.sleep(0.01)
        async with opened(room, tmp_path, puppets={"puppet": Puppet(lambda _: "late")}, **CODER) as desk:
            [told] = await desk.replies(1)
            assert "has expired" in text(told)


async def test_new_mail_is_picked_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the next poll: the wait between polls is made longer than the test may take."""
    for module, name in ((lanes, "WAIT_S"), (core, "POLL_S")):
        monkeypatch.setattr(module, name, 3600.0)
    puppet = Puppet(lambda request: [Finished(text="here")])
    options = {**CODER, "limits": {"lease_s": 7200.0}}
    async with staffed(tmp_path, puppets={"puppet": puppet}, **options) as desk:
        await until_waiting(desk.room, 2)  # the lane, and who puts answers together
        await desk.write("@coder hello")
        assert len(await desk.replies(1)) == 1


async def test_three_agents_finish_together_and_one_works_in_sequence(tmp_path: Path) -> None:
    gates = {name: Gate(name) for name in AGENTS}
    agents = {name: {"provider": name} for name in AGENTS}
    puppets = {name: gate.puppet for name, gate in gates.items()}
    async with staffed(tmp_path, puppets=puppets, agents=agents) as desk:
        await desk.write("[@lead: a] [@coder: b] [@reviewer: c]")
        for gate in gates.values():
            await gate.begun()
        for done, name in enumerate(("reviewer", "coder", "lead"), 1):
            gates[name].open.set()
            assert (await desk.replies(done))[-1].agent == name
        turns = {turn.data["agent"]: turn.data for turn in await desk.room.records("turn")}
        starts, ends = ([turn[at] for turn in turns.values()] for at in ("started_at", "ended_at"))
        assert max(starts) < min(ends), "all three were at work at once"
        assert max(ends) == turns["lead"]["ended_at"], "together they took as long as the longest"
        for person in ("ann", "bob"):
            await desk.write("@coder again", sender_id=person)
        await desk.replies(5)
        one, other = [turn.data for turn in await desk.room.records("turn")][3:]
        assert one["ended_at"] <= other["started_at"]


async def test_a_teammate_who_takes_no_mail_does_not_cost_the_answer(tmp_path: Path) -> None:
    """What the turn has cost is spent: its answer goes out, and says whom it did not reach."""
    asking = "I asked around. [@coder: please fix it] [@reviewer: please read it] [#dev: it is under way]"
    rules = [ScriptRule(agent="lead", reply=asking), ScriptRule(agent="reviewer", reply="Read.")]
    async with staffed(tmp_path, *rules) as desk:
        for queue in ("inbox/coder", "room/dev"):
            await desk.room.set_queue_state(f"office/{queue}", "draining")
        await desk.write("@lead go")
        replies = signed(await desk.replies(2))
        assert replies["lead"].startswith("I asked around.")
        assert "@coder was not reached" in replies["lead"]
        assert "#dev was not reached" in replies["lead"]
        assert replies["lead"].endswith("\n\n- [lead]")
        assert replies["reviewer"].startswith("Read.")
        turns = [record.data["agent"] for record in await desk.room.records("turn")]
        assert sorted(turns) == ["lead", "reviewer"]


async def test_what_goes_beyond_the_mentions_of_one_answer_is_told(tmp_path: Path) -> None:
    asking = "All hands. [@coder: one] [@reviewer: two] [#dev: three] [#dev: four]"
    rules = [ScriptRule(agent="lead", reply=asking), ScriptRule(reply="ok")]
    async with staffed(tmp_path, *rules, guards={"mentions_per_answer": 1}) as desk:
        await desk.write("@lead go")
        mail = await desk.quiet()
        [lead] = [text(m) for m in await desk.replies(2) if m.agent == "lead"]
        assert "2 more messages to teammates were not sent: 1 of a kind" in lead
        assert {m.agent for m in mail if m.message_type == "office.note"} == {"coder"}
        posts = [m for m in mail if m.message_type == "office.post" and m.subscription is None]
        assert [m.body["post"] for m in posts] == ["three"]


async def test_a_person_with_an_endless_name_is_answered_all_the_same(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "ok")
    options: dict[str, Any] = {"agents": {"coder": {"provider": "puppet"}}, "teams": {}}
    async with staffed(tmp_path, puppets={"puppet": puppet}, sessions={"scope": "thread"}, **options) as desk:
        for thread in ("a", "b", "a"):
            await desk.write("@coder hi", sender_id="x" * 500, metadata={"thread": thread * 1000})
            await desk.quiet()
        replies = await desk.replies(3)
        assert [m.message_type for m in replies] == ["office.reply"] * 3
    assert [request.session_id for request in puppet.asked] == [None, None, "puppet-1"]
