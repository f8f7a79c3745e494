"""What the chat page shows of a turn that ends while the page is made."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from postroom.services import callers
from postroom.services.chats import ChatLine, ChatService, TurnInProgress
from postroom.services.conversations import Draft
from tests.api.house import House, opened

T = TypeVar("T")

OWNER = callers.owner()
SLOW = {"rules": [{"reply": "Here it is.", "seconds": 0.5}]}


async def _read(house: House) -> list[ChatLine]:
    return await house.deps.services.chats.read(OWNER, "coder")


async def _find(ask: Callable[[], Awaitable[list[T]]]) -> list[T]:
    while True:
        if found := await ask():
            return found
        await asyncio.sleep(0.01)


async def test_an_answer_is_not_shown_twice_when_its_turn_ends_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TurnInProgress] = []
    look = ChatService.working

    async def look_and_wait(self: ChatService, *args: Any) -> list[TurnInProgress]:
        """What is told is what was, and the answer is there before anything else is asked."""
        found = await _find(lambda: look(self, *args))
        seen.extend(found)
        await _find(answers)
        return found

    async def answers() -> list[ChatLine]:
        return [line for line in await _read(house) if line.is_agent]

    async with opened(tmp_path, script=SLOW) as house, asyncio.timeout(60):
        link = (await house.http.post("/api/login-link")).json()["url"]
        async with httpx2.AsyncClient(base_url=house.url, follow_redirects=True, timeout=60) as browser:
            await browser.get(link)
            await house.deps.services.conversations.send(OWNER, Draft(text="@coder hello", channel="web"))
            monkeypatch.setattr(ChatService, "working", look_and_wait)
            page = (await browser.get("/chat?with=coder")).text
        asked = next(line for line in await _read(house) if not line.is_agent)
    assert [turn.number for turn in seen] == [asked.number]
    assert page.count("Here it is.") == 1
    assert 'id="writing"' not in page
