"""A turn that spends more than can be had is stopped on its way; what is paid for and finished is kept."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.office import Puppet, Staffed, staffed, text, until

from postroom import State
from postroom.clock import ManualClock, SystemClock
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget
from postroom.office.guards import budgets as accounts
from postroom.office.guards.days import Days
from postroom.office.schedules import house_zone
from postroom.providers.protocol import Finished, TextChunk, ToolUse, TurnRequest, TurnStream, Usage

CODER: dict[str, Any] = {"agents": {"coder": {"provider": "steps"}}, "teams": {}}
DOLLAR = 1_000_000


class Steps(Puppet):
    """A provider that tells what each step has cost, and goes on until it is stopped."""

    def __init__(self, *prices: float, then: Callable[[], Any] | None = None) -> None:
        super().__init__(lambda request: [], "steps")
        self.prices = prices
        self.paid = 0.0
        self.then = then

    async def run(self, request: TurnRequest) -> TurnStream:
        async for event in super().run(request):
            yield event
        for number, price in enumerate(self.prices, 1):
            self.paid += price
            yield Usage(provider="steps", model="m", cost_usd=price, output_tokens=1)
            if number < len(self.prices):
                yield ToolUse(name="shell", state="started")
        if self.then is not None:
            await self.then()
        yield TextChunk(text="done")
        yield Finished(text="done")


class Last(Steps):
    """Its last step is told with the answer."""

    async def run(self, request: TurnRequest) -> TurnStream:
        async for event in super().run(request):
            if not isinstance(event, TextChunk):
                yield event


@asynccontextmanager
async def working(tmp_path: Path, steps: Steps, **budgets: float | None) -> AsyncIterator[Staffed]:
    rich = {"agent_daily_usd": None, "daily_usd": None, "team_daily_usd": None, **budgets}
    options = {"puppets": {"steps": steps}, "budgets": rich, "office_clock": today(), **CODER}
    async with staffed(tmp_path, **options) as desk:
        yield desk


def today() -> ManualClock:
    """It stands, so that no day ends in the middle of a test."""
    return ManualClock(SystemClock().now())


async def account(desk: Staffed, talk: str) -> Budget:
    name = accounts.conversation(talk)
    return (await desk.room.accounts(name))[name]


async def test_a_turn_that_passes_its_budget_is_stopped_on_its_way(tmp_path: Path) -> None:
    steps = Steps(0.4, 0.4, 0.4, 0.4, 0.4)
    async with working(tmp_path, steps, conversation_usd=1.0) as desk:
        sent = await desk.write("@coder go", platform_id="1")
        await desk.quiet()
        [told] = [m for m in await desk.replies(1) if m.message_type == "office.failure"]
        assert "budget is used up" in text(told)
        assert steps.paid == 0.4 * 3, "the step that passed the limit, and no other"
        assert (await desk.room.get(sent.receipts[0].id)).state is State.DEAD
        settled = await account(desk, "web:1")
        assert (settled.spent, settled.reserved) == (1_200_000, 0)


async def test_what_is_set_aside_grows_with_what_is_spent(tmp_path: Path) -> None:
    gate = asyncio.Event()
    steps = Last(0.4, 0.4, 0.4, then=gate.wait)
    async with working(tmp_path, steps, conversation_usd=10, reserve_usd=0.5) as desk:
        await desk.write("@coder go", platform_id="1")

        async def grown() -> bool:
            return (await account(desk, "web:1")).reserved >= 1_200_000

        await until(grown)
        gate.set()
        await desk.quiet()
        [reply] = [m for m in await desk.replies(1) if m.message_type == "office.reply"]
        assert text(reply).startswith("done")
        assert (await account(desk, "web:1")).spent == 1_200_000


async def test_an_answer_that_came_with_the_last_step_is_kept(tmp_path: Path) -> None:
    steps = Last(0.4, 0.9)
    async with working(tmp_path, steps, conversation_usd=1.0) as desk:
        await desk.write("@coder go", platform_id="1")
        await desk.quiet()
        [reply] = [m for m in await desk.replies(1) if m.message_type == "office.reply"]
        assert text(reply).startswith("done"), "it is paid for"
        assert (await account(desk, "web:1")).spent == 1_300_000


async def test_two_agents_never_grow_beyond_what_is_left_for_both(tmp_path: Path) -> None:
    one, two = Steps(*[0.3] * 20), Steps(*[0.3] * 20)
    one.name, two.name = "steps", "other"
    options: dict[str, Any] = {
        "agents": {"coder": {"provider": "steps"}, "writer": {"provider": "other"}},
        "teams": {},
        "budgets": {"daily_usd": 3, "agent_daily_usd": None, "conversation_usd": None},
        "office_clock": today(),
    }
    async with staffed(tmp_path, puppets={"steps": one, "other": two}, **options) as desk:
        await desk.write("@coder go", platform_id="1")
        await desk.write("@writer go", platform_id="2")
        await desk.quiet()
    assert one.paid + two.paid <= 3 + 2 * 0.3 + 1e-9, "at most one step of each beyond"


async def test_providers_that_take_a_limit_are_given_what_is_left(tmp_path: Path) -> None:
    steps = Last(0.25)
    async with working(tmp_path, steps, conversation_usd=8, daily_usd=2.0) as desk:
        for number in range(2):
            await desk.write("@coder go", platform_id=str(number))
            await desk.replies(number + 1)
    assert [request.limits.budget_usd for request in steps.asked] == [2.0, 1.75]


class Halting(Steps):
    """Waits after its first step."""

    def __init__(self, *prices: float) -> None:
        super().__init__(*prices)
        self.go_on = asyncio.Event()

    async def run(self, request: TurnRequest) -> TurnStream:
        async for event in super().run(request):
            yield event
            if isinstance(event, ToolUse):
                await self.go_on.wait()


@pytest.mark.parametrize(
    ("prices", "outcome"), [((0.4,) * 9, "office.failure"), ((0.4, 0.4), "office.reply")]
)
async def test_a_budget_that_others_have_used_up_still_ends_a_turn_under_way(
    tmp_path: Path, prices: tuple[float, ...], outcome: str
) -> None:
    """A frozen account takes no more reservations; that must not mean that there is no limit any more."""
    steps, clock = Halting(*prices), today()
    day = accounts.whole_day(Days(house_zone()).of(clock.now()))
    async with working(tmp_path, steps, conversation_usd=None, daily_usd=1.0) as desk:
        await desk.write("@coder go", platform_id="1")
        await until(lambda: steps.paid)
        await desk.room.run(c.Freeze(account=day, reason=accounts.BudgetGuard.BUDGET.value))
        steps.go_on.set()
        await desk.quiet()
        [told] = [m for m in await desk.replies(1) if m.message_type != "office.notice"]
        assert told.message_type == outcome
        assert steps.paid <= 1.0 + 0.4, "at most the step that passed the limit"
