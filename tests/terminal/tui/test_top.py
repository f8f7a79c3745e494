"""`postroom top` over a server that runs: it shows what is so, and answers with keys."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Label

from postroom.clock import SystemClock
from postroom.services import callers
from postroom.services.need_answers import give_answer
from postroom.services.needs_you import PersonNeed
from postroom.terminal.cli.live_events import live_events
from postroom.terminal.cli.remote import remote_services
from postroom.terminal.tui.top import TopScreen
from postroom.terminal.tui.top_snapshot import TopSnapshot, read_top, tell_plain
from tests.api.house import TOKEN, House, opened

if TYPE_CHECKING:
    from postroom.services.server import ServerServices

SOON_S = 60.0
REVIEW = {
    "title": "Refund?",
    "sections": [{"type": "decision", "field": "decision", "options": ["approve", "reject"]}],
}


@asynccontextmanager
async def top(house: House) -> AsyncIterator[tuple[TopScreen, Pilot[None]]]:
    """The screen as the command puts it together, in a terminal of 80 by 24."""
    owner, clock = callers.owner(), SystemClock()
    async with remote_services(house.url, TOKEN) as remote:
        services = cast("ServerServices", remote)

        async def look() -> TopSnapshot:
            return await read_top(services, owner, clock.now())

        async def answer(need: PersonNeed, word: str) -> None:
            await give_answer(services, owner, need, word)

        screen = TopScreen(
            house.url, look, answer, lambda since: live_events("", since, url=house.url, token=TOKEN)
        )
        async with screen.run_test(size=(80, 24)) as pilot:
            yield screen, pilot


def cells(screen: TopScreen, name: str) -> list[list[str]]:
    table = screen.query_one(f"#{name}", DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


async def until(pilot: Pilot[None], is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():
            await pilot.pause(0.05)


async def test_it_shows_agents_queues_and_needs_and_answers_a_review_with_a_key(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house:
        await house.room.create_queue("orders")
        sent = await house.room.publish("orders", 1, hitl_spec=REVIEW)
        async with top(house) as (screen, pilot):
            await until(pilot, lambda: bool(cells(screen, "needs")))
            [[what, answers]] = cells(screen, "needs")
            assert (what, answers) == ("! Refund?", "1 approve  2 reject")
            assert {row[0] for row in cells(screen, "agents")} == {"lead", "coder", "reviewer"}
            assert ["default/orders", "1", "0", "0", "0"] in cells(screen, "queues")
            await pilot.press("2")
            await until(pilot, lambda: not cells(screen, "needs"))
        assert (await house.room.get(sent.id)).state == "completed"
        assert (await house.room.get(sent.id)).result["decision"] == "reject"


async def test_what_cannot_be_taken_back_is_asked_for_twice(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house:
        await house.room.create_queue("orders")
        dead = await house.room.publish("orders", 1)
        await house.room.kill(dead.id, "broken")
        async with top(house) as (screen, pilot):
            await until(pilot, lambda: bool(cells(screen, "needs")))
            await pilot.press("2")
            await pilot.pause()
            assert (await house.room.get(dead.id)).state == "dead"
            await pilot.press("2")
            await until(pilot, lambda: not cells(screen, "needs"))
        assert (await house.room.get(dead.id)).state == "cancelled"


async def test_news_comes_by_itself_and_the_cursor_stays_on_its_row(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house:
        await house.room.create_queue("orders")
        async with top(house) as (screen, pilot):
            await until(pilot, lambda: bool(cells(screen, "queues")))
            for number in range(3):
                await house.room.publish("orders", number, hitl_spec={**REVIEW, "title": f"Refund {number}?"})
            await until(pilot, lambda: len(cells(screen, "needs")) == 3)
            await pilot.press("down", "down")
            table = screen.query_one("#needs", DataTable)
            assert table.cursor_row == 2
            first = await house.room.publish("orders", 9, hitl_spec={**REVIEW, "title": "Refund 9?"})
            await until(pilot, lambda: len(cells(screen, "needs")) == 4)
            assert table.get_row_at(table.cursor_row)[0] == "! Refund 2?"
            await house.room.cancel(first.id)
            await until(pilot, lambda: len(cells(screen, "needs")) == 3)


async def test_a_server_that_goes_away_is_told_and_a_wide_screen_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, top(house) as (screen, pilot):
        status = screen.query_one("#status", Label)
        await until(pilot, lambda: "waiting" in str(status.render()))
        await pilot.resize_terminal(160, 50)
        await until(pilot, lambda: len(cells(screen, "agents")) == 3)
        screen._look = refuse
        await until(pilot, lambda: str(status.render()).startswith("✗"))


async def refuse() -> TopSnapshot:
    from postroom.terminal.cli.connection import Unreachable

    raise Unreachable(url="http://nowhere", reason="gone")


async def test_the_same_as_lines_and_as_json(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, remote_services(house.url, TOKEN) as remote:
        await house.room.create_queue("orders")
        dead = await house.room.publish("orders", 1)
        await house.room.kill(dead.id, "broken")
        services: Any = remote
        found = await read_top(services, callers.owner(), SystemClock().now())
    lines = tell_plain(found)
    assert "needs you: 1 message died in default/orders (1 try again  2 give up)" in lines
    assert "agent coder: idle, 0 waiting" in lines
    assert any(line.startswith("queue default/_dead_letter: ") for line in lines)
    assert json.loads(msgspec.json.encode(found))["dead"] == 1


@pytest.mark.slow
async def test_five_hundred_events_are_drawn_without_a_repeated_row(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house:
        await house.room.create_queue("orders")
        async with top(house) as (screen, pilot):
            await until(pilot, lambda: bool(cells(screen, "queues")))
            for number in range(500):
                await house.room.publish("orders", number)
            await until(pilot, lambda: ["default/orders", "500", "0", "0", "0"] in cells(screen, "queues"))
            names = [row[0] for row in cells(screen, "queues")]
            assert len(names) == len(set(names))
