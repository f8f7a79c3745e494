"""Set-up ends with a real answer, or changes nothing; a person is asked, a script gives options."""

import asyncio
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from postroom.app.home import Home
from tests.providers.model_server import ModelServer, model_server
from tests.terminal.cli.runner import Done, Shell

KEY = "sk-a-key-that-nobody-may-see"


def settings(shell: Shell) -> dict[str, Any]:
    return Home(shell.folder / "home").settings.document()


async def set_up(shell: Shell, server: ModelServer, scenario: str, *more: str) -> Done:
    shell.env["HOME"] = str(shell.folder)
    words = ["--provider", "anthropic_api", "--url", server.scenario(scenario), *more]
    return await asyncio.to_thread(shell, "setup", *words)


async def test_a_key_that_works_ends_with_an_answer_and_is_kept_for_its_owner_alone(shell: Shell) -> None:
    async with model_server() as server:
        done = await set_up(shell, server, "ok", "--api-key", KEY, "--team", "--json")
    assert done.code == 0, done.err
    told = done.json
    assert told["tested"] is True
    assert told["answer"]
    assert told["agents"] == ["assistant", "lead", "writer", "checker"]
    turns = [KEY in str(request.headers) for request in server.received if request.method == "POST"]
    assert turns == [True, True], "one to try it, one for the answer"
    kept = shell.folder / "home" / "secrets" / "anthropic_api_key"
    assert (kept.read_text().strip(), stat.S_IMODE(kept.stat().st_mode)) == (KEY, 0o600)
    found = settings(shell)
    assert found["models"]["anthropic"]["api_key"] == f"file:{kept}"
    assert found["teams"]["team"]["leader_agent"] == "lead"
    assert {one["provider"] for one in found["agents"].values()} == {"anthropic_api"}
    assert KEY not in done.out + done.err


async def test_a_key_that_is_refused_changes_nothing_and_says_what_to_do(shell: Shell) -> None:
    async with model_server() as server:
        done = await set_up(shell, server, "e401", "--api-key", KEY)
    assert done.code == 9
    assert "did not accept the credentials" in done.err
    assert "models" not in settings(shell)
    assert not (shell.folder / "home" / "secrets").exists()
    assert KEY not in done.out + done.err


def test_where_nobody_can_be_asked_the_providers_to_name_are_told(shell: Shell) -> None:
    done = shell("setup")
    assert done.code == 2
    assert "postroom setup --provider" in done.err


class Typist:
    """Somebody at a terminal, who reads what is asked and types the answers."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self._process = process
        self._terminal = terminal
        self._seen = b""

    def read_until(self, words: bytes) -> None:
        while words not in self._seen:
            self._seen += os.read(self._terminal, 4096)
        self._seen = self._seen.partition(words)[2]

    def answer(self, question: bytes, words: bytes) -> None:
        self.read_until(question)
        os.write(self._terminal, words + b"\n")

    def finish(self) -> None:
        """Its last words must be read, or it would wait for ever."""
        while self._process.poll() is None:
            try:
                os.read(self._terminal, 4096)
            except OSError:
                break
        assert self._process.wait(60) == 0


@contextmanager
def type_at(shell: Shell, *words: str) -> Iterator[Typist]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "postroom", *words],
        cwd=shell.folder,
        # Nothing is installed here, so what is offered is known.
        env={**shell.env, "TERM": "xterm", "HOME": str(shell.folder), "PATH": "/nowhere"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Typist(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_person_is_asked_until_an_answer_comes(shell: Shell) -> None:
    with type_at(shell, "setup") as person:
        person.answer(b"Number (1, 2, 3) [1]: ", b"7")
        person.answer(b"Number (1, 2, 3) [1]: ", b"3")
        person.answer(b"hand-offs? (y, n) [n]: ", b"y")
        person.answer(b"Telegram? (y, n) [n]: ", b"n")
        person.read_until(b"Go on with:")
        person.finish()
    assert set(settings(shell)["agents"]) == {"assistant", "lead", "writer", "checker"}


@pytest.mark.slow
def test_the_first_postroom_alone_leads_through_setup_and_opens_the_office(shell: Shell) -> None:
    try:
        with type_at(shell) as person:
            person.answer(b"first start", b"")
            person.answer(b"Number (1, 2, 3) [1]: ", b"3")
            person.answer(b"hand-offs? (y, n) [n]: ", b"n")
            person.answer(b"Telegram? (y, n) [n]: ", b"n")
            person.read_until(b"offline script provider")
            person.read_until(b"/login")
            person.finish()
    finally:
        subprocess.run(
            [sys.executable, "-m", "postroom", "stop"], env=shell.env, check=False, capture_output=True
        )
