"""`backup --follow` on the command line: it ships, tries a restore by itself, and ends when asked."""

import json
import signal
import time

from tests.terminal.cli.runner import Shell

WAIT_S = 120


def ok(shell: Shell, *words: str) -> str:
    done = shell(*words)
    assert done.code == 0, done.err
    return done.out


def test_what_was_followed_is_restored_to_a_moment(shell: Shell) -> None:
    ok(shell, "queue", "create", "jobs")
    ok(shell, "publish", "jobs", "one")
    shipped = shell.folder / "shipped"
    follower = shell.start("backup", "--follow", str(shipped), "--drill-hours", "0.001")
    try:
        assert follower.stderr
        assert "every commit follows" in follower.stderr.readline()
        ok(shell, "publish", "jobs", "two")
        end = time.monotonic() + WAIT_S
        while not list(shipped.glob("*-pages-*")) and time.monotonic() < end:
            time.sleep(0.05)
        told = follower.stderr.readline()
        assert "restore drill" in told, told
        assert "is sound" in told
        follower.send_signal(signal.SIGTERM)
        out, err = follower.communicate(timeout=WAIT_S)
    finally:
        follower.kill()
        follower.wait(WAIT_S)
    assert follower.returncode == 0, err
    assert "commits were shipped" in out
    checked = shell("restore", str(shipped), "--check")
    assert (checked.code, "is sound" in checked.out) == (0, True), checked.err
    assert "as of" in checked.err
    missing = shell("restore", str(shipped), "--at", "9d", "--check")
    assert (missing.code, "There is no backup of" in missing.err) == (4, True)
    ok(shell, "publish", "jobs", "three")
    ok(shell, "restore", str(shipped), "--yes")
    assert len(json.loads(ok(shell, "list", "jobs", "--json"))["messages"]) == 2
