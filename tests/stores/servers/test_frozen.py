"""A process that is frozen in the middle of a transaction holds the others up for a bounded, short time."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.stores.servers.conftest import Rooms, until
from tests.stores.servers.frozen_process import STAGES
from tests.stores.servers.kinds import KINDS, ServerKind

WITHIN_S = 60
# To the server it is at work, so only the others can end it.
QUICK = "while it sends"


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        pytest.param(
            kind,
            stage,
            id=f"{kind.name}, {stage}",
            marks=() if (kind.name, stage) == ("postgres", QUICK) else pytest.mark.slow,
        )
        for kind in KINDS
        for stage in STAGES
    ],
)
def test_a_process_that_is_frozen_in_a_transaction_does_not_hold_up_the_others(
    kind: ServerKind, url: str, rooms: Rooms, stage: str
) -> None:
    command = [sys.executable, "-m", "tests.stores.servers.frozen_process", url, stage]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as frozen,
        ThreadPoolExecutor(len(rooms)) as threads,
    ):
        try:
            assert frozen.stdout is not None
            assert frozen.stdout.readline() == b"held\n"
            until(lambda: kind.fetch(url, kind.waiting)[0][0] > 0)
            os.kill(frozen.pid, signal.SIGSTOP)
            done = [threads.submit(room.publish, "jobs", room.actor) for room in rooms]
            for each in done:
                each.result(timeout=WITHIN_S)
            assert frozen.poll() is None
        finally:
            frozen.kill()
