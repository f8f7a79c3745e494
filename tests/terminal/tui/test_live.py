"""The views over a house that runs, in a real terminal: they change by themselves, and q leaves."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.app.house_process import HouseProcess

pytestmark = pytest.mark.slow

TEAM = {"dev": {"name": "Dev", "agents": ["coder"], "leader_agent": "coder"}}


class Screen:
    def __init__(self, handle: int, process: "subprocess.Popen[bytes]") -> None:
        self.handle = handle
        self.process = process
        self.seen = ""

    def until(self, text: str, within: float = 60) -> None:
        end = time.monotonic() + within
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come: {self.seen[-2000:]}"
            if select.select([self.handle], [], [], 0.2)[0]:
                self.seen += os.read(self.handle, 65536).decode("utf-8", "replace")

    def type(self, text: str) -> None:
        os.write(self.handle, text.encode())


@contextmanager
def terminal(house: HouseProcess, *words: str) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "postroom", *words],
        env={**house.env, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Screen(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[HouseProcess]:
    house = HouseProcess(tmp_path, teams=TEAM)
    house.start()
    yield house
    house.end()


def test_the_floor_shows_a_turn_as_it_happens(house: HouseProcess) -> None:
    with terminal(house, "team", "visualize", "dev") as screen:
        screen.until("● online")
        house.cli("send", "@coder hello there", "--wait")
        screen.until("hello there")
        screen.until("1 answered")
        screen.type("q")
        assert screen.process.wait(120) == 0
    once = house.cli("team", "viz", "dev").stdout
    assert "● online" in once
    assert "\x1b" not in once


def test_in_the_room_one_reads_and_writes(house: HouseProcess) -> None:
    house.cli("chatroom", "dev", "--say", "from outside")
    with terminal(house, "chatroom", "dev") as screen:
        screen.until("from outside")
        screen.until("#dev >")
        screen.type("from inside\r")
        screen.until("you: from inside")
        house.cli("chatroom", "dev", "--say", "and again")
        screen.until("you: and again")
        screen.type("q\r")
        assert screen.process.wait(120) == 0
    assert house.cli("chatroom", "dev").stdout.count("from inside") == 1


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


def test_top_shows_a_need_and_a_number_answers_it(house: HouseProcess) -> None:
    house.cli("queue", "create", "orders")
    spec = {
        "title": "Refund?",
        "sections": [{"type": "decision", "field": "decision", "options": ["approve", "reject"]}],
    }
    house.cli("publish", "orders", "1", "--hitl-spec", json.dumps(spec))
    with terminal(house, "top") as screen:
        screen.until("Refund?")
        screen.type("2")
        screen.until("0 blocking")
        screen.type("q")
        assert screen.process.wait(120) == 0
    assert "needs you" not in house.cli("top", "--plain").stdout
