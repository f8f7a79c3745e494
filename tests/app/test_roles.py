"""Posts are taken once, whoever looks at them meanwhile; what a process says of itself is always whole."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.app import process, roles
from postroom.app.home import Home
from postroom.app.roles import ALL, AlreadyRunning, ProcessRole, RoleLocks, Running, running


def said(pid: int) -> Running:
    return Running(pid=pid, roles=(ProcessRole.API,), version="1", started_at=1, url="http://127.0.0.1:1")


def test_whoever_only_looks_keeps_nobody_from_a_post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RoleLocks(tmp_path, [ProcessRole.API]).leave()
    looking = os.open(tmp_path / "api.lock", os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr(roles.time, "sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
    posts = RoleLocks(tmp_path, [ProcessRole.API])
    assert [found.pid for found in running(tmp_path)] == [os.getpid()]
    posts.leave()
    os.close(looking)


def test_a_post_that_is_taken_stays_taken(tmp_path: Path) -> None:
    posts = RoleLocks(tmp_path, ALL)
    with pytest.raises(AlreadyRunning) as refused:
        RoleLocks(tmp_path, [ProcessRole.API])
    assert refused.value.data["pid"] == os.getpid()
    posts.leave()
    assert running(tmp_path) == []


def test_who_runs_is_told_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []
    cut = os.ftruncate
    posts = RoleLocks(tmp_path, [ProcessRole.API])

    def watched(handle: int, size: int) -> None:
        cut(handle, size)
        seen.append([found.pid for found in running(tmp_path)])

    monkeypatch.setattr(roles.os, "ftruncate", watched)
    posts.announce(said(os.getpid()))
    monkeypatch.undo()
    assert seen == [[os.getpid()]]
    assert running(tmp_path)[0].url == "http://127.0.0.1:1"
    posts.leave()


class Ended:
    """In the place of the house: a process that ends at once, as it is told to."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._start = subprocess.Popen

    def __call__(self, _: Any, **options: Any) -> Any:
        return self._start([sys.executable, "-c", self._script], **options)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import os; os.kill(os.getpid(), 15)", "ended by SIGTERM"),
        ("raise SystemExit('error: no room.')", "no room"),
        ("import os; os.write(int(os.environ['POSTROOM_READY_FD']), b'ready')", "closed again at once"),
    ],
)
def test_why_it_did_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    monkeypatch.setattr(process.subprocess, "Popen", Ended(script))
    with pytest.raises(process.NotStarted, match=told):
        process.start(Home(tmp_path / "home"), ALL)


def test_two_who_start_at_once_do_not_write_over_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    # Another start begins the file anew while this one writes into it.
    script = "print('x' * 50, flush=True); open('logs/daemon.out', 'w'); raise SystemExit('error: no room.')"
    monkeypatch.setattr(process.subprocess, "Popen", Ended(script))
    with pytest.raises(process.NotStarted):
        process.start(home, ALL)
    assert (home.logs / process.OUTPUT).read_bytes() == b"error: no room.\n"


def test_on_a_server_several_processes_have_the_same_role(tmp_path: Path) -> None:
    first, second = (RoleLocks(tmp_path, [ProcessRole.WORKER], store_digest="one") for _ in range(2))
    assert {file.name for file in tmp_path.iterdir()} == {"worker.lock", "worker.2.lock"}
    for posts, pid in ((first, 1), (second, 2)):
        posts.announce(Running(pid=pid, roles=(ProcessRole.WORKER,), version="1", started_at=pid))
    assert [found.pid for found in running(tmp_path)] == [1, 2]
    first.leave()
    assert [found.pid for found in running(tmp_path)] == [2]
    second.leave()


def test_no_more_than_so_many_processes_have_a_role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "MOST_PROCESSES", 2)
    taken = [RoleLocks(tmp_path, [ProcessRole.WORKER], store_digest="one") for _ in range(2)]
    with pytest.raises(AlreadyRunning):
        RoleLocks(tmp_path, [ProcessRole.WORKER], store_digest="one")
    for posts in taken:
        posts.leave()


def test_a_role_is_shared_only_on_the_same_store(tmp_path: Path) -> None:
    running_on = Running(
        pid=1, roles=(ProcessRole.API, ProcessRole.WORKER), version="1", started_at=1, store_digest="one"
    )
    roles.check_shared(running_on, [ProcessRole.WORKER], "one")
    roles.check_shared(running_on, [ProcessRole.CHANNELS], "another")
    for digest in ("another", None):
        with pytest.raises(AlreadyRunning, match="worker"):
            roles.check_shared(running_on, [ProcessRole.WORKER], digest)
    posts = RoleLocks(tmp_path, [ProcessRole.API], store_digest="one")
    posts.announce(running_on)
    with pytest.raises(AlreadyRunning, match="process 1"):
        roles.check_alone(tmp_path, [ProcessRole.API], None, "another")
    posts.leave()
