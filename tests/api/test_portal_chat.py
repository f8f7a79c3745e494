"""What the chat page shows of a turn that ends while the page is made."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.services import callers
from postroom.services.chats import ChatLine, ChatService, TurnInProgress
from postroom.services.conversations import Draft
from tests.api.house import House, opened

OWNER = callers.owner()


async def _talk(house: House) -> list[ChatLine]:
    """Once there is an answer."""
    while True:
        lines = await house.deps.services.chats.read(OWNER, "coder")
        if any(line.is_agent for line in lines):
            return lines
        await asyncio.sleep(0.01)


async def test_an_answer_is_not_shown_twice_when_its_turn_ends_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {"rules": [{"reply": "Here it is."}]}
    async with opened(tmp_path, script=script) as house, asyncio.timeout(60):
        await house.deps.services.conversations.send(OWNER, Draft(text="@coder hello", channel="web"))
        asked, answered = await _talk(house)

        async def a_moment_ago(self: ChatService, *args: Any) -> list[TurnInProgress]:
            """As it was before the answer that the page reads next."""
            turn = TurnInProgress(
                number=asked.number,
                agent="coder",
                about=asked.text,
                conversation=asked.conversation,
                started_at=asked.created_at,
                text=answered.text,
            )
            return [turn]

        monkeypatch.setattr(ChatService, "working", a_moment_ago)
        link = (await house.http.post("/api/login-link")).json()["url"]
        async with httpx2.AsyncClient(base_url=house.url, follow_redirects=True, timeout=60) as browser:
            await browser.get(link)
            page = (await browser.get("/chat?with=coder")).text
    assert page.count("Here it is.") == 1
    assert 'id="writing"' not in page
