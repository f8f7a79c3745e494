"""The trace of a conversation as a tree on the terminal: what caused what, and what came of it."""

from rich.text import Text
from rich.tree import Tree

from postroom.clock import SECOND
from postroom.office.traces import ConversationTrace, TraceStep, TurnTaken
from postroom.terminal.cli.output import clean, some, span

TEXT_CHARS = 64
COLOURS = {"completed": "green", "dead": "red", "expired": "red", "cancelled": "yellow"}


def render_tree(trace: ConversationTrace) -> Tree:
    lasted = (trace.ended_at - trace.began_at) / SECOND
    counts = f"{some(trace.messages, 'message')}, {some(trace.turns, 'turn')}"
    head = f"Conversation {trace.correlation_id}: {counts}, {span(lasted)}"
    if trace.cost_usd is not None:
        head += f", {money(trace.cost_usd)}"
    tree = Tree(Text(clean(head), style="bold"), guide_style="dim")
    for step in trace.roots:
        _add(tree, step, trace.began_at)
    return tree


def _add(tree: Tree, step: TraceStep, began: int) -> None:
    branch = tree.add(_line(step, began))
    for turn in step.turns:
        branch.add(_turn(turn, began))
    for cause in step.causes:
        _add(branch, cause, began)


def _line(step: TraceStep, began: int) -> Text:
    words = " ".join(step.text.split())
    words = words if len(words) <= TEXT_CHARS else words[: TEXT_CHARS - 1] + "…"
    line = Text().append(_at(step.began_at, began), style="dim")
    line.append(clean(f"{step.who} → {step.to}  "), style="bold")
    line.append(clean(words))
    if step.kind in ("mail", "note"):
        tries = f", attempt {step.attempts}" if step.attempts > 1 else ""
        line.append(f"  {step.state}{tries}", style=COLOURS.get(step.state, ""))
        if step.turns and (waited := min(turn.started_at for turn in step.turns) - step.began_at) > 0:
            line.append(f", waited {span(waited / SECOND)}", style="dim")
    return line


def _turn(turn: TurnTaken, began: int) -> Text:
    line = Text().append(_at(turn.started_at, began), style="dim")
    line.append(clean(f"turn of @{turn.agent}, {span((turn.ended_at - turn.started_at) / SECOND)}: "))
    line.append(turn.outcome, style="green" if turn.outcome == "finished" else "yellow")
    cost = "" if turn.cost_usd is None else f", {money(turn.cost_usd)}"
    line.append(f" ({turn.tokens} tokens{cost})", style="dim")
    return line


def _at(moment: int, began: int) -> str:
    return f"+{(moment - began) / SECOND:.2f} s  "


def money(usd: str) -> str:
    value = float(usd)
    return f"${value:.2f}" if value >= 0.005 or value == 0 else f"${value:.5f}"
