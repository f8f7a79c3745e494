"""The ways in which people and agents work together: hand-off, fan-out, backflow, cross-talk, rooms."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from postroom import State
from postroom.kernel import commands as c
from postroom.providers.protocol import ErrorKind, TurnRequest
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.office import AGENTS, Gate, Puppet, signed, staffed, text, until


async def test_a_person_gets_an_answer_signed_by_the_agent(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="It is done.")) as desk:
        await desk.write("@coder fix the bug")
        [reply] = await desk.replies(1)
        assert text(reply) == "It is done.\n\n- [coder]"
        assert (reply.channel, reply.sender_id) == ("web", "ann")


async def test_a_platform_message_is_taken_once(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="once")) as desk:
        first = await desk.write("@coder fix it", platform_id="77")
        again = await desk.write("@coder fix it", platform_id="77")
        assert (first.repeated, again.repeated) == (False, True)
        assert again.receipts[0].id == first.receipts[0].id
        everything = await desk.quiet()
        assert len([m for m in everything if m.queue == "outbox/web"]) == 1


async def test_three_tagged_agents_share_the_context_and_each_replies(tmp_path: Path) -> None:
    rules = [ScriptRule(agent=name, reply=f"{name} heard: $prompt") for name in ("lead", "coder", "reviewer")]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("The release is tomorrow. [@coder: fix the bug] [@reviewer: read it] [@lead: plan]")
        replies = signed(await desk.replies(3))
        shared = "The release is tomorrow.\n\n------\n\nDirected to you:\n"
        assert replies["coder"].startswith(f"coder heard: {shared}fix the bug")
        assert replies["reviewer"].startswith(f"reviewer heard: {shared}read it")
        assert replies["lead"].startswith(f"lead heard: {shared}plan")
        assert len({m.correlation_id for m in await desk.quiet()}) == 1


async def test_a_lead_hands_off_and_the_mates_answer_reaches_the_person(tmp_path: Path) -> None:
    rules = [
        ScriptRule(agent="lead", reply="I ask the coder.", hand_off={"coder": "please fix $excerpt"}),
        ScriptRule(agent="coder", reply="Fixed."),
    ]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@dev the login")
        replies = await desk.replies(2)
        assert [message.agent for message in replies] == ["lead", "coder"]
        everything = await desk.quiet()
        note = next(m for m in everything if m.message_type == "office.note")
        assert text(note).startswith("[Message from teammate @lead]:\nI ask the coder.\n\n------\n\n")
        assert (note.from_agent, note.hop, note.sender_id) == ("lead", 1, "ann")
        assert len({message.correlation_id for message in everything}) == 1


async def test_a_mate_can_answer_back_and_the_conversation_is_paused_at_the_hop_limit(tmp_path: Path) -> None:
    rules = [
        ScriptRule(agent="lead", reply="And now?", hand_off={"coder": "go on"}),
        ScriptRule(agent="coder", reply="Like this?", hand_off={"lead": "what next"}),
    ]
    async with staffed(tmp_path, *rules, guards={"hops": 4}) as desk:
        await desk.write("@lead start")
        everything = await desk.replies(6)
        [notice] = [m for m in everything if m.message_type == "office.notice"]
        assert "handed on 5 times in a row, and 4 is the limit" in text(notice)
        page = await desk.room.messages(scope="office", limit=500)
        mail = [m for m in page.messages if m.queue.startswith("inbox/")]
        assert [m.hop for m in mail if m.state is State.COMPLETED] == [0, 1, 2, 3, 4]
        assert [m.hop for m in mail if m.state is State.DELAYED] == [5]


async def test_a_post_to_a_room_reaches_every_mate_but_its_poster(tmp_path: Path) -> None:
    rules = [
        ScriptRule(agent="lead", reply="Hello all. [#dev: stand-up in five]"),
        ScriptRule(match="Chat room", reply="noted"),
    ]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@lead tell them")
        everything = await desk.quiet()
        heard = [m for m in everything if m.subscription is not None]
        assert {m.subscription: m.state for m in heard} == dict.fromkeys(
            ("lead", "coder", "reviewer"), State.COMPLETED
        )
        assert text(heard[0]) == "[Chat room #dev — @lead]:\nstand-up in five"
        assert [m.agent for m in everything if m.queue == "outbox/web"] == ["lead"]


async def test_agents_work_in_parallel_and_one_agent_in_sequence(tmp_path: Path) -> None:
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
        turns = [record.data for record in await desk.room.records("turn")]
        latest_start = max(turn["started_at"] for turn in turns)
        assert latest_start < min(turn["ended_at"] for turn in turns), "all three were at work at once"
        await desk.write("@coder first", sender="Ann", sender_id="ann")
        await desk.write("@coder second", sender="Bob", sender_id="bob")
        both = (await desk.replies(5))[3:]
        assert [m.sender_id for m in both] == ["ann", "bob"]
        one, other = [record.data for record in await desk.room.records("turn")][3:]
        assert one["ended_at"] <= other["started_at"], "one agent takes one turn at a time"


async def test_two_people_who_wrote_meanwhile_both_get_an_answer(tmp_path: Path) -> None:
    written = asyncio.Event()

    async def act(request: TurnRequest) -> str:
        await written.wait()
        return request.prompt

    puppet = Puppet(act)
    async with staffed(
        tmp_path, puppets={"puppet": puppet}, agents={"coder": {"provider": "puppet"}}
    ) as desk:
        await desk.write("@coder slow")
        await until(lambda: puppet.working)
        await desk.write("@coder one", sender="Bob", sender_id="bob")
        await desk.write("@coder two", sender="Bob", sender_id="bob")
        await desk.write("@coder three", sender="Cy", sender_id="cy")
        written.set()
        everything = await desk.quiet()
        replies = [m for m in everything if m.queue == "outbox/web"]
        by_person = {m.sender_id: text(m) for m in replies[1:]}
        assert by_person["bob"] == "one\n\n------\n\ntwo\n\n- [coder]"
        assert by_person["cy"] == "three\n\n- [coder]"
        assert len(replies) == 3


async def test_a_failure_is_retried_and_answered_once(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="coder", match="", fail=ErrorKind.CRASHED, times=1, reply="at last")]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@coder try")
        [reply] = await desk.replies(1)
        assert text(reply) == "at last\n\n- [coder]"
        [mail] = [m for m in await desk.quiet() if m.queue == "inbox/coder"]
        assert (mail.state, mail.attempts) == (State.COMPLETED, 2)


async def test_bad_credentials_stop_at_once_with_a_plain_message(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", fail=ErrorKind.AUTH)) as desk:
        sent = await desk.write("@coder try")
        [told] = await desk.replies(1)
        assert told.message_type == "office.failure"
        assert "@coder could not answer" in text(told)
        assert f"postroom dead replay {sent.receipts[0].id}" in text(told)
        dead = await desk.room.get(sent.receipts[0].id)
        assert (dead.state, dead.attempts, dead.failure_kind) == (State.DEAD, 1, "auth")


async def test_a_rate_limit_waits_without_using_up_an_attempt(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="coder", fail=ErrorKind.RATE_LIMIT, times=1, retry_after=0.3, reply="now")]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@coder try")
        [reply] = await desk.replies(1)
        assert text(reply) == "now\n\n- [coder]"
        [mail] = [m for m in await desk.quiet() if m.queue == "inbox/coder"]
        assert mail.attempts == 1


async def test_every_turn_is_recorded_with_its_usage_and_cost(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="ok", chunks=2)) as desk:
        await desk.write("@coder hello")
        await desk.replies(1)
        [turn] = await desk.room.records("turn")
        assert (turn.data["agent"], turn.data["outcome"], turn.data["cost_usd"]) == (
            "coder",
            "finished",
            "0.0",
        )
        assert turn.data["usage"][0]["output_tokens"] == 1
        kinds = [event.type async for event in desk.room.events() if event.type.startswith("record.turn")]
        assert kinds == [
            "record.turn.started",
            "record.turn.progress",
            "record.turn",
        ]


async def test_a_short_turn_is_two_commits_beside_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="ok", chunks=2)) as desk:
        units: list[list[str]] = []
        run = desk.room.run

        def watched(command: c.Command) -> Any:
            if command.actor == "coder":
                parts = command.commands if isinstance(command, c.Unit) else [command]
                units.append([f"{type(each).__name__} {getattr(each, 'kind', '')}".strip() for each in parts])
            return run(command)

        monkeypatch.setattr(desk.room, "run", watched)
        await desk.write("@coder hello")
        await desk.replies(1)
        begun, ended = units
        assert begun == ["Reserve", "AddRecord turn.started"]
        assert ended[:2] == ["AddRecord turn.progress", "Complete"]
        assert {"Publish", "AddRecord turn", "Settle"} < set(ended)


async def test_the_next_turn_goes_on_with_the_same_session_by_its_id(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="$session $turn")) as desk:
        for _ in range(2):
            await desk.write("@coder hello")
            await desk.quiet()
        first, second = [text(m).split("\n")[0] for m in await desk.replies(2)]
        assert (first, second) == ("script-coder-1 1", "script-coder-1 2")


async def test_with_sessions_per_sender_two_people_never_share_one(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="coder", reply="$session")]
    async with staffed(tmp_path, *rules, sessions={"scope": "sender"}) as desk:
        await desk.write("@coder hello", sender="Ann", sender_id="ann")
        await desk.quiet()
        await desk.write("@coder hello", sender="Bob", sender_id="bob")
        await desk.quiet()
        first, second = [text(m).split("\n")[0] for m in await desk.replies(2)]
        assert first != second


async def test_a_lead_fans_out_and_the_mates_work_side_by_side(tmp_path: Path) -> None:
    rules = [
        ScriptRule(
            agent="lead",
            reply="The login is broken.",
            hand_off={"coder": "fix it", "reviewer": "find out since when"},
        ),
    ]
    both = asyncio.Event()

    async def act(request: TurnRequest) -> str:
        if puppet.working == 2:
            both.set()
        await both.wait()
        return f"heard: {request.prompt}"

    puppet = Puppet(act)
    mates = {name: {"provider": "puppet"} for name in ("coder", "reviewer")}
    agents = {"lead": {"provider": "script"}, **mates}
    async with staffed(tmp_path, *rules, puppets={"puppet": puppet}, agents=agents) as desk:
        await desk.write("@dev please look")
        replies = signed(await desk.replies(3))
        shared = "[Message from teammate @lead]:\nThe login is broken.\n\n------\n\nDirected to you:\n"
        assert replies["coder"].startswith(f"heard: {shared}fix it")
        assert replies["reviewer"].startswith(f"heard: {shared}find out since when")
        turns = {turn.data["agent"]: turn.data for turn in await desk.room.records("turn")}
        assert turns["coder"]["started_at"] < turns["reviewer"]["ended_at"]
        assert turns["reviewer"]["started_at"] < turns["coder"]["ended_at"]


async def test_an_answer_flows_back_to_the_mate_who_asked(tmp_path: Path) -> None:
    rules = [
        ScriptRule(agent="lead", match="from teammate @coder", reply="It is done: $excerpt"),
        ScriptRule(agent="lead", reply="I ask.", hand_off={"coder": "which file?"}),
        ScriptRule(agent="coder", reply="Found it.", hand_off={"lead": "login.py"}),
    ]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@lead where is the bug?")
        replies = await desk.replies(3)
        assert [m.agent for m in replies] == ["lead", "coder", "lead"]
        assert "login.py" in text(replies[2])
        chain = {m.id: m for m in await desk.quiet()}
        back = next(m for m in chain.values() if m.from_agent == "coder" and m.queue == "inbox/lead")
        asked = chain[back.causation_id or ""]
        assert (asked.queue, asked.from_agent) == ("inbox/coder", "lead")


async def test_mates_talk_to_each_other_without_their_lead(tmp_path: Path) -> None:
    rules = [
        ScriptRule(agent="coder", match="from teammate @reviewer", reply="Yes, it is tested."),
        ScriptRule(agent="coder", reply="Fixed.", hand_off={"reviewer": "please read login.py"}),
        ScriptRule(agent="reviewer", reply="One question.", hand_off={"coder": "is it tested?"}),
    ]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@coder fix it")
        assert [m.agent for m in await desk.replies(3)] == ["coder", "reviewer", "coder"]
        assert not [m for m in await desk.quiet() if m.queue == "inbox/lead"]


@pytest.mark.parametrize(("queue", "office"), [(1, 5), (9, 1)])
async def test_a_person_is_told_once_whoever_sets_the_number_of_attempts(
    tmp_path: Path, queue: int, office: int
) -> None:
    """The limit of the inbox may be changed while the office is at work."""
    rules = [ScriptRule(agent="coder", fail=ErrorKind.CRASHED)]
    async with staffed(tmp_path, *rules, guards={"attempts": office}) as desk:
        await desk.room.update_queue("office/inbox/coder", max_retries=queue)
        await desk.write("@coder try")
        [mail] = [m for m in await desk.quiet() if m.agent == "coder" and m.message_type == "office.mail"]
        assert (mail.state, mail.attempts) == (State.DEAD, 1)
        [told] = await desk.replies(1)
        assert told.message_type == "office.failure"
