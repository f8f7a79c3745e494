"""Tools that load after the door is open: who asks first waits for them, and their failure is no secret."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from starlette.types import Message, Receive, Scope, Send

from postroom.api.mcp import lazy
from postroom.api.mcp.lazy import LazyTools, Made


class Tools:
    """Stands for the application of the library, and notes what happens to it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def make(self) -> Made:
        self.told.append("made")
        return self.answer, self.life()

    @contextlib.asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        self.told.append("opened")
        try:
            yield
        finally:
            self.told.append("closed")

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.told.append(f"asked {scope['path']}")


async def ask(tools: LazyTools) -> None:
    async def receive() -> Message:
        return {}

    async def send(_: Message) -> None:
        return

    await tools({"type": "http", "path": "/mcp"}, receive, send)


async def test_who_asks_first_waits_for_them_and_they_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "SOON_S", 3600)
    inner = Tools()
    tools = LazyTools(inner.make)
    async with tools.running():
        assert inner.told == []
        await ask(tools)
        await ask(tools)
    assert inner.told == ["made", "opened", "asked /mcp", "asked /mcp", "closed"]


async def test_they_that_nobody_asked_for_close_unmade(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "SOON_S", 3600)
    inner = Tools()
    async with LazyTools(inner.make).running():
        pass
    assert inner.told == []


async def test_whoever_asks_is_told_that_they_could_not_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "SOON_S", 0)

    def broken() -> Made:
        raise ImportError("half installed")

    tools = LazyTools(broken)
    async with tools.running():
        for _ in range(2):
            with pytest.raises(ImportError, match="half installed"):
                await ask(tools)
