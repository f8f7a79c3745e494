"""`postroom team visualize` over a server that runs: what happens appears once, is opened and retried."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Label, Static

from postroom.office import queues
from postroom.services import callers
from postroom.terminal.cli.live_events import find_last_event, live_events
from postroom.terminal.cli.live_views import NAMES
from postroom.terminal.cli.remote import remote_services
from postroom.terminal.tui import live_screen
from postroom.terminal.tui.detail_screen import DetailScreen
from postroom.terminal.tui.floor import Floor
from postroom.terminal.tui.floor_screen import PAST, FloorScreen
from postroom.terminal.tui.live_screen import LiveEvent
from postroom.terminal.tui.team_work import TeamWork
from tests.api.house import TOKEN, House, opened

if TYPE_CHECKING:
    from postroom.services.server import ServerServices

SOON_S = 60.0
OWNER = callers.owner()


@asynccontextmanager
async def visualize(
    house: House, size: tuple[int, int] = (80, 24), events: Any = None
) -> AsyncIterator[tuple[FloorScreen, Pilot[None]]]:
    async with remote_services(house.url, TOKEN) as remote:
        services = cast("ServerServices", remote)
        floor = await Floor.read(services, OWNER, "dev")

        async def earlier(number: int) -> list[LiveEvent]:
            since, until = str(max(0, number - PAST)), str(number)
            past = live_events(NAMES, since, until=until, url=house.url, token=TOKEN)
            return [event async for event in past]

        screen = FloorScreen(
            floor,
            TeamWork(services, OWNER, frozenset(floor.cards)),
            events or (lambda since: live_events(NAMES, since, url=house.url, token=TOKEN)),
            earlier,
            await find_last_event(house.url, TOKEN),
        )
        async with screen.run_test(size=size) as pilot:
            yield screen, pilot


async def until(pilot: Pilot[None], is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():
            await pilot.pause(0.05)


def rows(screen: FloorScreen, name: str = "activity") -> list[str]:
    table = screen.query_one(f"#{name}", DataTable)
    return [str(table.get_row_at(row)[-1]) for row in range(table.row_count)]


async def send(house: House, text: str) -> None:
    answer = await house.http.post("/api/message", json={"message": text, "sender": "Ann", "channel": "web"})
    assert answer.status_code == 200, answer.text


async def test_what_happens_appears_as_it_happens_once_and_can_be_opened(tmp_path: Path) -> None:
    async with opened(tmp_path) as house, visualize(house) as (screen, pilot):
        await send(house, "@coder hello there")
        await until(pilot, lambda: any(row.startswith("@coder: ") for row in rows(screen)))
        [asked] = [row for row in rows(screen) if row.endswith("hello there")]
        assert asked.startswith("Ann → @coder")
        assert len(rows(screen)) == len(screen._activities) == 3
        await until(pilot, lambda: "1 answered" in str(screen.query_one("#status", Label).render()))
        await pilot.press("ctrl+home", "enter")
        await until(pilot, lambda: isinstance(screen.screen, DetailScreen))
        await until(pilot, lambda: bool(screen.screen.query("#detail-text")))
        told = str(screen.screen.query_one("#detail-text", Static).render())
        assert "hello there" in told
        assert "@coder: completed" in told
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(screen.screen, DetailScreen))


async def test_what_happened_before_comes_from_the_store_and_changes_no_card(tmp_path: Path) -> None:
    async with opened(tmp_path) as house:
        for number in range(3):
            await send(house, f"@coder question {number}")
        await house.until(
            "/api/queue/status", lambda found: not found["incoming"] and not found["processing"]
        )
        async with visualize(house) as (screen, pilot):
            await until(pilot, lambda: any(row.startswith("@coder: ") for row in rows(screen)))
            shown = rows(screen)
            assert sum(row.startswith("Ann → @coder: ") for row in shown) == 3
            assert screen._floor.processed == 0, "it was answered before"
            await pilot.press("ctrl+home", "pageup", "pageup")
            await send(house, "@coder one more")
            await until(pilot, lambda: any("one more" in row for row in rows(screen)))
            assert rows(screen)[: len(shown)] == shown


async def test_a_turn_is_stopped_when_it_is_asked_for_twice(tmp_path: Path) -> None:
    script = {"rules": [{"reply": "word " * 400, "chunks": 400, "seconds": 600}], "pace": 1.0}
    async with opened(tmp_path, script=script) as house, visualize(house) as (screen, pilot):
        await send(house, "@coder tell me a story")
        await until(pilot, lambda: "coder" in screen._turns)
        await pilot.press("s")
        await until(pilot, lambda: screen._asked is not None)
        assert "coder" in screen._turns
        await pilot.press("s")
        await until(pilot, lambda: not screen._turns)


async def test_a_dead_letter_is_shown_and_tried_again_with_a_key(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, visualize(house) as (screen, pilot):
        await send(house, "@coder hello there")
        [found] = await house.room.messages(queue=queues.inbox("coder"))
        await house.room.kill(found.id, "the provider is away")
        await until(pilot, lambda: len(rows(screen, "dead")) == 1)
        table = screen.query_one("#dead", DataTable)
        assert table.display
        assert "the provider is away" in str(table.get_row_at(0)[1])
        await pilot.press("r")
        await until(pilot, lambda: not rows(screen, "dead"))
        assert (await house.room.get(found.id)).state == "pending"
        assert not table.display


async def test_a_thousand_events_of_a_stream_that_breaks_off_are_all_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred at a time; each time it begins again with the one that was heard last."""
    monkeypatch.setattr(live_screen, "AGAIN_S", 0.01)
    numbers = iter(range(1, 1001))
    asked: list[str | None] = []

    def said(number: int) -> LiveEvent:
        data = {"agentId": "coder", "content": f"answer {number}", "timestamp": 1_800_000_000_000 + number}
        return "agent:response", data, str(number)

    async def events(since: str | None) -> AsyncIterator[LiveEvent]:
        asked.append(since)
        if len(asked) > 5:
            await asyncio.Event().wait()
        if len(asked) > 1:
            yield said(int(since or 0))
        for _ in range(200):
            yield said(next(numbers))

    async with opened(tmp_path, works=False) as house, visualize(house, events=events) as (screen, pilot):
        await pilot.resize_terminal(60, 20)
        await until(pilot, lambda: len(rows(screen)) == 1000)
        await pilot.resize_terminal(160, 50)
        assert rows(screen) == [f"@coder: answer {number}" for number in range(1, 1001)]
        assert asked[1:5] == ["200", "400", "600", "800"]


async def test_a_server_that_goes_away_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, visualize(house) as (screen, pilot):
        status = screen.query_one("#status", Label)
        await until(pilot, lambda: "waiting" in str(status.render()))
        screen._work = cast(Any, AwayWork())
        await until(pilot, lambda: str(status.render()).startswith("✗"))


class AwayWork:
    async def look(self) -> None:
        from postroom.terminal.cli.connection import Unreachable

        raise Unreachable(url="http://nowhere", reason="gone")
