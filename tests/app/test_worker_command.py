"""`postroom worker`: a function of somebody's module works on the messages of an office that runs."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.workers import load_function
from tests.app.house_process import HouseProcess

MODULE = """
def handle(message):
    return {"twice": 2 * message.body["n"]}

NUMBER = 3
"""


def test_a_function_is_run_on_the_messages_of_a_queue_and_ends_when_told(
    house: HouseProcess,
) -> None:
    (house.folder / "their_work.py").write_text(MODULE)
    house.start()
    house.cli("queue", "create", "jobs")
    made = [json.loads(house.cli("publish", "jobs", f'{{"n": {n}}}', "--json").stdout) for n in (1, 2)]
    words = ("worker", "their_work:handle", "--queue", "jobs", "--at-once", "2", "--json")
    command = [sys.executable, "-m", "postroom", *words]
    with subprocess.Popen(command, env=house.env, cwd=house.folder, stdout=subprocess.PIPE) as worker:
        end = time.monotonic() + 60
        while json.loads(house.cli("show", made[1]["id"], "--json").stdout)["state"] != "completed":
            assert time.monotonic() < end, "nobody works on it"
        worker.send_signal(signal.SIGTERM)
        told, _ = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert json.loads(told) == {"completed": 2, "failed": 0}
    assert json.loads(house.cli("show", made[0]["id"], "--json").stdout)["result"] == {"twice": 2}
    house.cli("stop")
    refused = house.cli("worker", "their_work:handle", "--queue", "jobs", check=False)
    assert refused.returncode != 0
    assert "postroom start" in refused.stderr


@pytest.mark.parametrize("name", ["their_work", "nowhere:handle", "their_work:nothing", "their_work:NUMBER"])
def test_what_is_no_function_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "their_work.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Unclear, match=name.partition(":")[2] or name):
        load_function(name)
