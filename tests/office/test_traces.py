"""A trace shows what caused what, who did it, how it ended and what it cost."""

from pathlib import Path

from tests.acceptance.office import staffed

from postroom.office.traces import ConversationTrace, TraceStep, find_critical_path, trace
from postroom.providers.protocol import ErrorKind
from postroom.providers.script_rules import ScriptRule

RULES = [
    ScriptRule(agent="lead", reply="I ask. [#dev: we begin]", match="login", hand_off={"coder": "fix it"}),
    ScriptRule(agent="coder", match="fix it", fail=ErrorKind.CRASHED, times=1, reply="Fixed."),
    ScriptRule(match="Chat room", reply="noted"),
]


def lines(step: TraceStep, depth: int = 0) -> list[str]:
    turns = ",".join(f"{turn.agent} {turn.outcome}" for turn in step.turns)
    line = f"{'  ' * depth}{step.kind}: {step.who} to {step.to}, {step.state} [{turns}]"
    return [line, *(below for cause in step.causes for below in lines(cause, depth + 1))]


async def test_a_conversation_is_a_tree(tmp_path: Path) -> None:
    async with staffed(tmp_path, *RULES) as desk:
        await desk.room.update_queue("office/inbox/coder", backoff_base_s=0.01)
        await desk.write("@lead something else entirely", sender_id="bob")
        sent = await desk.write("@dev the login is broken")
        await desk.replies(3)
        await desk.quiet()
        talk = (await desk.room.get(sent.receipts[0].id)).correlation_id or ""
        told = await trace(desk.room, talk)
    [root] = told.roots
    assert sorted(lines(root)) == sorted(
        [
            "mail: Ann to @lead, completed [lead finished]",
            "  reply: @lead to Ann, pending []",
            "  note: @lead to @coder, completed [coder crashed,coder finished]",
            "    reply: @coder to Ann, pending []",
            "  post: @lead to #dev, completed []",
        ]
    )
    assert next(cause.text for cause in root.causes if cause.kind == "note") == "fix it"
    assert (told.messages, told.turns, told.cost_usd) == (5, 3, "0.0")
    assert told.began_at == root.began_at <= (root.ended_at or 0) <= told.ended_at


async def test_a_conversation_that_nobody_knows_is_empty(tmp_path: Path) -> None:
    async with staffed(tmp_path) as desk:
        told = await trace(desk.room, "web:nobody")
    assert (told.roots, told.messages, told.cost_usd) == ([], 0, None)


def step(name: str, began_at: int, ended_at: int | None, *causes: TraceStep) -> TraceStep:
    return TraceStep(
        message_id=name, kind="note", who="", to="", text="", state="completed", attempts=1,
        began_at=began_at, ended_at=ended_at, causes=list(causes),
    )  # fmt: skip


def test_the_critical_path_leads_to_what_ended_last() -> None:
    quick = step("quick", 10, 20, step("quicker", 12, 15))
    slow = step("slow", 10, 40, step("early", 11, 30), step("last", 40, 90))
    told = ConversationTrace(
        correlation_id="web:1", roots=[step("root", 0, 10, quick, slow)], began_at=0, ended_at=90, messages=6,
        turns=0, cost_usd=None,
    )  # fmt: skip
    assert [each.message_id for each in find_critical_path(told)] == ["root", "slow", "last"]


def test_what_is_still_open_is_on_the_critical_path() -> None:
    root = step("root", 0, 10, step("open", 10, None), step("done", 10, 80))
    told = ConversationTrace(
        correlation_id="web:1", roots=[root], began_at=0, ended_at=90, messages=3, turns=0, cost_usd=None
    )
    assert [each.message_id for each in find_critical_path(told)] == ["root", "open"]
