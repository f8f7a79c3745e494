"""A person who waits is told for what, in words that name no account and no queue."""

import msgspec
import pytest

import postroom
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.kernel.states import State
from postroom.office.guards import budgets, pauses
from postroom.services.waiting_reasons import explain_guards, explain_state


async def make_message(room: postroom.Room) -> Message:
    await room.create_scope("office")
    await room.create_queue("office/inbox/lead")
    receipt = await room.publish("office/inbox/lead", {"text": "hi"}, agent="lead", correlation_id="talk-1")
    return await room.get(receipt.id)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"state": State.PENDING}, "@lead has not begun; it waits in line."),
        ({"state": State.CLAIMED, "claimed_at": 0, "updated_at": 0}, "@lead works on it since 1970-01-01"),
        ({"state": State.COMPLETED, "finished_at": 1}, "@lead is done since 1970-01-01"),
        ({"state": State.DEAD, "failure_reason": "it broke"}, "@lead: dead. it broke"),
        (
            {"state": State.DELAYED, "failure_reason": "office: paused"},
            "waits with everybody: the office is paused.",
        ),
        (
            {"state": State.DELAYED, "failure_reason": "agent/lead/2026: budget"},
            "waits for its budget: today's",
        ),
        ({"state": State.DELAYED, "failure_reason": "team/dev/2026: budget"}, "for the budget of its team"),
        ({"state": State.DELAYED, "failure_reason": "day/2026: budget"}, "for the budget of the office"),
        ({"state": State.DELAYED, "failure_reason": "conversation/talk-1: cost"}, "for a decision: a guard"),
        ({"state": State.DELAYED, "failure_reason": "busy.", "visible_at": 1}, "until 1970-01-01T00:00:00"),
        ({"state": State.DELAYED, "failure_reason": None, "visible_at": None}, "@lead waits for its turn."),
    ],
)
async def test_each_state_has_its_words(changes: dict[str, object], told: str) -> None:
    async with postroom.open("memory://") as room:
        message = msgspec.structs.replace(await make_message(room), **changes)
    assert told in explain_state(message)


async def test_what_keeps_a_conversation_or_everybody_is_told() -> None:
    async with postroom.open("memory://") as room:
        message = await make_message(room)
        assert await explain_guards(room, message) == []
        await pauses.pause_all(room)
        freeze = c.Freeze(account=budgets.conversation("talk-1"), reason="cost", correlation_id="talk-1")
        await room.run(freeze)
        assert await explain_guards(room, message) == [
            "It is paused by the guard cost. /continue lets it go on, /stop ends it.",
            "Everybody is paused, until the owner lets them go on.",
        ]
