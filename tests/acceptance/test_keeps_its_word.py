"""Nobody is left in silence, and nothing is killed that was never tried."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from postroom import State
from postroom.office import queues
from postroom.office.guards import pauses
from postroom.providers.script_rules import ScriptRule
from postroom.services import callers
from postroom.services.conversations import ConversationService
from tests.acceptance.office import AGENTS, Gate, Puppet, staffed, text, until
from tests.office.guards.house import guarded

RICH = {"conversation_usd": None, "agent_daily_usd": None, "team_daily_usd": None, "daily_usd": None}
CODER: dict[str, Any] = {"agents": {"coder": {"provider": "puppet"}}, "teams": {}}


async def test_only_what_the_turn_in_hand_is_about_is_claimed(tmp_path: Path) -> None:
    """So a crash counts against nobody who only stood in line."""
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, start=False, **CODER) as desk:
        await desk.write("@coder one")
        for number in range(10):
            await desk.write("@coder me too", sender_id=f"p{number}")
        await desk.write("@coder and this")
        desk.office.start()
        await gate.begun()
        mail = (await desk.room.messages(queue=queues.inbox("coder"))).messages
        claimed = [(each.sender_id, each.attempts) for each in mail if each.state is State.CLAIMED]
        assert claimed == [("ann", 1), ("ann", 1)], "both of the same person, in one turn"
        assert {(each.state, each.attempts) for each in mail if each.sender_id != "ann"} == {
            (State.PENDING, 0)
        }
        gate.open.set()
        await desk.replies(11)


async def test_what_waits_for_a_place_is_not_claimed(tmp_path: Path) -> None:
    gate = Gate()
    agents = {name: {"provider": "puppet"} for name in AGENTS}
    options: dict[str, Any] = {"agents": agents, "limits": {"turns_at_once": 1}}
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, start=False, **options) as desk:
        for name in AGENTS:
            await desk.write(f"@{name} hello")
        desk.office.start()
        await gate.begun()

        async def waiting() -> list[tuple[str, int]]:
            mail = (await desk.room.messages(scope="office")).messages
            return sorted((each.state.value, each.attempts) for each in mail)

        async def is_as_wanted() -> bool:
            return await waiting() == [("claimed", 1), ("pending", 0), ("pending", 0)]

        await until(is_as_wanted)
        gate.open.set()
        await desk.replies(3)
        assert gate.puppet.most_working == 1


async def test_what_a_person_wrote_is_read_in_order_and_each_id_is_answered(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "blue it is")
    async with staffed(tmp_path, puppets={"puppet": puppet}, start=False, **CODER) as desk:
        for number, words in enumerate(("paint it red", "no, green", "I mean blue")):
            await desk.write(f"@coder {words}", platform_id=f"m{number}")
        desk.office.start()
        [reply] = await desk.replies(1)
        [asked] = puppet.asked
        places = [asked.prompt.index(words) for words in ("red", "green", "blue")]
        assert places == sorted(places)
        assert reply.body["together"] == ["web:m1", "web:m2"]


async def test_the_person_behind_a_long_way_through_a_room_is_told_and_can_go_on(tmp_path: Path) -> None:
    rules = (ScriptRule(reply="[#dev: once more]"),)
    guards = {"cycles": 900, "repeats": 900, "hops": 60, "messages": 900}
    two = {name: {"provider": "paid"} for name in ("lead", "coder")}
    teams = {"dev": {"agents": list(two), "leader_agent": "lead"}}
    async with guarded(
        tmp_path, *rules, price=0.0, guards=guards, budgets=RICH, agents=two, teams=teams
    ) as desk:
        await desk.write("@dev begin")
        await desk.until(lambda found: any(each.message_type == "office.notice" for each in found), 120)
        [notice] = await desk.notices()
        assert (notice.channel, notice.sender_id) == ("web", "ann")
        [paused] = await pauses.paused_conversations(desk.room)
        assert (paused.channel, paused.person) == ("web", "ann")
        held = [each for each in await desk.mail() if each.state is State.DELAYED]
        assert held
        assert all(each.subscription for each in held)

        class Context:
            async def room(self) -> Any:
                return desk.room

        service = ConversationService(Context())  # type: ignore[arg-type]
        talk = (notice.correlation_id or "").removeprefix("web:")
        status = await service.status(callers.owner(), talk, "web")
        assert status.paused == paused.guard
        told = await desk.write("/continue")
        assert "It goes on" in (told.notice or "")


@pytest.mark.parametrize("people", [15])
async def test_everyone_held_by_the_budget_of_the_day_is_told_once(tmp_path: Path, people: int) -> None:
    agents = {f"a{number}": {"provider": "paid"} for number in range(people)}
    budgets = {**RICH, "daily_usd": 0.25, "reserve_usd": 0.1}
    async with guarded(
        tmp_path, ScriptRule(reply="ok"), price=0.1, budgets=budgets, agents=agents, teams={}
    ) as desk:
        writing = [
            desk.write(f"@a{number} hello", sender=f"P{number}", sender_id=f"p{number}")
            for number in range(people)
        ]
        await asyncio.gather(*writing)
        held = await desk.held(people - 2, 120)
        waiting = sorted(each.sender_id or "" for each in held)

        def told(found: list[Any]) -> list[str]:
            return sorted(each.sender_id for each in found if "used up its budget" in text(each))

        await desk.until(lambda found: set(waiting) <= set(told(found)), 60)
        assert told(await desk.all()) == waiting, "each of them once, and nobody else"


async def test_tags_that_reach_nobody_are_reported(tmp_path: Path) -> None:
    answer = "[@nobody: a] [@lead: b] [@alone: c] [@coder: d] [@coder: e] [#sales: f]"
    agents = {name: {"provider": "script"} for name in (*AGENTS, "alone")}
    rules = (ScriptRule(agent="lead", match="go", reply=answer), ScriptRule(reply="ok"))
    async with staffed(tmp_path, *rules, agents=agents) as desk:
        sent = await desk.write("[@lead: go] [@ghost: boo]")
        assert 'no agent or team "ghost"' in (sent.notice or "")
        found = await desk.settled()
        [told] = [text(each) for each in found if each.queue == "outbox/web" and each.agent == "lead"]
        for reason in (
            'There is no agent "nobody"',
            "@lead wrote to itself",
            "@lead and @alone share no team",
            "@coder has a message from this answer already",
            'There is no team "sales"',
        ):
            assert f"_(Not delivered: {reason}" in told


async def test_a_leader_reads_for_which_team_it_is_asked(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "ok")
    options: dict[str, Any] = {
        "agents": {"lead": {"provider": "puppet"}},
        "teams": {name: {"agents": ["lead"], "leader_agent": "lead"} for name in ("dev", "ops")},
    }
    async with staffed(tmp_path, puppets={"puppet": puppet}, **options) as desk:
        for number, words in enumerate(("@dev one", "@ops two", "@lead three")):
            await desk.write(words, sender_id=f"p{number}")
        await desk.replies(3)
        prompts = sorted(asked.prompt for asked in puppet.asked)
        assert prompts == ["[For team #dev]:\none", "[For team #ops]:\ntwo", "three"]


async def test_a_silent_branch_of_a_combined_answer_says_so(tmp_path: Path) -> None:
    rules = (ScriptRule(agent="coder", reply=""), ScriptRule(reply="here"))
    async with staffed(tmp_path, *rules, replies={"mode": "combined"}) as desk:
        await desk.write("[@lead: go] [@coder: go]")
        [told] = await desk.replies(1)
        assert "@lead: here" in text(told)
        assert "@coder: _(had nothing to say.)_" in text(told)


async def test_a_killed_turn_tells_its_person(tmp_path: Path) -> None:
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, **CODER) as desk:
        [sent] = (await desk.write("@coder one")).receipts
        await gate.begun()
        await desk.office.cancel(sent.id, "Manually terminated by user", is_told=True)
        [told] = await desk.replies(1)
        assert (told.message_type, told.sender_id) == ("office.failure", "ann")
        assert text(told) == "@coder did not finish: Manually terminated by user."
        await gate.over()


async def test_an_idle_lane_waits_for_mail_instead_of_looking_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred agents with nothing to do cost next to nothing; each look is a transaction."""
    async with staffed(tmp_path, start=False) as desk:
        claim, waits = desk.room.claim, list[float]()

        async def note(*queues: str, **options: Any) -> list[Any]:
            if queues[0].startswith("office/inbox/"):
                waits.append(options.get("wait", 0))
            return await claim(*queues, **options)

        monkeypatch.setattr(desk.room, "claim", note)
        desk.office.start()
        await until(lambda: len(waits) >= len(AGENTS))
        await desk.write("@lead hello")
        await desk.replies(1)
        assert set(waits) <= {0, 15.0}, "three quarters of a lease of 20 s"
