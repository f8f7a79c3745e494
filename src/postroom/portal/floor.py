"""The floor: the office as a drawing. Who works, who waits, who is free; what was last said; work carried on."""

from collections.abc import Sequence
from urllib.parse import quote
from zlib import crc32

from htpy import a, div
from markupsafe import Markup, escape

from postroom.portal.parts import show_empty
from postroom.portal.visit import PageView, PortalPart, PortalVisit
from postroom.portal.words import cut
from postroom.services.chats import TurnInProgress

DESK_W, DESK_H, ACROSS = 236, 196, 4
LAST_S = 120
# A bubble has no room for Markdown.
_MARKS = str.maketrans("", "", "*`#>")


async def show_floor(visit: PortalVisit) -> PageView:
    services, caller = visit.services, visit.caller
    agents = await services.agents.directory(caller)
    working = {each.agent: each for each in await services.chats.working(caller)}
    waiting = {each.agent: each.pending + each.queued for each in await services.workload.by_agent(caller)}
    rows = await services.conversations.history(caller, limit=60)
    last: dict[str, str] = {}
    for row in rows:
        recent = visit.now - row["created_at"] * 1000 < LAST_S * 1_000_000
        if row["role"] == "assistant" and recent:
            last.setdefault(row["agent_id"], row["content"])
    names = [(each.id, each.name or each.id) for each in agents]
    needs = await services.needs_you.count(caller)
    drawn = draw_floor(names, working, waiting, last, needs)
    return PageView(
        title="The floor",
        way="/floor",
        wide=True,
        lead=f"{len(working)} of {len(names)} at work. A desk opens the chat of its agent.",
        body=div(id="floor", data_live=True)[
            drawn
            if names
            else show_empty("Nobody works here yet", a(".link", href="/agents")["Make the first agent"])
        ],
    )


def draw_floor(
    agents: Sequence[tuple[str, str]],
    working: dict[str, TurnInProgress],
    waiting: dict[str, int],
    last: dict[str, str],
    needs: int,
) -> Markup:
    across = min(ACROSS, max(1, len(agents)))
    down = -(-len(agents) // across)
    wide, high = max(3, across) * DESK_W + 40, down * DESK_H + 150
    desks = "".join(
        _desk(
            20 + number % across * DESK_W,
            130 + number // across * DESK_H,
            agent,
            name,
            working.get(agent),
            waiting.get(agent, 0),
            last.get(agent, ""),
        )
        for number, (agent, name) in enumerate(agents)
    )
    places = {
        agent: (20 + n % across * DESK_W + 96, 130 + n // across * DESK_H + 84)
        for n, (agent, _) in enumerate(agents)
    }
    carried = "".join(_carried(places, turn) for turn in working.values())
    counter = (
        f'<a href="/" aria-label="{needs} things need you"><g class="counter"><rect class="wood" x="20" y="20" width="{wide - 40}" height="54" rx="6"/>'
        f'<rect class="slot" x="44" y="38" width="88" height="18" rx="3"/><text class="sign" x="152" y="52">{"Nothing waits for you" if not needs else "One thing waits for you" if needs == 1 else f"{needs} things wait for you"}</text>'
        f"{''.join(_letter(48 + n * 13, 34, 'red') for n in range(min(needs, 6)))}</g></a>"
    )
    return Markup(
        f'<svg class="chart floor" viewBox="0 0 {wide} {high}" role="group" aria-label="The office">{counter}{desks}{carried}</svg>'
    )


def _letter(x: float, y: float, kind: str = "") -> str:
    return f'<g class="letter {kind}"><rect x="{x}" y="{y}" width="20" height="14" rx="1.5"/><path d="M{x + 1} {y + 1.5}l9 7 9-7"/></g>'


def _desk(x: int, y: int, agent: str, name: str, turn: TurnInProgress | None, waits: int, words: str) -> str:
    state = "busy" if turn else "free"
    told = "works" if turn else f"{waits} waiting" if waits else "free"
    tone = crc32(agent.encode()) % 4 + 1
    said = cut((turn.text or turn.about if turn else words).translate(_MARKS), 56)
    bubble = ""
    if said:
        first, second = _two_lines(said)
        bubble = (
            f'<g class="bubble"><path d="M{x + 14} {y - 4}h186a6 6 0 0 1 6 6v30a6 6 0 0 1-6 6h-92l-8 9-4-9h-82a6 6 0 0 1-6-6v-30a6 6 0 0 1 6-6z"/>'
            f'<text x="{x + 20}" y="{y + 13}">{escape(first)}</text><text x="{x + 20}" y="{y + 28}">{escape(second)}</text></g>'
        )
    pile = "".join(_letter(x + 158 + n * 2, y + 108 - n * 5) for n in range(min(waits, 6)))
    return (
        f'<a href="/chat?with={quote(agent)}" aria-label="{escape(name)}: {told}"><g class="desk {state}">'
        f'<rect class="hit" x="{x}" y="{y - 6}" width="{DESK_W - 20}" height="{DESK_H - 14}" rx="8"/>'
        f'<circle class="head f{tone}" cx="{x + 96}" cy="{y + 66}" r="13"/><path class="body f{tone}" d="M{x + 70} {y + 112}c2-22 12-30 26-30s24 8 26 30z"/>'
        f'<rect class="screen" x="{x + 108}" y="{y + 84}" width="40" height="26" rx="2"/><path class="stand" d="M{x + 128} {y + 110}v6"/>'
        f'<path class="glow" d="M{x + 114} {y + 92}h20m-20 6h28m-28 6h14"/>'
        f'<rect class="wood" x="{x + 24}" y="{y + 116}" width="168" height="9" rx="3"/><path class="leg" d="M{x + 36} {y + 125}v24M{x + 180} {y + 125}v24"/>'
        f'{pile}<text class="name" x="{x + 24}" y="{y + 168}">{escape(cut(name, 24))}</text><text class="told" x="{x + 192}" y="{y + 168}" text-anchor="end">{told}</text>{bubble}</g></a>'
    )


def _two_lines(text: str) -> tuple[str, str]:
    if len(text) <= 32:
        return text, ""
    at = text.rfind(" ", 0, 32)
    at = at if at > 12 else 32
    return text[:at], text[at:].strip()


def _carried(places: dict[str, tuple[int, int]], turn: TurnInProgress) -> str:
    """What a teammate handed over lies on the way between the two desks."""
    sender = turn.about.partition("[Message from teammate @")[2].partition("]")[0].partition(" ")[0]
    if sender not in places or turn.agent not in places:
        return ""
    (x1, y1), (x2, y2) = places[sender], places[turn.agent]
    return f'<path class="way" d="M{x1} {y1}Q{(x1 + x2) / 2} {min(y1, y2) - 60} {x2} {y2}"/>{_letter((x1 + x2) / 2 - 10, min(y1, y2) - 40, "red")}'


PART = PortalPart({"/floor": show_floor})
