"""What stands in line for a chat does not wear out because the process dies again and again."""

from pathlib import Path

import pytest

import postroom
from postroom.channels.intake_queue import intake, open_intake
from postroom.clock import ManualClock, SystemClock
from postroom.kernel import commands as c
from postroom.kernel.housekeeping.housekeepers import VISIBILITY
from postroom.kernel.states import State
from postroom.office import queues
from postroom.providers.protocol import TurnRequest
from postroom.testing import HeldClock
from tests.channels.chat_platforms import PLATFORMS, open_chat_office

DEATHS = 50


@pytest.mark.parametrize(
    ("queue", "opening"),
    [
        (queues.outbox("telegram"), queues.open_outbox("telegram")),
        (intake("telegram"), open_intake("telegram")),
    ],
    ids=["outbox", "intake"],
)
async def test_what_stands_in_line_survives_many_deaths(
    queue: str, opening: c.Command, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with postroom.open(str(tmp_path / "room.db"), clock=clock) as room:
        await room.run(c.CreateScope(slug=queues.SCOPE))
        await room.run(opening)
        receipt = await room.publish(queue, {"text": "still there?"})
        for _ in range(DEATHS):
            [held] = await room.claim(queue, lease=1)
            assert held.id == receipt.id
            clock.advance(3600)
            await room.housekeep(VISIBILITY)
        assert (await room.get(receipt.id)).state in (State.PENDING, State.DELAYED)


async def test_a_channel_raises_the_attempts_of_queues_that_an_earlier_version_made(tmp_path: Path) -> None:
    platform = PLATFORMS["webhook"]
    own = (intake("webhook"), queues.outbox("webhook"))
    async with postroom.open(f"sqlite:///{tmp_path / 'room.db'}") as room:
        await room.run(c.CreateScope(slug=queues.SCOPE))
        for queue in own:
            await room.create_queue(queue, max_retries=20)

    def echo(request: TurnRequest) -> str:
        return f"echo: {request.prompt}"

    async with (
        platform.make(HeldClock(SystemClock().now())) as fake,
        open_chat_office(tmp_path, platform, fake, echo) as office,
    ):
        for queue in own:
            assert (await office.room.queue(queue)).settings.max_retries == queues.CHAT_ATTEMPTS
