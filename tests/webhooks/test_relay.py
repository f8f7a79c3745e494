"""Every event reaches the deliveries, also when the store could not take them at first."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import postroom
from postroom import Room
from postroom.errors import PostroomError, StoreFull
from postroom.kernel import commands as c
from postroom.kernel import service_commands, webhooks
from postroom.kernel.model import LifecycleState
from postroom.kernel.ports import MessageFilter
from postroom.kernel.webhooks import Webhook
from postroom.webhooks.relay import Relay
from postroom.webhooks.service import make_place


async def told(room: Room) -> list[str]:
    """The messages that deliveries are about."""
    wanted = MessageFilter(tenant=webhooks.TENANT, message_type=webhooks.MESSAGE)
    found = await room.look(lambda reader: reader.page(wanted, None, 100))
    return [room._core.directory.message(stored).labels["about"] for stored in found]


async def prepared(room: Room) -> Relay:
    await make_place(room)
    hook = Webhook(
        id="h", tenant="default", url="https://x.org/", events=webhooks.EVENTS[:1], secret="s" * 16
    )
    data = msgspec.to_builtins(hook)
    await room.run(
        service_commands.PutServiceDocument(kind=webhooks.KIND, key="h", data=data, tenant="default")
    )
    await room.create_queue("jobs")
    relay = Relay(room)
    while await relay.step():
        pass
    return relay


@pytest.mark.parametrize("failures", [1, 2, 3])
async def test_what_could_not_be_kept_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    async with postroom.open(f"sqlite:///{tmp_path / 'room.db'}", durability="relaxed") as room:
        relay = await prepared(room)
        sent = await room.publish("jobs", 1)
        run, left = room.run, failures

        def full(command: c.Command) -> Any:
            nonlocal left
            if left:
                left -= 1
                raise StoreFull(path="room.db")
            return run(command)

        monkeypatch.setattr(room, "run", full)
        for _ in range(failures + 1):
            try:
                await relay.step()
            except PostroomError:
                continue
        assert left == 0
        assert await told(room) == [sent.id]


async def test_one_queue_that_takes_nothing_keeps_no_other_from_being_told(tmp_path: Path) -> None:
    async with postroom.open(f"sqlite:///{tmp_path / 'room.db'}", durability="relaxed") as room:
        relay = await prepared(room)
        await room.run(c.Subscribe(queue="default/_events", name="reader", exist_ok=True))
        sent = await room.publish("jobs", 1)
        await room.run(c.SetScopeState(slug="default", state=LifecycleState.ARCHIVED))
        while await relay.step():
            pass
        assert await told(room) == [sent.id]
