"""Each thing that waits for a person has its answers, and each answer does what it says."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom import State
from postroom.clock import SystemClock
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.office.guards import budgets, pauses
from postroom.office.pairing import Pairings
from postroom.services import callers
from postroom.services.conversations import Draft
from postroom.services.need_answers import NeedGone, find_need, give_answer, list_answers
from postroom.services.needs_you import NeedKind, PersonNeed
from tests.api.house import House, opened
from tests.services.test_needs_you import die

OWNER = callers.owner()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path, works=False) as house:
        yield house


async def only(house: House) -> PersonNeed:
    [need] = await house.deps.services.needs_you.list_all(OWNER)
    return need


async def give(house: House, word: str) -> None:
    await give_answer(house.deps.services, OWNER, await only(house), word)


async def test_dead_letters_are_retried_or_given_up_as_far_as_they_were_seen(house: House) -> None:
    services = house.deps.services
    await die(house, "orders", count=2)
    need = await only(house)
    shown = await find_need(services, OWNER, "dead", need.ids[1], need.ids[1:])
    assert shown.ids == need.ids[1:]
    await give_answer(services, OWNER, shown, "retry")
    assert (await house.room.get(need.ids[1])).state is State.PENDING
    await give(house, "discard")
    assert (await house.room.get(need.ids[0])).state is State.CANCELLED
    for kind, ids in (("dead", need.ids), ("review", ())):
        with pytest.raises(NeedGone):
            await find_need(services, OWNER, kind, need.id, ids)


async def test_what_the_person_was_not_shown_is_not_answered(house: House) -> None:
    await die(house, "orders")
    with pytest.raises(NeedGone):
        await find_need(house.deps.services, OWNER, "dead", (await only(house)).id, ["another"])
    with pytest.raises(InvalidField):
        await give(house, "explode")


async def test_senders_are_let_in_or_dismissed(house: House) -> None:
    pairings = Pairings(house.room, SystemClock())
    await pairings.admit("telegram", "1", "Ann")
    await give(house, "approve")
    assert [each.sender for each in await pairings.approved()] == ["Ann"]
    await pairings.admit("telegram", "2", "Bob")
    await give(house, "dismiss")
    assert await pairings.waiting() == []


@pytest.mark.parametrize("word", ["continue", "stop"])
async def test_a_paused_conversation_goes_on_or_ends(house: House, word: str) -> None:
    services = house.deps.services
    await services.conversations.send(OWNER, Draft(text="@lead hello", channel="web", sender="Ann"))
    [mail] = (await house.room.messages(queue="office/inbox/lead")).messages
    account = budgets.conversation(mail.correlation_id or "")
    await house.room.run(c.Freeze(account=account, reason="cycle"))
    need = await only(house)
    assert need.kind is NeedKind.CONVERSATION
    found = await find_need(services, OWNER, need.kind, need.id)
    await give_answer(services, OWNER, found, word)
    ended = (await house.room.get(mail.id)).state
    assert ended is (State.CANCELLED if word == "stop" else State.PENDING)


async def test_everybody_goes_on(house: House) -> None:
    await pauses.pause_all(house.room)
    await give(house, "continue")
    assert not await pauses.paused(house.room)


async def test_a_review_has_its_options_unless_it_asks_for_more(house: House) -> None:
    asked = await house.deps.services.questions.ask(OWNER, "Ship it?", ["ship", "wait"])
    assert [each.word for each in list_answers(await only(house))] == ["ship", "wait"]
    await give(house, "wait")
    assert (await house.room.get(asked)).result == {"decision": "wait"}
    sections = [
        {"type": "decision", "options": ["yes", "no"]},
        {"type": "input", "field": "why", "kind": "text", "required": True},
    ]
    await house.room.create_queue("review")
    await house.room.publish("review", {}, hitl_spec={"sections": sections, "timeout_s": 60})
    assert list_answers(await only(house)) == ()
