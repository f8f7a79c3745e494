"""The floor shows who works, waits and hands on; what a message says cannot draw on the terminal."""

import io

from rich.console import Console

from postroom.office.agents.views import agent_view, team_view
from postroom.services.rooms import RoomEntry
from postroom.services.workload import WorkloadCounts
from postroom.settings.model import parse
from postroom.terminal.tui.conversation import tell_post
from postroom.terminal.tui.floor import KEPT, REST_S, Doing, Floor
from postroom.terminal.tui.render import frame

DOCUMENT = {
    "agents": {
        name: {"name": name.title(), "provider": "script", "model": "m"}
        for name in ("lead", "coder", "writer")
    },
    "teams": {
        "dev": {"name": "Dev", "agents": ["lead", "coder"], "leader_agent": "lead"},
        "press": {"name": "Press", "agents": ["writer"], "leader_agent": "writer"},
    },
}
SETTINGS = parse(DOCUMENT)
AGENTS = {name: agent_view(SETTINGS, DOCUMENT, name) for name in DOCUMENT["agents"]}
TEAMS = {name: team_view(SETTINGS, DOCUMENT, name) for name in DOCUMENT["teams"]}


def floor(team: str | None = None) -> Floor:
    return Floor.of(AGENTS, TEAMS, team, 1000.0)


def counts(dead: int) -> WorkloadCounts:
    return WorkloadCounts(
        incoming=2, queued=1, processing=1, completed=0, dead=dead, outgoing=0, conversations=0
    )


def drawn(seen: Floor, now: float = 1000.0, *, live: bool = True) -> str:
    out = io.StringIO()
    Console(file=out, width=110, force_terminal=False).print(frame(seen, now, live=live))
    return out.getvalue()


def test_a_card_follows_its_agent_from_mail_to_rest() -> None:
    seen = floor()
    card = seen.cards["coder"]
    assert card.doing is Doing.IDLE
    seen.see("message:incoming", {"agent": "coder", "sender": "Ann", "message": "fix it"}, 1001)
    assert card.doing is Doing.WAITING
    seen.see("agent:invoke", {"agentId": "coder"}, 1002)
    assert (card.doing, card.text) == (Doing.ACTIVE, "Processing…")
    seen.see("agent:progress", {"agentId": "coder", "text": "reading the code"}, 1003)
    assert card.text == "reading the code"
    seen.see("message:incoming", {"agent": "coder", "sender": "Ann", "message": "and that"}, 1003)
    assert card.doing is Doing.ACTIVE, "who works goes on working"
    seen.see("agent:response", {"agentId": "coder", "content": "x" * 1234}, 1004)
    assert (card.doing, card.text) == (Doing.DONE, "Done (1,234 chars)")
    seen.see("message:done", {"agentId": "coder"}, 1004)
    assert seen.processed == 1
    seen.pass_time(1004 + REST_S - 0.1)
    assert card.doing is Doing.DONE
    seen.pass_time(1004 + REST_S)
    assert card.doing is Doing.IDLE


def test_hand_offs_failures_and_counts_show() -> None:
    seen = floor("dev")
    assert list(seen.cards) == ["lead", "coder"]
    seen.see("agent:mention", {"fromAgent": "lead", "toAgent": "coder"}, 1001)
    seen.see("agent:mention", {"fromAgent": "writer", "toAgent": "ghost"}, 1001)
    assert list(seen.flow) == [("lead", "coder")]
    assert seen.cards["coder"].doing is Doing.WAITING
    assert not seen.count(counts(3))
    assert seen.count(counts(4))
    seen.failed("coder", "no key", 1002)
    text = drawn(seen, 1061)
    for told in (
        "Dev (#dev)",
        "up 1 min",
        "★",
        "✗ @coder",
        "no key",
        "@lead → @coder",
        "4 in the queue",
        "4 dead",
    ):
        assert told in text, told


def test_of_all_teams_there_is_a_legend_and_of_none_a_frame_too() -> None:
    assert "#press Press" in drawn(floor())
    text = drawn(Floor.of({}, {}, None, 0), live=False)
    assert "does not run" in text
    assert "q quits" not in text


def test_what_is_not_known_is_passed_over_and_the_list_is_bounded() -> None:
    seen = floor()
    for number in range(200):
        seen.see("agent:invoke", {"agentId": "coder"}, number)
    for kind, data in (
        ("x:y", {}),
        ("agent:invoke", {}),
        ("message:incoming", {"agent": None}),
        ("_note", {}),
    ):
        seen.see(kind, data, 1)
    assert len(seen.activity) == KEPT


def test_a_text_cannot_draw_on_the_terminal() -> None:
    seen = floor()
    evil = "\x1b[2Jgone\u202e[bold]x[/bold]\n\n\nnext"
    seen.see("message:incoming", {"agent": "coder", "sender": evil, "message": evil}, 1)
    seen.see("agent:progress", {"agentId": "coder", "text": evil}, 1)
    text = drawn(seen)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]x[/bold]" in text
    assert "\x1b" not in tell_post(RoomEntry(1, "dev", evil, evil, 0))
