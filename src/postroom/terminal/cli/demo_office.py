"""`postroom demo`: a lead, a coder and a reviewer take a request, fail, try again, and answer.

They are played by the script provider, so nothing of it needs a key or a network; all the rest is real.
"""

import asyncio
import logging
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from postroom.kernel.states import OPEN, Change
from postroom.office.intake.intake import Incoming
from postroom.office.office import Office
from postroom.office.traces import ConversationTrace, trace
from postroom.providers.protocol import ErrorKind
from postroom.providers.registry import ProviderSettings, Registry
from postroom.providers.script_rules import Script, ScriptRule
from postroom.runtime import Room, open_room
from postroom.settings.model import parse
from postroom.terminal.cli.conversation_tree import render_tree
from postroom.terminal.cli.demo_view import Stage
from postroom.terminal.cli.output import Output

REQUEST = "@dev The login page is broken. Can you fix it before the release?"
RULES = (
    ScriptRule(
        agent="lead",
        match="approved",
        reply="The login works again, reviewed and with a test. It can go into the release.",
        seconds=0.6,
        chunks=3,
    ),
    ScriptRule(
        agent="lead",
        match="login page",
        reply="I split this up. [#dev: the login comes first today]",
        hand_off={"coder": "find the bug and fix it", "reviewer": "write down what must be tested"},
        seconds=0.8,
        chunks=2,
    ),
    ScriptRule(agent="coder", match="production", fail=ErrorKind.REFUSED, seconds=0.4),
    ScriptRule(
        agent="coder",
        match="cookie",
        reply="It is set.",
        hand_off={"reviewer": "yes, the cookie is set, and there is a test for it"},
        seconds=0.5,
    ),
    ScriptRule(
        agent="coder",
        match="find the bug",
        fail=ErrorKind.CRASHED,
        times=1,
        tools=("Read", "Edit"),
        reply="Fixed: the session had expired before it began.",
        hand_off={"reviewer": "please review login.py"},
        seconds=1.2,
        chunks=4,
    ),
    ScriptRule(
        agent="reviewer",
        match="there is a test",
        reply="Nothing to add.",
        hand_off={"lead": "approved"},
        seconds=0.5,
    ),
    ScriptRule(
        agent="reviewer",
        match="please review",
        reply="Looks right.",
        hand_off={"coder": "one question: is the cookie still set?"},
        tools=("Read",),
        seconds=0.7,
    ),
    ScriptRule(agent="reviewer", match="must be tested", reply="Three things to test, listed.", seconds=0.5),
    ScriptRule(reply="Noted."),
)
SETTINGS: dict[str, Any] = {
    "agents": {
        "lead": {"name": "Lead", "provider": "script"},
        "coder": {"name": "Coder", "provider": "script"},
        "reviewer": {"name": "Reviewer", "provider": "script"},
    },
    "teams": {
        "dev": {"name": "Development", "agents": ["lead", "coder", "reviewer"], "leader_agent": "lead"}
    },
}
NEXT = [
    ("postroom start", "open an office of your own"),
    ('postroom send "hello" --wait', "write to an agent, and wait for its answer"),
    ("postroom trace ID", "a conversation of yours, step by step"),
    ("postroom dead list", "what went wrong for good, and how to try again"),
    ("postroom demo queue", "the queue underneath, on its own"),
    ("postroom --help", "all commands"),
]
ENDS = (Change.COMPLETED, Change.DEAD_LETTERED)
LONGEST_S = 60.0


async def play(folder: Path, url: str, out: Output) -> None:
    began = time.monotonic()
    # What fails is part of the play, and told on the stage.
    logging.getLogger("postroom.office").setLevel(logging.ERROR)
    lively = sys.stdout.isatty() and not out.as_json
    settings = parse({**SETTINGS, "workspace": {"path": str(folder / "work")}})
    registry = Registry(ProviderSettings(script=Script(rules=RULES, pace=0.6 if lively else 0.1)))
    # It is thrown away in a moment, so it need not survive a power cut.
    async with open_room(url, actor="demo", durability="relaxed") as room:
        office = Office(room, settings, registry, folder=folder)
        await office.furnish()
        office.start()
        stage = Stage(room, out, tuple(SETTINGS["agents"]))
        after = (await room.head()).seq
        try:
            with stage:
                request = await office.take_in(_from("Ann", REQUEST))
                other = await office.take_in(_from("Bob", "@coder deploy it to production"))
                await _watch(room, stage, after)
        finally:
            await office.stop(grace=1)
        talks = [(await room.get(taken.receipts[0].id)).correlation_id or "" for taken in (request, other)]
        traces = [await trace(room, talk) for talk in talks]
    _conclude(out, traces, time.monotonic() - began)


def _from(person: str, text: str) -> Incoming:
    return Incoming(channel="web", sender=person, sender_id=person.lower(), text=text)


async def _watch(room: Room, stage: Stage, after: int) -> None:
    """Until all mail has come to its end, and that was shown."""
    last: int | None = None
    async with asyncio.timeout(LONGEST_S), aclosing(room.events(after, follow=True)) as events:
        async for event in events:
            await stage.show(event)
            if last is None and event.type in ENDS and await _is_quiet(room):
                last = (await room.head()).seq
            if last is not None and event.seq >= last:
                return


async def _is_quiet(room: Room) -> bool:
    page = await room.messages(scope="office", limit=1000, deliveries=True)
    return not any(m.state in OPEN for m in page.messages if not m.queue.startswith("outbox/"))


def _conclude(out: Output, traces: list[ConversationTrace], seconds: float) -> None:
    if out.as_json:
        out.line({"seconds": round(seconds, 3), "traces": msgspec.to_builtins(traces)})
        return
    for each in traces:
        out.say("")
        out.say(render_tree(each))
    out.say("")
    out.say("What to try next", style="bold")
    width = max(len(line) for line, _ in NEXT)
    for line, about in NEXT:
        out.say(f"  {line:<{width}}  {about}")
