"""The office of a history, as a process that can be killed. What its owner does are lines of standard input.

python -m tests.channels.history_child CONFIG.json
"""

import asyncio
import contextlib
import dataclasses
import json
import signal
import sys
from pathlib import Path
from typing import Any

from postroom.channels import chat_lanes
from postroom.channels.chat_rules import ChatRules
from postroom.kernel.states import OPEN
from postroom.office.chat_preferences import BusyMode
from postroom.office.guards import pauses
from postroom.providers.protocol import ErrorKind, Failed, Finished, TurnEvent, TurnRequest, Usage
from tests.channels.chat_platforms import PLATFORMS, ChatOffice, open_chat_office

LEASE_S = 2.0
LONG_S = 1.0


class MoodyAgent:
    """Does what a message asks for: every way in which a turn can end, or not end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def act(self, request: TurnRequest) -> list[TurnEvent]:
        word, _, token = request.prompt.rpartition("\n")[2].partition(" ")
        usage = Usage(provider="puppet", model="", output_tokens=1, cost_usd=30.0 if word == "dear" else 0.0)
        match word:
            case "crash":
                return [Failed(kind=ErrorKind.CRASHED, message="the program ended")]
            case "refused":
                return [Failed(kind=ErrorKind.AUTH, message="the key is refused")]
            case "limited":
                return [Failed(kind=ErrorKind.RATE_LIMIT, message="too many requests")]
            case "raise":
                raise RuntimeError("a fault of our own")
            case "flaky" if self._is_first(token):
                return [Failed(kind=ErrorKind.OVERLOADED, message="try again")]
            case "hang":
                await asyncio.Event().wait()
            case "silent":
                return [usage, Finished(text="")]
            case "pass":
                return [usage, Finished(text=f"[@coder: hello {token}]")]
            case "nobody":
                return [usage, Finished(text=f"[@stranger: hello {token}]")]
            case "lost":
                return [usage, Finished(text="[send_file: missing.txt]")]
        return [usage, Finished(text=f"echo: {word} {token}.")]

    def _is_first(self, token: str) -> bool:
        mark = self._folder / f"tried-{token}"
        first = not mark.exists()
        mark.touch()
        return first


async def obey(office: ChatOffice, order: str) -> None:
    match order:
        case "pause":
            await pauses.pause_all(office.room)
        case "resume":
            await pauses.resume_all(office.room)
        case "cancel":
            page = await office.room.messages(scope="office", message_type="office.mail", state=list(OPEN))
            for message in page.messages[:1]:
                await office.room.cancel(message.id)


async def main(config: dict[str, Any]) -> None:
    chat_lanes.LEASE_S = LEASE_S
    chat_lanes.WAIT_S = 0.5
    folder = Path(config["folder"])
    platform = dataclasses.replace(
        PLATFORMS[config["platform"]], options=lambda fake: config["options"], hook=None
    )
    rules = ChatRules(busy=BusyMode(config["busy"]), loop_events=0, signature=False, long_turn_s=LONG_S)
    agents = {name: {"name": name, "provider": "puppet", "model": ""} for name in config["agents"]}
    async with open_chat_office(
        folder,
        platform,
        None,
        MoodyAgent(folder).act,
        rules=rules,
        port=config["port"],
        lease_s=LEASE_S,
        limits={"lease_s": LEASE_S},
        agents=agents,
        teams={},
    ) as office:
        for person_id, name in config["people"]:
            if not (await office.pairings.admit(platform.name, person_id, name)).approved:
                code = next(e.code for e in await office.pairings.waiting() if e.sender_id == person_id)
                await office.pairings.approve(code)
        for queue in await office.room.queues("office"):
            if queue.slug.startswith("inbox/"):
                await office.room.update_queue(queue.path, backoff_base_s=0.01, backoff_cap_s=0.01)
        print("ready", flush=True)
        await follow_orders(office)


async def follow_orders(office: ChatOffice) -> None:
    """Until standard input ends, or somebody asks the process to stop."""
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    task = asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        async for order in orders:
            await obey(office, order.decode().strip())
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
