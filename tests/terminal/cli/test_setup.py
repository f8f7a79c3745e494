"""Set-up ends with a real answer, or changes nothing; a person is asked, a script gives options."""

import asyncio
import os
import pty
import stat
import subprocess
import sys
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


def test_a_person_is_asked_until_an_answer_comes(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "postroom", "setup"],
        cwd=shell.folder,
        # Nothing is installed here, so what is offered is known.
        env={**shell.env, "TERM": "xterm", "HOME": str(shell.folder), "PATH": "/nowhere"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""

    def answer(question: bytes, words: bytes) -> None:
        nonlocal seen
        while question not in seen:
            seen += os.read(ours, 4096)
        seen = seen.partition(question)[2]
        os.write(ours, words + b"\n")

    try:
        answer(b"Number (1, 2, 3) [1]: ", b"7")
        answer(b"Number (1, 2, 3) [1]: ", b"3")
        answer(b"hand-offs? (y, n) [n]: ", b"y")
        answer(b"Telegram? (y, n) [n]: ", b"n")
        while b"Go on with:" not in seen:
            seen += os.read(ours, 4096)
        # Its last words must be read, or it would wait for ever.
        while process.poll() is None:
            try:
                os.read(ours, 4096)
            except OSError:
                break
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert set(settings(shell)["agents"]) == {"assistant", "lead", "writer", "checker"}


@pytest.mark.slow
def test_the_first_postroom_alone_leads_through_setup_and_opens_the_office(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    env = {**shell.env, "TERM": "xterm", "HOME": str(shell.folder), "PATH": "/nowhere"}
    process = subprocess.Popen(
        [sys.executable, "-m", "postroom"],
        cwd=shell.folder,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""

    def answer(question: bytes, words: bytes) -> None:
        nonlocal seen
        while question not in seen:
            seen += os.read(ours, 4096)
        seen = seen.partition(question)[2]
        os.write(ours, words + b"\n")

    try:
        answer(b"first start", b"")
        answer(b"Number (1, 2, 3) [1]: ", b"3")
        answer(b"hand-offs? (y, n) [n]: ", b"n")
        answer(b"Telegram? (y, n) [n]: ", b"n")
        while b"offline script provider" not in seen:
            seen += os.read(ours, 4096)
        while b"/login" not in seen:
            seen += os.read(ours, 4096)
        while process.poll() is None:
            try:
                os.read(ours, 4096)
            except OSError:
                break
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        subprocess.run(
            [sys.executable, "-m", "postroom", "stop"], env=shell.env, check=False, capture_output=True
        )
