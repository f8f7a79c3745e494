"""The office of a soak, as a process that can be killed: python -m tests.channels.soak_child CONFIG.json"""

import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from postroom.channels import chat_lanes
from postroom.channels.chat_rules import ChatRules
from postroom.office.chat_preferences import BusyMode
from postroom.providers.protocol import Finished, TurnEvent, TurnRequest, Usage
from tests.channels.chat_platforms import PLATFORMS, open_chat_office

LEASE_S = 2.0


def echo(request: TurnRequest) -> list[TurnEvent]:
    # Free, so that no budget ends the soak.
    usage = Usage(provider="puppet", model="", output_tokens=1, cost_usd=0.0)
    return [usage, Finished(text=f"echo: {request.prompt}.")]


async def main(config: dict[str, Any]) -> None:
    # Who was killed is given up after seconds: a soak has no minutes for each kill.
    chat_lanes.LEASE_S = LEASE_S
    chat_lanes.WAIT_S = 0.5
    platform = dataclasses.replace(
        PLATFORMS[config["platform"]], options=lambda fake: config["options"], hook=None
    )
    rules = ChatRules(busy=BusyMode.QUEUE, loop_events=0, signature=False)
    async with open_chat_office(
        Path(config["folder"]),
        platform,
        None,
        echo,
        rules=rules,
        port=config["port"],
        lease_s=LEASE_S,
        limits={"lease_s": LEASE_S},
    ) as office:
        for person_id, name in config["people"]:
            if not (await office.pairings.admit(platform.name, person_id, name)).approved:
                code = next(e.code for e in await office.pairings.waiting() if e.sender_id == person_id)
                await office.pairings.approve(code)
        while True:
            counts = await office.room.scope_counts("office")
            handled = sum(each.completed for slug, each in counts.items() if slug.startswith("inbox/"))
            tell(Path(config["status"]), handled, sum(each.open for each in counts.values()))
            await asyncio.sleep(0.2)


def tell(file: Path, handled: int, still_open: int) -> None:
    """The store has one process, so whoever watches this one reads a file."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"handled": handled, "open": still_open}))
    new.replace(file)


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
