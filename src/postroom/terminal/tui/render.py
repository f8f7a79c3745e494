"""How the floor looks on a terminal. What came from messages is cleaned before it is shown."""

from datetime import UTC, datetime

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from postroom.terminal.cli.output import clean, span
from postroom.terminal.tui.floor import Card, Doing, Floor

CARD = 30
LINES = 12
_STYLES = {
    Doing.IDLE: "dim",
    Doing.ACTIVE: "bold cyan",
    Doing.DONE: "green",
    Doing.ERROR: "bold red",
    Doing.WAITING: "yellow",
}


def frame(floor: Floor, now: float, *, live: bool) -> RenderableType:
    parts: list[RenderableType] = [
        Text.assemble(
            ("Postroom", "bold"), f"  {clean(floor.title)}", ("  up " + span(now - floor.opened_at), "dim")
        )
        if live
        else Text.assemble(("Postroom", "bold"), f"  {clean(floor.title)}"),
        draw_cards(floor),
    ]
    if floor.flow:
        arrows = "   ".join(f"@{giver} → @{taker}" for giver, taker in floor.flow)
        parts += [Text("Message flow", style="bold"), Text(clean(arrows))]
    if len(floor.teams) > 1:
        legend = "   ".join(f"#{team} {name}" for team, name in floor.teams.items())
        parts.append(Text.assemble(("Teams  ", "bold"), clean(legend)))
    if floor.activity:
        parts.append(Text("Activity", style="bold"))
        for each in list(floor.activity)[-LINES:]:
            line = Text.assemble((f"{tell_time(each.moment)}  ", "dim"), clean(each.text))
            line.no_wrap, line.overflow = True, "ellipsis"
            parts.append(line)
    parts.append(_bar(floor, live=live))
    return Group(*parts)


def tell_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).astimezone().strftime("%H:%M:%S")


def draw_cards(floor: Floor, width: int = CARD) -> Columns:
    return Columns([_card(card, width) for card in floor.cards.values()], padding=(0, 1))


def _card(card: Card, width: int) -> Panel:
    style = _STYLES[card.doing]
    star = " ★" if card.leads else ""
    head = Text(f"{card.doing} @{card.agent}{star}", style=style)
    about = Text.assemble((clean(card.name), "bold"), f" · {clean(card.works_with)}")
    body = Text("\n").join([head, about, Text(clean(card.text) or "idle")])
    body.no_wrap, body.overflow = True, "ellipsis"
    return Panel(body, width=width, border_style=style)


def _bar(floor: Floor, *, live: bool) -> Text:
    state = ("● online", "green") if floor.online else ("○ does not run", "red")
    counts = f"   {floor.waiting} in the queue"
    if live:
        counts += f"   {floor.processed} answered"
    counts += f"   {floor.dead or 0} dead"
    return Text.assemble(state, counts, ("   q quits" if live else "", "dim"))
