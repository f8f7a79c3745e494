"""How every screen looks at 80 by 24, as text alone: nothing is told by a colour only.

POSTROOM_WRITE_SNAPSHOTS=1 writes the pictures anew, in snapshots/: look at them before they are committed.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from postroom.office import queues
from tests.api.house import House, opened
from tests.terminal.tui.test_chat_screen import chat, in_dev, with_coder
from tests.terminal.tui.test_floor_screen import send, until, visualize
from tests.terminal.tui.test_top import top

FOLDER = Path(__file__).with_name("snapshots")
# What is on a screen when it has drawn all there is.
SCREENS: dict[str, tuple[Callable[[House], Any], tuple[str, ...]]] = {
    "visualize": (visualize, ("1 dead", "release notes", "provider is away", "@reviewer", "r retry")),
    "chatroom": (lambda house: chat(house, in_dev), ("Who takes", "Write and press", "^r retry")),
    "chat": (lambda house: chat(house, with_coder), ("provider is away", "Write and press", "^r retry")),
    "top": (top, ("1 message died", "reviewer", "office/inbox/reviewer", "r look again")),
}


def read_screen(app: App[None]) -> str:
    """Each line as it is shown, with times and addresses as letters."""
    lines = [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]
    text = re.sub(r"\d\d:\d\d(?=:\d\d|\])", "hh:mm", "\n".join(lines))
    text = re.sub(r"hh:mm:\d\d", "hh:mm:ss", text)
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text) + "\n"


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_looks_as_it_did(tmp_path: Path, name: str) -> None:
    open_screen, marks = SCREENS[name]
    async with opened(tmp_path, works=False) as house:
        await send(house, "@coder what changed since Monday?")
        await send(house, "@dev write the release notes")
        [found] = await house.room.messages(queue=queues.inbox("coder"))
        await house.room.kill(found.id, "the provider is away")
        await house.http.post("/api/chatroom/dev", json={"message": "Who takes the release notes?"})
        async with open_screen(house) as (screen, pilot):
            await wait_for(screen, pilot, marks)
            shown = re.sub(r" · \d+\.\d done/s", "", read_screen(screen))
    kept = FOLDER / f"{name}.txt"
    if os.environ.get("POSTROOM_WRITE_SNAPSHOTS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(shown, "utf-8")
    assert shown == kept.read_text("utf-8")
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert len(shown.splitlines()) == 24


async def wait_for(screen: App[None], pilot: Pilot[None], marks: tuple[str, ...]) -> None:
    try:
        await until(pilot, lambda: all(mark in read_screen(screen) for mark in marks))
    except TimeoutError:
        pytest.fail(f"{marks} did not come:\n{read_screen(screen)}")
