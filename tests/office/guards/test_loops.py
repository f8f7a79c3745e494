"""Loops are found on the way a message came, with bounded work, and only between agents."""

from typing import Any

from postroom import Message, Room
from postroom.errors import MessageNotFound
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.office.guards.budgets import BudgetGuard
from postroom.office.guards.loops import STEPS, find_loop
from postroom.office.guards.rules import GuardRules

RULES = GuardRules(repeats=3, cycles=4)
LONG = "Please look at the failing login test again and tell me what you find there now."


class Counting:
    """A room that counts what is asked of it."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.asked = 0

    async def get(self, message_id: str) -> Message:
        self.asked += 1
        return await self._room.get(message_id)


async def chain(
    room: Room, texts: list[str], agents: tuple[str, ...] = ("lead", "coder"), **more: Any
) -> Message:
    """A person's message, and what agents made of it, each caused by the one before; the last one."""
    await room.create_scope("office", exist_ok=True)
    for agent in agents:
        await room.create_queue(f"office/inbox/{agent}", exist_ok=True)
    cause = (await room.publish(f"office/inbox/{agents[0]}", {"text": "go"}, agent=agents[0])).id
    talk = cause
    for number, text in enumerate(texts):
        sender, receiver = agents[number % len(agents)], agents[(number + 1) % len(agents)]
        message = NewMessage(
            body={"text": text},
            from_agent=sender,
            agent=receiver,
            correlation_id=talk,
            causation_id=cause,
            hop=number + 1,
            **more,
        )
        [receipt] = await room.run(c.Publish(queue=f"office/inbox/{receiver}", messages=[message]))
        cause = receipt.id
    return await room.get(cause)


def different(count: int) -> list[str]:
    return [
        f"this is step {n} of the work, and it says something that was not said before" for n in range(count)
    ]


async def test_the_same_words_to_the_same_agent_are_a_loop_the_fourth_time(room: Room) -> None:
    assert await find_loop(room, await chain(room, [LONG] * 6), RULES, 0) is None
    loop = await find_loop(room, await chain(room, [LONG] * 7), RULES, 0)
    assert loop is not None
    assert (loop.guard, loop.sender, loop.receiver, loop.times) == (BudgetGuard.REPEATS, "lead", "coder", 4)


async def test_the_same_hand_off_is_a_cycle_the_fifth_time_whatever_is_said(room: Room) -> None:
    assert await find_loop(room, await chain(room, different(8)), RULES, 0) is None
    loop = await find_loop(room, await chain(room, different(9)), RULES, 0)
    assert loop is not None
    assert (loop.guard, loop.times) == (BudgetGuard.CYCLE, 5)


async def test_a_round_of_three_is_a_cycle_too(room: Room) -> None:
    agents = ("lead", "coder", "reviewer")
    assert await find_loop(room, await chain(room, different(12), agents), RULES, 0) is None
    assert await find_loop(room, await chain(room, different(13), agents), RULES, 0) is not None


async def test_a_long_chain_through_many_agents_is_no_cycle(room: Room) -> None:
    agents = tuple(f"agent{n}" for n in range(30))
    assert await find_loop(room, await chain(room, [LONG] * 29, agents), RULES, 0) is None


async def test_what_a_person_has_looked_at_does_not_count(room: Room) -> None:
    last = await chain(room, different(9))
    assert await find_loop(room, last, RULES, since=last.created_at) is None


async def test_what_a_person_wrote_ends_the_way_back(room: Room) -> None:
    last = await chain(room, different(8))
    spoken = NewMessage(body={"text": "go on"}, agent="lead", causation_id=last.id, hop=9)
    [receipt] = await room.run(c.Publish(queue="office/inbox/lead", messages=[spoken]))
    assert await find_loop(room, await room.get(receipt.id), RULES, 0) is None
    after = NewMessage(body={"text": "so"}, from_agent="lead", agent="coder", causation_id=receipt.id, hop=10)
    [receipt] = await room.run(c.Publish(queue="office/inbox/coder", messages=[after]))
    assert await find_loop(room, await room.get(receipt.id), RULES, 0) is None


async def test_the_work_is_bounded_however_long_the_way_was(room: Room) -> None:
    agents = tuple(f"agent{n}" for n in range(70))
    counting: Any = Counting(room)
    assert await find_loop(counting, await chain(room, different(69), agents), RULES, 0) is None
    assert counting.asked == STEPS


async def test_a_message_whose_cause_was_pruned_is_no_loop(room: Room) -> None:
    last = await chain(room, different(9))

    class Forgetful(Counting):
        async def get(self, message_id: str) -> Message:
            raise MessageNotFound(message_id=message_id)

    forgetful: Any = Forgetful(room)
    assert await find_loop(forgetful, last, RULES, 0) is None
