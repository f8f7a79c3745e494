"""What an agent remembers from turn to turn, and what happens when it no longer can."""

from pathlib import Path
from typing import Any

from postroom.providers.protocol import Cause, ErrorKind, Failed, Finished, SessionTotal, TurnRequest, Usage
from tests.acceptance.office import Gate, Puppet, staffed, text

AGENTS = {"coder": {"provider": "puppet"}}


def too_long(request: TurnRequest) -> list[Failed]:
    return [Failed(kind=ErrorKind.CONTEXT_TOO_LONG, message="It no longer fits.")]


async def test_an_outgrown_session_is_followed_by_a_new_one_with_a_summary(tmp_path: Path) -> None:
    def act(request: TurnRequest) -> Any:
        if request.session_id == "puppet-1" and "third" in request.prompt:
            return too_long(request)
        return f"answer to {request.prompt[-6:]}"

    puppet = Puppet(act)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        for word in ("first", "second", "third", "fourth"):
            await desk.write(f"@coder the {word}")
            await desk.quiet()
        replies = [text(m) for m in await desk.replies(4)]
        assert "new session" in replies[2]
        assert "no longer fits" in replies[2]
        assert not any("new session" in reply for reply in (replies[0], replies[1], replies[3]))
        ids = [request.session_id for request in puppet.asked]
        assert ids == [None, "puppet-1", "puppet-1", None, "puppet-4"]
        prompt = puppet.asked[3].prompt
        assert prompt.endswith("------\n\nthe third")
        assert "They wrote: the first\nYou answered: answer to  first" in prompt
        assert "They wrote: the second" in prompt
        assert puppet.asked[4].prompt == "the fourth"
        third = [m for m in await desk.quiet() if m.queue == "inbox/coder"][2]
        assert third.attempts == 1, "it was answered in the same attempt"
        outcomes = [record.data["outcome"] for record in await desk.room.records("turn")]
        assert outcomes == ["finished", "finished", "context_too_long", "finished", "finished"]


async def test_a_provider_without_memory_keeps_the_summary_in_its_new_session(tmp_path: Path) -> None:
    def act(request: TurnRequest) -> Any:
        return too_long(request) if "second" in request.prompt and request.session_id else "yes"

    puppet = Puppet(act)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        for word in ("first", "second", "third"):
            await desk.write(f"@coder the {word}")
            await desk.quiet()
    [asked, answered] = puppet.asked[-1].history
    assert "They wrote: the first" in asked.text
    assert asked.text.endswith("the second")
    assert answered.text == "yes"


async def test_a_message_that_does_not_fit_even_alone_is_told_and_not_tried_for_ever(tmp_path: Path) -> None:
    puppet = Puppet(too_long)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        await desk.write("@coder all of it")
        [told] = await desk.replies(1)
        assert told.message_type == "office.failure"
        assert "It no longer fits." in text(told)
        assert len(puppet.asked) == 1


async def test_a_lost_session_is_replaced_without_bothering_the_person(tmp_path: Path) -> None:
    def act(request: TurnRequest) -> Any:
        if request.session_id == "puppet-1":
            return [Failed(kind=ErrorKind.INVALID, cause=Cause.SESSION_LOST, message="No such session.")]
        return "here I am"

    puppet = Puppet(act)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        for _ in range(2):
            await desk.write("@coder hello")
            await desk.quiet()
        replies = await desk.replies(2)
        assert [m.message_type for m in replies] == ["office.reply", "office.reply"]
        assert "earlier session is gone" in text(replies[1])
        assert "no longer fits" not in text(replies[1])
        assert [request.session_id for request in puppet.asked] == [None, "puppet-1", None]


async def test_an_answer_cut_by_the_models_token_limit_says_so(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: [Finished(text="one, two,", stop_reason="max_tokens")])
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        await desk.write("@coder count")
        [reply] = await desk.replies(1)
        assert text(reply).startswith("one, two,")
        assert "longest one the model may write" in text(reply)


async def test_a_provider_without_memory_is_given_what_was_said(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: f"answer {len(request.history)}")
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        for word in ("one", "two", "three"):
            await desk.write(f"@coder {word}")
            await desk.quiet()
    said = [(utterance.role, utterance.text) for utterance in puppet.asked[2].history]
    assert said == [("user", "one"), ("assistant", "answer 0"), ("user", "two"), ("assistant", "answer 2")]


async def test_tokens_that_count_up_over_a_session_are_counted_once(tmp_path: Path) -> None:
    """Also after a restart, when the program's earlier total is known from the store alone."""

    def act(request: TurnRequest) -> list[Any]:
        before = request.session_total.input_tokens if request.session_total else 0
        total = before + 100
        usage = Usage(
            provider="puppet",
            model="m",
            input_tokens=total - before,
            cost_usd=0.0,
            session_total=SessionTotal(input_tokens=total),
        )
        return [usage, Finished(text="ok")]

    totals, turns = [], []
    for _ in range(3):
        puppet = Puppet(act)
        async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
            await desk.write("@coder hello")
            await desk.quiet()
            totals.append(puppet.asked[0].session_total)
            turns = await desk.room.records("turn")
    assert [total and total.input_tokens for total in totals] == [None, 100, 200]
    assert [turn.data["usage"][0]["input_tokens"] for turn in turns] == [100, 100, 100]


async def test_a_reset_begins_anew_for_every_person(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "ok")
    options = {"puppets": {"puppet": puppet}, "agents": AGENTS, "teams": {}, "sessions": {"scope": "sender"}}
    async with staffed(tmp_path, **options) as desk:
        for person in ("ann", "bob"):
            await desk.write("@coder hello", sender_id=person)
        await desk.quiet()
        await desk.office.reset("coder")
        for person in ("ann", "bob"):
            await desk.write("@coder again", sender_id=person)
        await desk.quiet()
    assert [request.session_id for request in puppet.asked] == [None] * 4


async def test_a_reset_while_the_agent_is_at_work_is_not_undone_by_the_end_of_its_turn(
    tmp_path: Path,
) -> None:
    gate = Gate()
    async with staffed(tmp_path, puppets={"puppet": gate.puppet}, agents=AGENTS, teams={}) as desk:
        await desk.write("@coder hello")
        await gate.begun()
        await desk.office.reset("coder")
        gate.open.set()
        await desk.quiet()
        for _ in range(2):
            await desk.write("@coder again")
            await desk.quiet()
    assert [request.session_id for request in gate.puppet.asked] == [None, None, "puppet-2"]


async def test_the_session_of_one_provider_outlives_a_turn_of_its_fallback(tmp_path: Path) -> None:
    down: list[bool] = []

    def act(request: TurnRequest) -> Any:
        return [Failed(kind=ErrorKind.OVERLOADED, message="busy")] if down else "from the first"

    first, second = Puppet(act, "first"), Puppet(lambda request: "from the second", "second")
    agents = {"coder": {"provider": "first", "fallbacks": [{"provider": "second"}]}}
    async with staffed(tmp_path, puppets={"first": first, "second": second}, agents=agents, teams={}) as desk:
        for state in (False, True, False):
            down[:] = [True] if state else []
            await desk.write("@coder hello")
            await desk.quiet()
        assert [text(m).split("\n")[0] for m in await desk.replies(3)] == [
            "from the first",
            "from the second",
            "from the first",
        ]
    assert [request.session_id for request in first.asked] == [None, "first-1", "first-1"]
