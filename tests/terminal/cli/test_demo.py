"""What the demo recommends exists, and its trace reads well whatever a conversation holds."""

import shlex
from typing import Any

import pytest
from rich.console import Console

from postroom.office.traces import ConversationTrace, TraceStep, TurnTaken
from postroom.terminal.cli import demo_office, demo_queue
from postroom.terminal.cli.conversation_tree import money, render_tree
from tests.terminal.cli.tree import whole_tree


@pytest.mark.parametrize("line", [line for line, _ in (*demo_office.NEXT, *demo_queue.NEXT)])
def test_what_to_try_next_is_a_command_that_exists(line: str) -> None:
    words = shlex.split(line)[1:]
    root: Any = whole_tree()
    command = root
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    assert words == ["--help"] or command is not root
    assert {word for word in words if word.startswith("--")} <= options


def test_a_trace_cannot_send_orders_to_the_terminal() -> None:
    turn = TurnTaken(turn_id="t", agent="coder", outcome="finished", started_at=0, ended_at=1_500_000)
    step = TraceStep(
        message_id="m",
        kind="mail",
        who="Ann\x1b[31m",
        to="@coder",
        text="[bold]no markup[/bold] \x1b]0;title\x07",
        state="completed",
        attempts=2,
        began_at=0,
        turns=[turn],
    )
    trace = ConversationTrace(
        correlation_id="web:1\x1b[2J",
        roots=[step],
        began_at=0,
        ended_at=2_000_000,
        messages=1,
        turns=1,
        cost_usd=None,
    )
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(render_tree(trace))
    text = captured.get()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]no markup[/bold]" in text
    assert "completed, attempt 2" in text
    assert "turn of @coder, 1.5 s: finished" in text


@pytest.mark.parametrize(
    ("usd", "told"), [("0", "$0.00"), ("0.0", "$0.00"), ("1.234", "$1.23"), ("0.0012", "$0.00120")]
)
def test_money_is_told_as_precisely_as_it_matters(usd: str, told: str) -> None:
    assert money(usd) == told
