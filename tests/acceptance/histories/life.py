"""One life of an office in a history: it does what the plan says, and works until all is at rest or it is
killed at a step.

What was done in an earlier life is done again: people send until they are heard, and files are as they are.
"""

import asyncio
import itertools
import json
import os
from pathlib import Path
from typing import Any, cast

import postroom
from postroom import Room, State
from postroom.app.office_reloader import OfficeReloader
from postroom.clock import SystemClock
from postroom.errors import PostroomError
from postroom.office import ledger_follower
from postroom.office.guards import pauses
from postroom.office.guards.notices import code
from postroom.office.intake.intake import Incoming
from postroom.office.office import Office
from postroom.providers.registry import ProviderSettings, Registry
from postroom.providers.script_rules import Script, read_script
from postroom.settings import Settings, SettingsFile
from tests.acceptance.crashes.life import SteppedRoom, Steps
from tests.acceptance.office import until
from tests.office.guards.house import Paid

ACCEPTED = "accepted.txt"
STOPPED = "stopped.txt"


class PlannedReloader(OfficeReloader):
    """Whose agents are of a script that costs money."""

    script = Script()
    price = 0.0

    def _made(self, settings: Settings) -> Office:
        registry, paid = Registry(ProviderSettings(script=self.script)), Paid(self.script, self.price)
        registry._makers["paid"] = lambda: paid
        return Office(self._room, settings, registry, folder=self._home, clock=self._clock)


async def live(folder: Path, plan: dict[str, Any], fatal: int | None) -> int:
    """The number of steps it took, if it was not killed before."""
    steps = Steps(fatal)
    file = SettingsFile(folder / "settings.json")
    if not (folder / "settings.json").exists():
        file.replace(plan["settings"])
    PlannedReloader.script = read_script(json.dumps(plan["script"]))
    PlannedReloader.price = plan.get("price", 0.0)
    url, actor = str(folder / "room.db"), f"life-{os.getpid()}"
    async with postroom.open(url, durability="relaxed", actor=actor) as room:
        stepped = cast("Room", SteppedRoom(room, steps))
        staff = PlannedReloader(stepped, file, folder, SystemClock(), environment={})
        await staff.open()
        for number, action in enumerate(plan["actions"]):
            await act(staff, file, folder, number, action)
            for queue in await room.queues("office"):
                if queue.slug.startswith("inbox/") and queue.settings.backoff_base_s > 0.01:
                    await room.update_queue(queue.path, backoff_base_s=0.01, backoff_cap_s=0.01)
        await until(lambda: is_at_rest(room, staff), within=120)
        for answers in plan.get("answers", ()):
            await _answer(room, staff, folder, answers)
            await until(lambda: is_at_rest(room, staff), within=120)
        if "in_the_end" in plan:
            file.replace(plan["in_the_end"])
            await staff.apply()
            await until(lambda: is_at_rest(room, staff), within=120)
            waiting = [each for each in await everything(room) if each.state is State.DELAYED]
            still = [each.id for each in waiting if (each.failure_reason or "").startswith("day/")]
            assert still == [], "the day has money again"
        await staff.close(5)
    return steps.taken


async def _answer(room: Room, staff: OfficeReloader, folder: Path, answers: list[str]) -> None:
    """Everybody who was asked whether a conversation goes on says one of these."""
    for paused, words in zip(await pauses.paused_conversations(room), itertools.cycle(answers), strict=False):
        assert paused.person is not None, f"nobody was asked about {paused.conversation}"
        mail = Incoming(
            channel=paused.channel or "",
            sender=paused.person,
            sender_id=paused.person,
            text=f"{words} {code(paused.conversation)}",
        )
        if words == "/stop":
            _remember(folder / STOPPED, paused.conversation)
        told = (await staff.office.take_in(mail)).notice
        assert told is not None
        assert told.startswith("Stopped." if words == "/stop" else "It goes on."), told


async def act(
    staff: OfficeReloader, file: SettingsFile, folder: Path, number: int, action: dict[str, Any]
) -> None:
    if "write" in action:
        mail = Incoming(
            channel="web",
            sender=action["person"],
            sender_id=action["person"],
            text=action["write"],
            platform_id=f"{number}",
        )
        taken = await staff.office.take_in(mail)
        if taken.receipts:
            _remember(folder / ACCEPTED, str(number))
    elif "settings" in action:
        file.replace(action["settings"])
        await staff.apply()
    elif "kill" in action:
        await _kill_turn(staff, action["kill"])
    await asyncio.sleep(action.get("pause", 0.0))


def _remember(file: Path, line: str) -> None:
    """A kill of this process does not take it back: the person was told that it is safe, or has said stop."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


async def _kill_turn(staff: OfficeReloader, agent: str) -> None:
    page = await staff._room.messages(scope="office", state=State.CLAIMED, limit=100)
    for message in page.messages:
        if message.agent == agent and message.queue == f"inbox/{agent}":
            try:
                await staff.office.cancel(message.id, "ended by a person", is_told=True)
            except PostroomError:
                return  # it ended by itself at that moment


async def is_at_rest(room: Room, staff: OfficeReloader) -> bool:
    if staff._leaving:
        return False
    for message in await everything(room):
        if message.queue.startswith("outbox/") or message.message_type == "office.gather":
            continue
        if message.queue.startswith("room/") and message.subscription is None:
            continue  # it ends with the last of its deliveries
        if message.state in (State.PENDING, State.CLAIMED):
            return False
        if message.state is State.DELAYED and not await is_held(room, message):
            return False
    positions = {position.name: position.seq for position in await room.positions()}
    return positions.get(ledger_follower.NAME, 0) >= (await room.head()).seq


async def everything(room: Room) -> list[postroom.Message]:
    found: list[postroom.Message] = []
    cursor: str | None = None
    while True:
        page = await room.messages(scope="office", limit=1000, deliveries=True, cursor=cursor)
        found += page.messages
        cursor = page.next_cursor
        if cursor is None:
            return found


async def is_held(room: Room, message: postroom.Message) -> bool:
    """Whether it waits for a person, and not for a moment."""
    names = [(message.failure_reason or "").partition(":")[0], f"conversation/{message.correlation_id}"]
    found = await room.accounts(*(name for name in names if name))
    return any(account.frozen for account in found.values())
