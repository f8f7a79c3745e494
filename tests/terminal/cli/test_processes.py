"""The command as people and scripts start it: real processes, signals, pipes and a store with one owner."""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.terminal.cli.runner import Shell, Tamper


@contextlib.contextmanager
def started(shell: Shell, *words: str) -> Iterator[subprocess.Popen[str]]:
    with shell.start(*words) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    seen = ""
    while text not in seen:
        line = process.stdout.readline()
        assert line, f"ended without {text!r}: {seen}"
        seen += line
    return seen


def test_a_message_is_published_claimed_and_completed_by_three_processes(shell: Shell) -> None:
    assert shell("queue", "create", "jobs").code == 0
    published = shell("publish", "jobs", '{"hello": "world"}', "--json")
    [claimed] = shell("claim", "jobs", "--lease", "1h", "--json").json
    assert claimed["id"] == published.json["id"]
    assert claimed["body"] == {"hello": "world"}
    done = shell("complete", claimed["id"], claimed["claim_token"], "--result", '{"ok": true}')
    assert (done.code, done.err) == (0, "")
    assert "it is completed" in done.out
    assert shell("show", claimed["id"], "--json").json["result"] == {"ok": True}


def test_a_tampered_file_fails_verification_with_code_7(shell: Shell, tamper: Tamper) -> None:
    shell("queue", "create", "jobs")
    shell("publish", "jobs", "pay 10 to Ada")
    assert shell("ledger", "verify").code == 0
    tamper("UPDATE ledger SET actor = 'mallory' WHERE seq = 8")
    done = shell("ledger", "verify")
    assert done.code == 7
    assert done.err == (
        "error: The ledger is broken at event 8: its content or place does not match its hash.\n"
    )
    assert "mallory" in done.out


def test_while_a_process_owns_the_store_others_can_look_but_not_change(shell: Shell) -> None:
    shell("queue", "create", "jobs")
    with started(shell, "claim", "jobs", "--wait", "1h") as owner:
        lock, deadline = shell.folder / "home" / "postroom.db.lock", time.monotonic() + 120
        while lock.read_text().strip() != str(owner.pid):
            assert time.monotonic() < deadline, "the owner never took the store"
            time.sleep(0.05)
        refused = shell("publish", "jobs", "x")
        assert refused.code == 6
        assert refused.err.startswith("error: The store ")
        assert f"is owned by another process (pid {owner.pid})" in refused.err
        for words in (("queue", "list"), ("list",), ("ledger", "verify"), ("backup", "copy.db", "--check")):
            looked = shell(*words)
            assert looked.code == 0, looked.err
        owner.send_signal(signal.SIGINT)
        assert owner.wait(120) == 130


def test_the_demo_shows_a_team_at_work_and_its_trace(shell: Shell) -> None:
    done = shell("demo", "--once")
    assert (done.code, done.err) == (0, "")
    for told in (
        "Ann → @lead: The login page is broken",
        "@lead → @coder: find the bug and fix it",
        "@lead → @reviewer: write down what must be tested",
        "@lead in #dev: the login comes first today",
        "@coder failed: The script provider ended without an answer. Tried again in",
        "@coder uses Edit",
        "@reviewer → @coder: one question",
        "@coder gives up, a dead letter: The model refused to answer this",
        "@coder → Bob: @coder could not answer",
        "@lead → Ann: The login works again",
        "@lead → @coder  find the bug and fix it  completed, attempt 2",
        "turn of @coder",
        "finished (",
        "$0.00",
        "Bob → @coder  deploy it to production  dead",
        "What to try next",
    ):
        assert told in done.out, told
    assert not (shell.folder / "home").exists()


def test_the_demo_can_be_read_by_programs(shell: Shell) -> None:
    done = shell("demo", "--once", "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told["seconds"] > 0
    request, other = told["traces"]
    assert [step["state"] for step in request["roots"]] == ["completed"]
    assert [step["state"] for step in other["roots"]] == ["dead"]
    assert request["turns"] >= 7


def test_the_demo_of_the_queue_plays_to_its_end(shell: Shell) -> None:
    done = shell("demo", "queue", "--once")
    assert (done.code, done.err) == (0, "")
    for told in (
        "published  critical    to Cleo",
        "the same message, no second one",
        "Ralf claims the letter to Ben: failed, the printer is out of paper",
        "attempt 2: delivered",
        "It becomes a dead letter",
        "replays it",
        "Anna claims the letter to Nobody: delivered",
        "verified: ",
        "all 5 messages are as it says",
        "What to try next",
        "postroom publish jobs",
    ):
        assert told in done.out
    assert not (shell.folder / "home").exists()


@pytest.mark.parametrize("what", ["office", "queue"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_demo_stays_open_until_it_is_stopped_and_leaves_nothing(
    shell: Shell, number: signal.Signals, code: int, what: str
) -> None:
    shell.env["TMPDIR"] = str(shell.folder)
    with started(shell, "demo", what) as demo:
        seen = read_until(demo, "Ctrl-C stops the demo")
        url = seen.split("--store ")[-1].split()[0]
        look = shell("queue", "list", "--store", url)
        assert ("default/letters" if what == "queue" else "office/inbox/coder") in look.out
        demo.send_signal(number)
        assert demo.wait(120) == code
    assert list(shell.folder.glob("postroom-demo-*")) == []


def test_a_follower_sees_what_other_processes_do(shell: Shell) -> None:
    shell("queue", "create", "jobs")
    with started(shell, "ledger", "tail", "-f", "--lines", "1", "--json") as tail:
        read_until(tail, "queue.created")
        published = shell("publish", "jobs", "x", "--json").json["id"]
        event = json.loads(read_until(tail, published).splitlines()[-1])
        assert event["type"] == "message.published"
        tail.send_signal(signal.SIGINT)
        assert tail.wait(120) == 130


def test_a_reader_that_goes_away_is_no_reason_to_complain(shell: Shell) -> None:
    shell("queue", "create", "jobs")
    for words in (("ledger", "tail", "--json"), ("ledger", "tail"), ("queue", "list", "--help")):
        with shell.start(*words) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == ""


def test_output_that_cannot_be_written_is_one_line(shell: Shell) -> None:
    with open("/dev/full", "w") as full, shell.start("version", stdout=full) as process:
        _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert err.startswith("error: The system refused: No space left on device")


def test_a_command_that_reads_the_lake_leaves_no_words_of_a_library(shell: Shell) -> None:
    done = shell("pipeline", "status")
    assert (done.code, done.err) == (0, "")
