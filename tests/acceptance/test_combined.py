"""One answer for a whole conversation: complete, in time, once, whatever happens to those who were asked."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import State
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.office.ledger_follower import LedgerFollower
from postroom.providers.protocol import ErrorKind, TurnRequest
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.office import AGENTS, Gate, Puppet, Staffed, opened, staffed, text, until

COMBINED = {"dev": {"agents": list(AGENTS), "leader_agent": "lead", "replies": "combined"}}
FAN_OUT = [
    ScriptRule(agent="lead", match="Fixed", reply="All is well."),
    ScriptRule(agent="lead", reply="I ask.", hand_off={"coder": "fix it", "reviewer": "read it"}),
    ScriptRule(agent="coder", reply="Fixed.", seconds=5),
    ScriptRule(agent="reviewer", reply="Read.", seconds=1),
]


async def test_one_answer_comes_when_all_are_done(tmp_path: Path) -> None:
    gate = Gate("Fixed.")
    agents = {**{name: {"provider": "script"} for name in AGENTS}, "coder": {"provider": "puppet"}}
    options = {"puppets": {"puppet": gate.puppet}, "agents": agents, "teams": COMBINED}
    async with staffed(tmp_path, *FAN_OUT, **options) as desk:
        await desk.write("@dev the login is broken")
        await until(lambda: _is_read(desk))
        gate.open.set()
        [reply] = await desk.replies(1)
        everything = await desk.quiet()
        assert len([m for m in everything if m.queue == "outbox/web"]) == 1
        first, second, third = text(reply).split("\n\n------\n\n")
        assert first.startswith("@lead: I ask.")
        assert (second, third) == ("@reviewer: Read.", "@coder: Fixed.")
        assert reply.body["original"] == "@dev the login is broken"
        assert (reply.channel, reply.sender_id) == ("web", "ann")


async def test_an_agent_alone_answers_as_ever(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="lead", reply="Yes."), teams=COMBINED) as desk:
        await desk.write("@dev are you there?")
        [reply] = await desk.replies(1)
        assert text(reply) == "Yes.\n\n- [lead]"


async def test_a_person_who_asks_three_at_once_gets_one_answer(tmp_path: Path) -> None:
    rules = [ScriptRule(agent=name, reply=f"{name} says yes") for name in AGENTS]
    async with staffed(tmp_path, *rules, replies={"mode": "combined"}) as desk:
        await desk.write("Shall we? [@lead: you] [@coder: you] [@reviewer: you]")
        [reply] = await desk.replies(1)
        assert sorted(text(reply).split("\n\n------\n\n")) == [
            f"@{name}: {name} says yes" for name in sorted(AGENTS)
        ]


async def test_only_the_teams_that_want_it_combine(tmp_path: Path) -> None:
    teams = {
        **COMBINED,
        "ops": {"agents": ["coder", "reviewer"], "leader_agent": "reviewer", "replies": "each"},
    }
    rules = [
        ScriptRule(agent="reviewer", match="deploy", reply="I ask.", hand_off={"coder": "do it"}),
        ScriptRule(agent="coder", reply="Done."),
    ]
    async with staffed(tmp_path, *rules, teams=teams) as desk:
        await desk.write("@ops deploy")
        assert [m.agent for m in await desk.replies(2)] == ["reviewer", "coder"]


async def test_at_the_time_out_the_answer_says_who_is_missing_and_the_rest_follows(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def slowly(request: TurnRequest) -> str:
        await gate.wait()
        return "Fixed at last."

    agents = {
        "lead": {"provider": "script"},
        "coder": {"provider": "puppet"},
        "reviewer": {"provider": "script"},
    }
    rules = [rule for rule in FAN_OUT if rule.agent != "coder"]
    options: dict[str, Any] = {
        "puppets": {"puppet": Puppet(slowly)},
        "agents": agents,
        "teams": COMBINED,
        "replies": {"combined_timeout_s": 600},
        "limits": {"lease_s": 7200},
    }
    clock = ManualClock()
    async with staffed(tmp_path, *rules, clock=clock, **options) as desk:
        await desk.write("@dev the login is broken")
        await until(lambda: _is_read(desk))
        clock.advance(601)
        [partial] = await desk.replies(1)
        assert "@reviewer: Read." in text(partial)
        assert "@coder is still at work" in text(partial)
        gate.set()
        _, late = await desk.replies(2)
        assert (late.agent, text(late)) == ("coder", "Fixed at last.\n\n- [coder]")
        await desk.settled()
        assert len(await desk.replies(2)) == 2


async def test_a_branch_that_fails_for_good_is_part_of_the_answer(tmp_path: Path) -> None:
    rules = [*FAN_OUT[:2], ScriptRule(agent="coder", fail=ErrorKind.AUTH), FAN_OUT[3]]
    async with staffed(tmp_path, *rules, teams=COMBINED) as desk:
        await desk.write("@dev the login is broken")
        [reply] = await desk.replies(1)
        assert "@reviewer: Read." in text(reply)
        assert "@coder could not answer: The script provider did not accept the credentials" in text(reply)
        [dead] = [m for m in await desk.quiet() if m.state is State.DEAD]
        assert f"postroom dead replay {dead.id}" in text(reply)


async def test_a_branch_that_is_cancelled_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def never(request: TurnRequest) -> str:
        await gate.wait()
        return "too late"

    agents = {
        "lead": {"provider": "script"},
        "coder": {"provider": "puppet"},
        "reviewer": {"provider": "script"},
    }
    puppet = Puppet(never)
    rules = [rule for rule in FAN_OUT if rule.agent != "coder"]
    async with staffed(tmp_path, *rules, puppets={"puppet": puppet}, agents=agents, teams=COMBINED) as desk:
        await desk.write("@dev the login is broken")
        await until(lambda: puppet.working)
        [note] = [m for m in (await desk.room.messages(scope="office")).messages if m.queue == "inbox/coder"]
        await desk.office.cancel(note.id, "not needed any more")
        [reply] = await desk.replies(1)
        assert "@coder did not answer: not needed any more" in text(reply)
        await until(lambda: not puppet.working)


async def test_a_replayed_branch_answers_for_itself_after_the_combined_answer(tmp_path: Path) -> None:
    rules = [
        *FAN_OUT[:2],
        ScriptRule(agent="coder", fail=ErrorKind.AUTH, times=1, reply="Fixed."),
        FAN_OUT[3],
    ]
    async with staffed(tmp_path, *rules, teams=COMBINED) as desk:
        await desk.write("@dev the login is broken")
        await desk.replies(1)
        [dead] = [m for m in await desk.quiet() if m.state is State.DEAD]
        await desk.room.replay(dead.id)
        _, late = await desk.replies(2)
        assert (late.agent, text(late)) == ("coder", "Fixed.\n\n- [coder]")


async def test_a_replayed_branch_that_fails_again_is_told_again(tmp_path: Path) -> None:
    rules = [*FAN_OUT[:2], ScriptRule(agent="coder", fail=ErrorKind.AUTH), FAN_OUT[3]]
    async with staffed(tmp_path, *rules, teams=COMBINED) as desk:
        await desk.write("@dev the login is broken")
        await desk.replies(1)
        [dead] = [m for m in await desk.quiet() if m.state is State.DEAD]
        for count in (2, 3):
            await desk.room.replay(dead.id)
            *_, late = await desk.replies(count, within=20)
            assert late.message_type == "office.failure"
            assert f"postroom dead replay {dead.id}" in text(late)


async def test_an_answer_that_is_owed_survives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process ends after the last branch, before anybody has put the answers together."""
    async with postroom.open(str(tmp_path / "room.db")) as room:
        with monkeypatch.context() as patch:
            patch.setattr(LedgerFollower, "run", _idle)
            async with opened(room, tmp_path, *FAN_OUT, teams=COMBINED) as desk:
                await desk.write("@dev the login is broken")
                await until(lambda: _all_done(desk))
                assert await _outbox(desk) == []
        async with opened(room, tmp_path, *FAN_OUT, teams=COMBINED) as desk:
            [reply] = await desk.replies(1)
            assert len(text(reply).split("\n\n------\n\n")) == 3
        async with opened(room, tmp_path, *FAN_OUT, teams=COMBINED) as desk:
            await desk.settled()
        await room.run(c.SetPosition(name="office-clerk", seq=0))
        async with opened(room, tmp_path, *FAN_OUT, teams=COMBINED) as desk:
            await desk.settled()
            assert len(await _outbox(desk)) == 1, "the ledger read again makes no second answer"


async def _idle(clerk: LedgerFollower) -> None:
    """A clerk that sees nothing."""


async def _is_read(desk: Staffed) -> bool:
    """Whether the reviewer has done its part."""
    page = await desk.room.messages(queue="office/inbox/reviewer")
    return [m.state for m in page.messages] == [State.COMPLETED]


async def _all_done(desk: Any) -> bool:
    page = await desk.room.messages(scope="office", limit=500)
    inboxes = [m for m in page.messages if m.queue.startswith("inbox/")]
    return [m.state for m in inboxes] == [State.COMPLETED] * 3


async def _outbox(desk: Any) -> list[Any]:
    page = await desk.room.messages(scope="office", limit=500)
    return [m for m in page.messages if m.queue.startswith("outbox/")]
