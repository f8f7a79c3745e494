"""What is written is safe, can be followed to its end, and is delivered once."""

import pytest

from postroom.errors import BodyTooLarge, InvalidField, MessageNotFound, NotFound
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.kernel.states import State
from postroom.office import queues
from postroom.office.guards import budgets
from postroom.services.callers import Caller
from postroom.services.conversations import Draft, DuplicateMessage, NotTeammates, Outgoing, TurnOver
from tests.services.office.conftest import ServedOffice


async def in_turn(office: ServedOffice, agent: str = "coder", text: str = "work") -> tuple[Caller, Message]:
    """An agent at work on a message."""
    await office.services.conversations.send(office.owner, Draft(text=f"@{agent} {text}", sender="Ann"))
    [message] = await office.room.claim(queues.inbox(agent))
    return office.agent(agent, message.id), message


async def answer(office: ServedOffice, message: Message, text: str, agent: str = "coder") -> None:
    """As a lane would: the reply and the completion in one unit."""
    reply = NewMessage(
        body={"text": text, "original": ""},
        message_type="office.reply",
        channel=message.channel,
        sender=message.sender,
        sender_id=message.sender_id,
        agent=agent,
        from_agent=agent,
        hop=message.hop + 1,
        correlation_id=message.correlation_id,
        causation_id=message.id,
    )
    assert message.channel is not None
    assert message.claim_token is not None
    await office.room.run(
        c.Unit(
            commands=(
                queues.open_outbox(message.channel),
                c.Publish(queue=queues.outbox(message.channel), messages=[reply], actor=agent),
                c.Complete(message_id=message.id, token=message.claim_token, result={"answer": text}),
            ),
            actor=agent,
        )
    )


async def test_a_message_is_followed_from_its_sending_to_its_reply(office: ServedOffice) -> None:
    talks = office.services.conversations
    sent = await talks.send(office.owner, Draft(text="@coder hello", message_id="m-1"))
    assert (sent.message_id, sent.notice, sent.queued) == ("m-1", None, True)
    before = await talks.status(office.owner, "m-1")
    assert (before.open, before.agents, before.replies, before.failures) == (True, ("coder",), (), ())
    [message] = await office.room.claim(queues.inbox("coder"))
    await answer(office, message, "Hello!")
    after = await talks.status(office.owner, "m-1")
    assert not after.open
    assert [each.message.body["text"] for each in after.replies] == ["Hello!"]
    with pytest.raises(MessageNotFound):
        await talks.status(office.owner, "m-2")


async def test_the_same_message_is_never_taken_twice(office: ServedOffice) -> None:
    talks = office.services.conversations
    await talks.send(office.owner, Draft(text="@coder hello", message_id="m-1"))
    for text in ("@coder hello", "@lead something else"):
        with pytest.raises(DuplicateMessage):
            await talks.send(office.owner, Draft(text=text, message_id="m-1"))
    assert len(await talks.history(office.owner)) == 1


async def test_what_steers_reaches_the_turns_for_its_person_and_nothing_else_does(
    office: ServedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    steered: list[tuple[str, str]] = []
    monkeypatch.setattr(office.control.office, "steer", lambda *whose: steered.append(whose))
    send = office.services.conversations.send
    await send(office.owner, Draft(text="@coder begin", channel="web", sender_id="ann", message_id="1"))
    steering = Draft(text="@coder no, wait", channel="web", sender_id="ann", message_id="2", steers=True)
    await send(office.owner, steering)
    await send(office.owner, steering, repeat_ok=True)
    assert steered == [("web", "ann")]


async def test_what_is_too_long_changes_nothing(office: ServedOffice) -> None:
    talks = office.services.conversations
    limit = office.control.settings.limits.message_bytes
    with pytest.raises(BodyTooLarge):
        await talks.send(office.owner, Draft(text="x" * (limit + 1)))
    with pytest.raises(BodyTooLarge):
        await talks.respond(office.owner, Outgoing(channel="web", sender="Ann", text="x" * (limit + 1)))
    with pytest.raises(BodyTooLarge):
        await talks.write_to(office.owner, "coder", "x" * (limit + 1))
    assert await talks.history(office.owner) == []


async def test_words_to_a_paused_conversation_are_answered_at_once(office: ServedOffice) -> None:
    sent = await office.services.conversations.send(office.owner, Draft(text="/continue"))
    assert (sent.notice, sent.queued) == ("Nothing of yours is paused.", False)


async def test_what_rode_along_has_the_replies_of_the_message_it_was_answered_with(
    office: ServedOffice,
) -> None:
    talks = office.services.conversations
    for number in ("m-1", "m-2"):
        await talks.send(office.owner, Draft(text="@coder hello", message_id=number, sender="Ann"))
    first, second = await office.room.claim(queues.inbox("coder"), limit=2)
    await answer(office, first, "Both.")
    await office.room.complete(second, {"with": first.id})
    found = await talks.status(office.owner, "m-2")
    assert [each.message.body["text"] for each in found.replies] == ["Both."]


async def test_an_answer_to_somebody_else_is_not_shown(office: ServedOffice) -> None:
    talks = office.services.conversations
    await talks.send(office.owner, Draft(text="@coder hello", message_id="m-1", sender="Ann"))
    await talks.send(office.owner, Draft(text="@coder hello", message_id="m-2", sender="Bob"))
    first, second = await office.room.claim(queues.inbox("coder"), limit=2)
    await answer(office, first, "For Ann.")
    await office.room.complete(second, {"with": first.id})
    assert (await talks.status(office.owner, "m-2")).replies == ()


async def test_a_conversation_tells_which_guard_it_waits_for(office: ServedOffice) -> None:
    talks = office.services.conversations
    await talks.send(office.owner, Draft(text="@coder hello", message_id="m-1"))
    [message] = await office.room.claim(queues.inbox("coder"))
    assert (await talks.status(office.owner, "m-1")).paused is None, "it is worked on"
    account = budgets.conversation("api:m-1")
    assert message.claim_token is not None
    held = c.Hold(account=account, until=2**52, message_id=message.id, token=message.claim_token, actor="x")
    freeze = c.Freeze(account=account, reason="hops", actor="x")
    await office.room.run(c.Unit(commands=(freeze, held), actor="x"))
    assert (await talks.status(office.owner, "m-1")).paused == "hops"


async def test_a_conversation_tells_that_a_budget_of_today_is_used_up(office: ServedOffice) -> None:
    talks = office.services.conversations
    await talks.send(office.owner, Draft(text="@coder hello", message_id="m-1"))
    [message] = await office.room.claim(queues.inbox("coder"))
    assert message.claim_token is not None
    account = "day/2030-01-01"
    held = c.Hold(account=account, until=2**52, message_id=message.id, token=message.claim_token, actor="x")
    await office.room.run(
        c.Unit(commands=(c.Freeze(account=account, reason="budget", actor="x"), held), actor="x")
    )
    assert (await talks.status(office.owner, "m-1")).paused == "budget"


async def test_a_dead_message_tells_why(office: ServedOffice) -> None:
    talks = office.services.conversations
    await talks.send(office.owner, Draft(text="@coder hello", message_id="m-1"))
    [message] = await office.room.claim(queues.inbox("coder"))
    await office.room.fail(message, "no credentials", retry=False)
    found = await talks.status(office.owner, "m-1")
    assert (found.open, found.failures) == (False, ("no credentials",))


async def test_an_addressee_is_known_by_id_or_name(office: ServedOffice) -> None:
    talks = office.services.conversations
    assert await talks.check_addressee(office.owner, "@Coder")
    assert await talks.check_addressee(office.owner, "dev")
    assert not await talks.check_addressee(office.owner, "nobody")


async def test_an_agent_writes_to_its_teammates_during_a_turn_only(office: ServedOffice) -> None:
    talks = office.services.conversations
    with pytest.raises(TurnOver):
        await talks.write_to(office.agent("coder", "no-such-message"), "lead", "hello")
    agent, message = await in_turn(office)
    note = await office.room.get(await talks.write_to(agent, "@lead", "please look"))
    assert (note.from_agent, note.correlation_id, note.hop) == ("coder", message.correlation_id, 1)
    for whom in ("reviewer", "coder"):
        with pytest.raises(NotTeammates):
            await talks.write_to(agent, whom, "hello")
    with pytest.raises(InvalidField):
        await talks.write_to(agent, "nobody", "hello")
    with pytest.raises(InvalidField):
        await talks.write_to(agent, "lead", "  ")
    [waiting] = await talks.read_inbox(agent)
    assert (waiting["from"], waiting["waiting"], waiting["text"]) == ("lead", True, None)
    [asked] = await office.room.claim(queues.inbox("lead"))
    await office.room.complete(asked, {"answer": "I have."})
    [answered] = await talks.read_inbox(agent)
    assert (answered["waiting"], answered["text"]) == (False, "I have.")
    await office.room.complete(message)
    with pytest.raises(TurnOver):
        await talks.write_to(agent, "lead", "once more")


async def test_the_owners_tools_read_each_answer_once(office: ServedOffice) -> None:
    talks = office.services.conversations
    mine = await talks.write_to(office.owner, "coder", "hello")
    [message] = await office.room.claim(queues.inbox("coder"))
    await answer(office, message, "Hello!")
    other = NewMessage(body={"text": "not yours"}, channel="mcp", sender_id="somebody else")
    await office.room.run(c.Publish(queue=queues.outbox("mcp"), messages=[other], actor="x"))
    [read] = await talks.read_inbox(office.owner)
    assert (read["from"], read["text"], read["messageId"]) == ("coder", "Hello!", mine)
    assert await talks.read_inbox(office.owner) == []
    assert (await office.room.counts(queues.outbox("mcp"))).pending == 1, "what is others' stays"


async def test_responses_wait_in_order_until_they_are_acknowledged(office: ServedOffice) -> None:
    talks = office.services.conversations
    assert await talks.pending_responses(office.owner, "web") == []
    for text in ("one", "two", "three"):
        await talks.respond(office.owner, Outgoing(channel="web", sender="Ann", text=text, agent="coder"))
    waiting = await talks.pending_responses(office.owner, "web")
    assert [each.message.body["text"] for each in waiting] == ["one", "two", "three"]
    newest = await talks.responses(office.owner, limit=2)
    assert [each.message.body["text"] for each in newest] == ["three", "two"]
    second = waiting[1].number
    await talks.acknowledge(office.owner, [second, second, 10**9])
    left = await talks.pending_responses(office.owner, "web")
    assert [each.message.body["text"] for each in left] == ["one", "three"]
    assert (await office.room.get(waiting[1].message.id)).state is State.COMPLETED


async def test_what_is_put_off_cannot_be_acknowledged_yet(office: ServedOffice) -> None:
    talks = office.services.conversations
    await talks.respond(office.owner, Outgoing(channel="web", sender="Ann", text="later"))
    [each] = await talks.pending_responses(office.owner, "web")
    [claimed] = await office.room.claim(queues.outbox("web"))
    await office.room.snooze(claimed, 3600)
    await talks.acknowledge(office.owner, [each.number])
    assert (await office.room.get(each.message.id)).state is State.DELAYED


async def test_search_finds_all_words_and_an_agent_only_its_own(office: ServedOffice) -> None:
    talks = office.services.conversations
    await talks.send(office.owner, Draft(text="@coder the Blue parcel"))
    await talks.send(office.owner, Draft(text="@lead the blue letter"))
    assert len(await talks.search(office.owner, "BLUE the")) == 2
    assert len(await talks.search(office.owner, "blue parcel")) == 1
    assert len(await talks.search(office.agent("lead"), "blue")) == 1
    assert len(await talks.history(office.owner, "coder")) == 1


async def test_questions_are_answered_by_people_and_read_by_who_asked(office: ServedOffice) -> None:
    questions = office.services.questions
    agent, message = await in_turn(office)
    asked = await questions.ask(agent, "May I?")
    found = await questions.read(agent, asked)
    assert (found.open, found.answer) == (True, None)
    assert (await office.room.get(asked)).correlation_id == message.correlation_id
    with pytest.raises(InvalidField):
        await questions.read(office.agent("lead"), asked)
    with pytest.raises(InvalidField):
        await questions.read(office.owner, message.id)
    with pytest.raises(NotFound):
        await questions.read(office.owner, "no-such-message")
    own = await questions.ask(office.owner, "Which?", ["this", "that"])
    assert (await questions.read(office.owner, own)).open
    with pytest.raises(TurnOver):
        await questions.ask(office.agent("coder", "gone"), "May I?")
