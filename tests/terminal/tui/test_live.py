"""Every screen over a house that runs, in a real terminal: it changes by itself, and a key leaves."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.app.house_process import HouseProcess

pytestmark = pytest.mark.slow

TEAM = {"dev": {"name": "Dev", "agents": ["coder"], "leader_agent": "coder"}}


class Terminal:
    """A program in tmux, which is a server of its own at this socket."""

    def __init__(self, address: str, env: dict[str, str]) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", address]
        self._env = env

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._env, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout

    def open(self, *words: str) -> None:
        self.run("new-session", "-d", "-x", "80", "-y", "24", sys.executable, "-m", "postroom", *words)

    def read(self) -> str:
        return self.run("capture-pane", "-p")

    def until(self, *texts: str, within: float = 120) -> str:
        end = time.monotonic() + within
        while not all(text in (shown := self.read()) for text in texts):
            assert time.monotonic() < end, f"{texts} did not come:\n{shown}"
            time.sleep(0.2)
        return shown

    def press(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    def until_left(self, within: float = 120) -> None:
        end = time.monotonic() + within
        while self.run("list-sessions"):
            assert time.monotonic() < end, self.read()
            time.sleep(0.2)


@contextmanager
def terminal(house: HouseProcess, *words: str) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed: no screen is tried in a real terminal")
    env = {**house.env, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    env |= {"PATH": os.environ["PATH"]}
    # The address of a socket must be short, and that of a test's folder is not.
    with tempfile.TemporaryDirectory() as folder:
        screen = Terminal(f"{folder}/tmux", env)
        screen.open(*words)
        try:
            yield screen
        finally:
            screen.run("kill-server")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[HouseProcess]:
    """Where it is stays the same when it starts again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    house = HouseProcess(tmp_path, teams=TEAM, api={"port": port})
    house.start()
    yield house
    house.end()


def test_the_floor_shows_a_turn_as_it_happens(house: HouseProcess) -> None:
    house.cli("send", "@coder said before", "--wait")
    with terminal(house, "team", "visualize", "dev") as screen:
        screen.until("● Dev (#dev)", "said before")
        house.cli("send", "@coder hello there", "--wait")
        shown = screen.until("→ @coder: @coder hello there", "1 answered")
        assert shown.count("→ @coder: @coder hello there") == 1
        assert max(len(line) for line in shown.splitlines()) <= 80
        screen.press("Enter")
        screen.until("Escape: back")
        screen.press("Escape")
        screen.press("q")
        screen.until_left()
    once = house.cli("team", "viz", "dev", "--plain").stdout
    assert "● online" in once
    assert "\x1b" not in once


def test_a_server_that_starts_again_is_heard_again(house: HouseProcess) -> None:
    with terminal(house, "team", "visualize", "dev") as screen:
        screen.until("● Dev (#dev)")
        house.cli("restart")
        house.cli("send", "@coder are you back", "--wait")
        assert screen.until("→ @coder: @coder are you back").count("@coder are you back") == 1
        screen.press("q")
        screen.until_left()


def test_in_the_room_one_reads_and_writes(house: HouseProcess) -> None:
    house.cli("chatroom", "dev", "--say", "from outside")
    with terminal(house, "chatroom", "dev") as screen:
        screen.until("you: from outside", "Write and press Enter")
        screen.press("-l", "from inside")
        screen.press("Enter")
        screen.until("you: from inside")
        house.cli("chatroom", "dev", "--say", "and again")
        shown = screen.until("you: and again")
        assert shown.count("you: from outside") == shown.count("you: from inside") == 1
        screen.press("q", "Enter")
        screen.until_left()
    assert house.cli("chatroom", "dev", "--plain").stdout.count("from inside") == 1


def test_a_conversation_is_held_on_the_screen(house: HouseProcess) -> None:
    with terminal(house, "chat", "coder") as screen:
        screen.until("@coder", "Write and press Enter")
        screen.press("-l", "hello there")
        screen.press("Enter")
        screen.until("@coder: This is @coder")
        screen.press("C-q")
        screen.until_left()


def test_top_shows_a_need_and_a_number_answers_it(house: HouseProcess) -> None:
    house.cli("queue", "create", "orders")
    spec = {
        "title": "Refund?",
        "sections": [{"type": "decision", "field": "decision", "options": ["approve", "reject"]}],
    }
    house.cli("publish", "orders", "1", "--hitl-spec", json.dumps(spec))
    with terminal(house, "top") as screen:
        screen.until("Refund?")
        screen.press("2")
        screen.until("0 blocking")
        screen.press("q")
        screen.until_left()
    assert "needs you" not in house.cli("top", "--plain").stdout


def test_who_waits_for_work_is_given_it(house: HouseProcess) -> None:
    house.cli("queue", "create", "jobs")
    words = [sys.executable, "-m", "postroom", "claim", "jobs", "--wait", "1h", "--json"]
    with subprocess.Popen(words, env=house.env, stdout=subprocess.PIPE, text=True) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(5)
        house.cli("publish", "jobs", '"at last"')
        out, _ = waiting.communicate(timeout=120)
    assert "at last" in out


def test_nothing_is_kept_for_who_has_gone(house: HouseProcess) -> None:
    house.cli("queue", "create", "errands")
    words = [sys.executable, "-m", "postroom", "claim", "errands", "--wait", "1h", "--json"]
    with subprocess.Popen(words, env=house.env, stdout=subprocess.PIPE) as gone:
        with pytest.raises(subprocess.TimeoutExpired):
            gone.wait(5)
        gone.kill()
    # The house notices in its own time; from then on all goes to those who are there.
    for _ in range(10):
        house.cli("publish", "errands", '"for another"')
        if "for another" in house.cli("claim", "errands", check=False).stdout:
            return
    pytest.fail("a caller who hung up still takes the work")
