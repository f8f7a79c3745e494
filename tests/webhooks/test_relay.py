"""Every event reaches the deliveries, also when the store could not take them at first."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import postroom
from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import PositionMoved, PostroomError, StoreFull
from postroom.kernel import commands as c
from postroom.kernel import service_commands, webhooks
from postroom.kernel.model import LifecycleState
from postroom.kernel.ports import MessageFilter
from postroom.kernel.webhooks import Webhook
from postroom.webhooks.relay import Relay
from postroom.webhooks.service import make_queue
from tests.acceptance.office import until


async def told(room: Room) -> list[str]:
    """The messages that deliveries are about."""
    wanted = MessageFilter(tenant=webhooks.TENANT, message_type=webhooks.MESSAGE)
    found = await room.look(lambda reader: reader.page(wanted, None, 100))
    return [room.to_message(stored).labels["about"] for stored in found]


async def prepared(room: Room) -> Relay:
    await make_queue(room)
    hook = Webhook(
        id="h", tenant="default", url="https://x.org/", events=webhooks.EVENTS[:1], secret="s" * 16
    )
    data = msgspec.to_builtins(hook)
    await room.run(
        service_commands.PutServiceDocument(kind=webhooks.KIND, key="h", data=data, tenant="default")
    )
    await room.create_queue("jobs")
    relay = Relay(room)
    await relay.catch_up()
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
                await relay.catch_up()
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
        await relay.catch_up()
        assert await told(room) == [sent.id]


async def test_of_two_relays_one_tells_and_the_other_goes_on_when_it_stops(tmp_path: Path) -> None:
    """The room's clock stands, so that the lead is given up and never lost."""
    url = f"sqlite:///{tmp_path / 'room.db'}"
    async with postroom.open(url, durability="relaxed", clock=ManualClock()) as room:
        await prepared(room)
        relays = [Relay(room), Relay(room)]
        running = [asyncio.create_task(relay.run()) for relay in relays]
        sent = [(await room.publish("jobs", 1)).id]

        async def is_told() -> bool:
            return await told(room) == sent

        await until(is_told)
        [leading] = [number for number, relay in enumerate(relays) if relay._leader.leads]
        relays[leading].stop()
        await running[leading]
        sent.append((await room.publish("jobs", 2)).id)
        await until(is_told)
        assert relays[1 - leading]._leader.leads
        relays[1 - leading].stop()
        await running[1 - leading]


async def test_a_relay_that_lost_its_lead_delivers_nothing_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'room.db'}"
    async with postroom.open(url, durability="relaxed") as room:
        asleep, awake = await prepared(room), Relay(room)
        sent = await room.publish("jobs", 1)
        pages = asleep._reader.pages(follow=False)
        page = await anext(pages)  # it has read them, and then its machine sleeps
        await awake.catch_up()
        with pytest.raises(PositionMoved):
            await asleep._handle(page)
        await pages.aclose()
        assert await told(room) == [sent.id]
