"""How much goes on at once, and in which order."""

import asyncio
from pathlib import Path
from typing import Any

from postroom.providers.protocol import TurnRequest
from tests.acceptance.office import Puppet, staffed, until

SIX = tuple(f"agent{number}" for number in range(6))


def six(provider: str = "puppet") -> dict[str, Any]:
    return {"agents": {name: {"provider": provider} for name in SIX}, "teams": {}}


class Held:
    """Turns that last until they may end."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def __call__(self, request: TurnRequest) -> str:
        await self.gate.wait()
        return "done"


async def ask_all(desk: Any) -> None:
    await asyncio.gather(*(desk.write(f"@{name} go") for name in SIX))


async def test_no_more_turns_run_at_once_than_the_settings_allow(tmp_path: Path) -> None:
    held = Held()
    puppet = Puppet(held)
    async with staffed(tmp_path, puppets={"puppet": puppet}, limits={"turns_at_once": 2}, **six()) as desk:
        await ask_all(desk)
        await until(lambda: puppet.working == 2)
        held.gate.set()
        await desk.replies(len(SIX))
    assert puppet.most_working == 2


async def test_a_provider_can_have_its_own_limit(tmp_path: Path) -> None:
    held = Held()
    narrow, wide = Puppet(held, "narrow"), Puppet(held, "wide")
    agents = {name: {"provider": "narrow" if number < 3 else "wide"} for number, name in enumerate(SIX)}
    async with staffed(
        tmp_path,
        puppets={"narrow": narrow, "wide": wide},
        limits={"turns_per_provider": {"narrow": 1}},
        agents=agents,
        teams={},
    ) as desk:
        await ask_all(desk)
        await until(lambda: (narrow.working, wide.working) == (1, 3))
        held.gate.set()
        await desk.replies(len(SIX))
    assert (narrow.most_working, wide.most_working) == (1, 3)


async def test_those_who_wait_for_their_provider_hold_up_nobody_else(tmp_path: Path) -> None:
    held = Held()
    narrow, wide = Puppet(held, "narrow"), Puppet(lambda request: "done", "wide")
    agents = {name: {"provider": "wide" if number == 5 else "narrow"} for number, name in enumerate(SIX)}
    limits = {"turns_at_once": 2, "turns_per_provider": {"narrow": 1}}
    async with staffed(
        tmp_path, puppets={"narrow": narrow, "wide": wide}, limits=limits, agents=agents, teams={}
    ) as desk:
        await asyncio.gather(*(desk.write(f"@{name} go") for name in SIX[:5]))
        await until(lambda: narrow.working)
        await desk.write(f"@{SIX[5]} go")
        [reply] = await desk.replies(1)
        assert reply.agent == SIX[5]
        held.gate.set()
        await desk.replies(6)
    assert narrow.most_working == 1


async def test_ten_messages_of_a_person_are_answered_in_one_turn(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def first_slowly(request: TurnRequest) -> str:
        await gate.wait()
        return "done"

    puppet = Puppet(first_slowly)
    async with staffed(
        tmp_path, puppets={"puppet": puppet}, agents={"coder": {"provider": "puppet"}}, teams={}
    ) as desk:
        await desk.write("@coder 0")
        await until(lambda: puppet.working)
        for number in range(1, 11):
            await desk.write(f"@coder {number}")
        gate.set()
        await desk.replies(2)
        await desk.quiet()
    assert [request.prompt.count("------") for request in puppet.asked] == [0, 9]


async def test_a_person_who_wrote_hundreds_is_answered_in_portions(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "done")
    async with staffed(
        tmp_path, puppets={"puppet": puppet}, agents={"coder": {"provider": "puppet"}}, teams={}, start=False
    ) as desk:
        for number in range(120):
            await desk.write(f"@coder {number}")
        desk.office.start()
        await desk.quiet()
    assert [request.prompt.count("------") + 1 for request in puppet.asked] == [51, 51, 18]
