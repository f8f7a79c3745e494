"""Two consumers over HTTP, one killed in the middle: every message is completed exactly once."""

import asyncio
import collections
import os
import signal
import sys
from pathlib import Path

import pytest

import postroom
from postroom.client import AsyncClient
from postroom.kernel.ledger import fold
from tests.api.queue.service import OWNER

HERE = Path(__file__).parent
MESSAGES = 60


async def start(*args: str) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    return await asyncio.create_subprocess_exec(
        sys.executable, *args, stdout=asyncio.subprocess.PIPE, env=environment
    )


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()


@pytest.mark.timeout(600)
async def test_a_killed_consumer_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    store = tmp_path / "room.db"
    server = await start(str(HERE / "server.py"), str(store), OWNER)
    url = await line(server)
    async with AsyncClient(url, OWNER) as queue:
        await queue.create_scope("work")
        await queue.create_queue("work/jobs", visibility_timeout_s=1, max_retries=10)
        sent = await queue.publish_many("work/jobs", [{"body": n} for n in range(MESSAGES)])
        victim = await start(str(HERE / "consumer.py"), url, OWNER, "victim", "20")
        for _ in range(4):
            assert await line(victim), "it has completed something"
        other = await start(str(HERE / "consumer.py"), url, OWNER, "other")
        assert await line(other), "both are at work"
        victim.send_signal(signal.SIGKILL)
        await victim.wait()
        out, _ = await asyncio.wait_for(other.communicate(), 180)
        assert other.returncode == 0
        assert len(out.split()) > 0
        assert (await queue.queue("work/jobs")).depth_pending == 0
    server.send_signal(signal.SIGTERM)
    await asyncio.wait_for(server.wait(), 60)
    async with postroom.open(f"sqlite:///{store}", housekeeping=False) as room:
        events = [event async for event in room.events()]
    done = collections.Counter(event.message_id for event in events if event.type == "message.completed")
    assert done == {message.id: 1 for message in sent}, "each exactly once in the ledger"
    states = {folded.state for message_id, folded in fold(events).items()}
    assert states == {"completed"}
