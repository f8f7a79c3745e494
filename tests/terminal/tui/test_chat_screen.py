"""`postroom chat` over a server that runs: what is written is sent, answers come, nothing is shown twice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Input, Static

from postroom.office import queues
from postroom.services import callers
from postroom.terminal.cli.live_events import live_events
from postroom.terminal.cli.remote import remote_services
from postroom.terminal.tui.chat_screen import ChatScreen
from postroom.terminal.tui.conversation import (
    PAGE,
    AgentConversation,
    Conversation,
    ConversationLine,
    RoomConversation,
    TeamConversation,
)
from postroom.terminal.tui.detail_screen import DetailScreen
from tests.api.house import TOKEN, House, opened

if TYPE_CHECKING:
    from postroom.services.server import ServerServices

SOON_S = 60.0


@asynccontextmanager
async def chat(
    house: House, make: "Callable[[ServerServices], Conversation]"
) -> AsyncIterator[tuple[ChatScreen, Pilot[None]]]:
    async with remote_services(house.url, TOKEN) as remote:
        conversation = make(cast("ServerServices", remote))
        screen = ChatScreen(conversation, lambda since: live_events("", since, url=house.url, token=TOKEN))
        async with screen.run_test(size=(80, 24)) as pilot:
            yield screen, pilot


def with_coder(services: "ServerServices") -> Conversation:
    return AgentConversation(services, callers.owner(), "coder", "ann")


def with_dev(services: "ServerServices") -> Conversation:
    return TeamConversation(services, callers.owner(), "dev", ("lead", "coder", "reviewer"), "ann")


def in_dev(services: "ServerServices") -> Conversation:
    return RoomConversation(services, callers.owner(), "dev", ("lead", "coder", "reviewer"))


def shown(screen: ChatScreen) -> list[str]:
    return [str(each.render()) for each in screen.query_one("#lines", VerticalScroll).query(Static)]


async def until(pilot: Pilot[None], is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():
            await pilot.pause(0.05)


async def write(screen: ChatScreen, pilot: Pilot[None], text: str) -> None:
    screen.query_one(Input).value = text
    await pilot.press("enter")


async def test_what_is_written_is_answered_and_each_line_is_shown_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as house, chat(house, with_coder) as (screen, pilot):
        await write(screen, pilot, "hello there")
        await until(pilot, lambda: any("@coder:" in line for line in shown(screen)))
        await until(pilot, lambda: not any("waits" in line or "worked on" in line for line in shown(screen)))
        assert sum("ann: hello there" in line for line in shown(screen)) == 1
        assert len(shown(screen)) == 2


async def test_a_team_answers_what_is_written_to_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as house, chat(house, with_dev) as (screen, pilot):
        await write(screen, pilot, "hello there")
        await until(pilot, lambda: any("@lead:" in line for line in shown(screen)))
        assert sum("ann: hello there" in line for line in shown(screen)) == 1


async def test_a_turn_is_stopped_with_escape_and_its_words_are_seen_as_they_come(tmp_path: Path) -> None:
    script = {"rules": [{"reply": "word " * 400, "chunks": 400, "seconds": 600}], "pace": 1.0}
    async with opened(tmp_path, script=script) as house, chat(house, with_coder) as (screen, pilot):
        await write(screen, pilot, "tell me a story")
        await until(pilot, lambda: "word" in str(screen.query_one("#live", Static).render()))
        await pilot.press("escape")
        await until(pilot, lambda: not str(screen.query_one("#live", Static).render()))
        await until(pilot, lambda: any("✗" in line for line in shown(screen)))


async def test_earlier_lines_come_from_the_store_above_the_others(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, chat(house, in_dev) as (screen, pilot):
        for number in range(45):
            answer = await house.http.post("/api/chatroom/dev", json={"message": f"post {number}"})
            assert answer.status_code == 200
        await until(pilot, lambda: any("post 44" in line for line in shown(screen)))
        async with asyncio.timeout(SOON_S):
            while len(shown(screen)) < 45:
                await pilot.press("pageup")
                await pilot.pause(0.05)
        assert [line.rpartition(" ")[2] for line in shown(screen)] == [str(number) for number in range(45)]


class SlowRoom(RoomConversation):
    """Of a server that answers only when the test lets it."""

    def __init__(self, services: "ServerServices") -> None:
        super().__init__(services, callers.owner(), "dev", ("lead", "coder", "reviewer"))
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def read(self, before: int = 0) -> list[ConversationLine]:
        await self.may_answer.wait()
        return await super().read(before)


async def test_more_than_a_page_between_two_looks_leaves_no_gap(tmp_path: Path) -> None:
    rooms: list[SlowRoom] = []

    def slow(services: "ServerServices") -> Conversation:
        rooms.append(SlowRoom(services))
        return rooms[0]

    async with opened(tmp_path, works=False) as house, chat(house, slow) as (screen, pilot):

        async def post(number: int) -> None:
            answer = await house.http.post("/api/chatroom/dev", json={"message": f"post {number}"})
            assert answer.status_code == 200

        await post(0)
        await until(pilot, lambda: len(shown(screen)) == 1)
        rooms[0].may_answer.clear()
        for number in range(1, PAGE + 20):
            await post(number)
        rooms[0].may_answer.set()
        await until(pilot, lambda: any(f"post {PAGE + 19}" in line for line in shown(screen)))
        assert [line.rpartition(" ")[2] for line in shown(screen)] == [
            str(number) for number in range(PAGE + 20)
        ]


async def test_what_cannot_be_sent_is_not_lost(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, chat(house, with_coder) as (screen, pilot):
        await write(screen, pilot, "/file /etc/passwd")
        await write(screen, pilot, "look at this")
        await until(pilot, lambda: screen.query_one(Input).value == "look at this")
        assert shown(screen) == []
        assert house.url


async def test_a_line_is_chosen_opened_and_what_failed_is_tried_again(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, chat(house, with_coder) as (screen, pilot):
        await write(screen, pilot, "the first question")
        await until(pilot, lambda: any("first" in line for line in shown(screen)))
        await write(screen, pilot, "the second one")
        await until(pilot, lambda: any("second" in line for line in shown(screen)))
        [first, _] = await house.room.messages(queue=queues.inbox("coder"))
        await house.room.kill(first.id, "the provider is away")
        await until(pilot, lambda: any("✗ the provider is away" in line for line in shown(screen)))
        await pilot.press("up", "up")
        assert "first" in str(screen.query_one(".chosen", Static).render())
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(screen.screen, DetailScreen))
        await until(pilot, lambda: bool(screen.screen.query("#detail-text")))
        assert "provider is away" in str(screen.screen.query_one("#detail-text", Static).render())
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(screen.screen, DetailScreen))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: not any("✗" in line for line in shown(screen)))
        assert (await house.room.get(first.id)).state == "pending"
        await pilot.press("down", "down")
        assert not screen.query(".chosen")
