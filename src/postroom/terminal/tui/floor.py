"""The office floor as one sees it from a gallery: who works, who waits, who handed what to whom."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postroom.office.agents.views import AgentView, TeamView
    from postroom.services.workload import WorkloadCounts

REST_S = 3.0
KEPT = 50
ARROWS = 6
SHORT = 100


class Doing(StrEnum):
    IDLE = "○"
    ACTIVE = "●"
    DONE = "✓"
    ERROR = "✗"
    WAITING = "◔"


@dataclass
class Card:
    agent: str
    name: str
    works_with: str
    teams: tuple[str, ...] = ()
    leads: bool = False
    doing: Doing = Doing.IDLE
    text: str = ""
    rests_at: float | None = None

    def become(self, doing: Doing, text: str, rests_at: float | None = None) -> None:
        self.doing, self.text, self.rests_at = doing, text, rests_at


@dataclass
class Floor:
    """`see` takes what the event stream says, `count` what the queue says; `pass_time` lets cards rest."""

    title: str
    cards: dict[str, Card]
    teams: dict[str, str]
    opened_at: float
    flow: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=ARROWS))
    activity: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=KEPT))
    online: bool = False
    waiting: int = 0
    processed: int = 0
    dead: int | None = None

    @classmethod
    def of(
        cls,
        agents: "Mapping[str, AgentView]",
        teams: "Mapping[str, TeamView]",
        team: str | None,
        now: float,
    ) -> "Floor":
        shown = {team: teams[team]} if team else dict(teams)
        members = {name for one in shown.values() for name in one.agents} if team else set(agents)
        leaders = {one.leader_agent for one in shown.values()}
        cards = {
            name: Card(
                agent=name,
                name=one.name or name,
                works_with="/".join(part for part in (one.provider, one.model) if part),
                teams=tuple(each for each, found in shown.items() if name in found.agents),
                leads=name in leaders,
            )
            for name, one in agents.items()
            if name in members
        }
        title = f"{teams[team].name or team} (#{team})" if team else "all teams"
        return cls(
            title=title,
            cards=cards,
            teams={each: one.name or each for each, one in shown.items()},
            opened_at=now,
        )

    def see(self, kind: str, data: Mapping[str, Any], now: float) -> None:
        teller = getattr(self, f"_{kind.replace(':', '_')}", None)
        if teller is not None:
            teller(data, now)

    def count(self, found: "WorkloadCounts") -> bool:
        """Whether there are more dead letters than before."""
        self.online = True
        self.waiting = found.incoming + found.queued + found.processing
        before, self.dead = self.dead, found.dead
        return before is not None and self.dead > before

    def failed(self, agent: str, reason: str, now: float) -> None:
        if card := self.cards.get(agent):
            card.become(Doing.ERROR, _short(reason) or "failed", now + 4 * REST_S)
            self._note(now, f"@{agent} failed: {_short(reason)}")

    def pass_time(self, now: float) -> None:
        for card in self.cards.values():
            if card.rests_at is not None and now >= card.rests_at:
                card.become(Doing.IDLE, card.text)

    def _message_incoming(self, data: Mapping[str, Any], now: float) -> None:
        agent = data.get("agent") or ""
        if agent in self.cards:
            card = self.cards[agent]
            if card.doing is not Doing.ACTIVE:
                card.become(Doing.WAITING, "has mail")
            self._note(now, f"{data.get('sender')} → @{agent}: {_short(data.get('message'))}")

    def _agent_invoke(self, data: Mapping[str, Any], now: float) -> None:
        if card := self.cards.get(data.get("agentId") or ""):
            card.become(Doing.ACTIVE, "Processing…")
            self._note(now, f"@{card.agent} begins")

    def _agent_progress(self, data: Mapping[str, Any], now: float) -> None:
        if card := self.cards.get(data.get("agentId") or ""):
            card.become(Doing.ACTIVE, _short(data.get("text")))

    def _agent_response(self, data: Mapping[str, Any], now: float) -> None:
        if card := self.cards.get(data.get("agentId") or ""):
            text = f"Done ({len(str(data.get('content') or '')):,} chars)"
            card.become(Doing.DONE, text, now + REST_S)
            self._note(now, f"@{card.agent}: {_short(data.get('content'))}")

    def _agent_mention(self, data: Mapping[str, Any], now: float) -> None:
        giver, taker = data.get("fromAgent") or "", data.get("toAgent") or ""
        if giver not in self.cards and taker not in self.cards:
            return
        self.flow.append((giver, taker))
        self._note(now, f"@{giver} → @{taker}")
        if (card := self.cards.get(taker)) and card.doing is not Doing.ACTIVE:
            card.become(Doing.WAITING, f"has mail from @{giver}")

    def _message_done(self, data: Mapping[str, Any], now: float) -> None:
        if not data.get("agentId") or data.get("agentId") in self.cards:
            self.processed += 1

    def _note(self, now: float, text: str) -> None:
        self.activity.append((now, text))


def _short(text: object) -> str:
    line = " ".join(str(text or "").split())
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"
