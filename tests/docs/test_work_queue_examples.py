"""The examples about the work queue run as they stand, against a real server."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.queue.service import OWNER, Service, serving

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def blocks(page: str, kind: str) -> list[str]:
    text = (PAGES / page).read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(tmp_path) as service:
        yield service


async def run(service: Service, *command: str) -> str:
    environment = {**os.environ, "URL": service.url, "TOKEN": OWNER}

    def work() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    done = await asyncio.to_thread(work)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def python(service: Service, program: str) -> list[str]:
    return (await run(service, sys.executable, "-W", "error", "-c", program)).splitlines()


async def test_the_quickstart_by_plain_http_calls(service: Service) -> None:
    make, work, key = blocks("work-queue.md", "sh")
    told = await run(service, "bash", "-euc", f"{make}\n{work}\n{key}")
    assert '"state":"completed"' in told
    assert '"secret":"prk_' in told
    [message] = await service.owner.get("/scopes/orders/messages")
    assert (message["state"], message["result"]) == ("completed", {"paid": True})
    client, _ = blocks("work-queue.md", "python")
    assert await python(service, client) == ["0 left"]


async def test_the_pipeline_with_premium_routing(service: Service) -> None:
    _, pipeline = blocks("work-queue.md", "python")
    first, *steps = await python(service, pipeline)
    assert first == "ship 2 because of True"
    assert steps[:2] == ["message.published", "message.routed"]
    assert steps.count("message.published") == 2


async def test_the_rules_example(service: Service) -> None:
    [program] = blocks("rules.md", "python")
    assert await python(service, program) == [
        "1 of the last messages would match; nothing has happened",
        "urgent",
    ]


async def test_the_content_moderation_with_human_review(service: Service) -> None:
    [program] = blocks("reviews.md", "python")
    assert await python(service, program) == ["Hello!", "True approve", "SCAIQUEUE_REVIEW_ANSWERED"]
