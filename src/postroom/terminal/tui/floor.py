"""The office floor as one sees it from a gallery: who works, who waits, who handed what to whom."""

import time
from collections import deque
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from postroom.office.agents.views import AgentView, TeamView
    from postroom.services.callers import Caller
    from postroom.services.office import OfficeServices
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


class Activity(NamedTuple):
    """One thing that happened: `number` is that of its event, `agent` whose work it is, `message` the name by
    which clients know the message, `whole` what was said, uncut."""

    moment: float
    text: str
    agent: str = ""
    number: str = ""
    channel: str = ""
    message: str = ""
    whole: str = ""


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
    activity: deque[Activity] = field(default_factory=lambda: deque(maxlen=KEPT))
    online: bool = False
    waiting: int = 0
    processed: int = 0
    dead: int | None = None
    _heard: tuple[str, Mapping[str, Any]] = ("", MappingProxyType({}))

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

    @classmethod
    async def read(cls, office: "OfficeServices", caller: "Caller", team: str | None) -> "Floor":
        """As it is now: who works, and how much waits."""
        agents, teams = await office.agents.list_all(caller), await office.teams.list_all(caller)
        if team is not None:
            team = (await office.teams.get(caller, team)).id
        floor = cls.of(agents, teams, team, time.time())
        floor.count(await office.workload.counts(caller))
        for work in await office.workload.in_hand(caller):
            floor.see("agent:invoke", {"agentId": work.agent}, time.time())
        floor.activity.clear()
        return floor

    def see(self, kind: str, data: Mapping[str, Any], now: float, number: str = "") -> None:
        teller = getattr(self, f"_{kind.replace(':', '_')}", None)
        if teller is not None:
            self._heard = (number, data)
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
            self._heard = ("", {"message": reason})
            self._note(now, f"@{agent} failed: {_short(reason)}", agent)

    def settle(self, working: Container[str]) -> None:
        """What the queue says of who works holds, where no event told of an end or a beginning."""
        for name, card in self.cards.items():
            if name in working and card.doing in (Doing.IDLE, Doing.WAITING):
                card.become(Doing.ACTIVE, card.text)
            elif name not in working and card.doing is Doing.ACTIVE:
                card.become(Doing.IDLE, "")

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
            self._note(now, f"{data.get('sender')} → @{agent}: {_short(data.get('message'))}", agent)

    def _agent_invoke(self, data: Mapping[str, Any], now: float) -> None:
        if card := self.cards.get(data.get("agentId") or ""):
            card.become(Doing.ACTIVE, "Processing…")
            self._note(now, f"@{card.agent} begins", card.agent)

    def _agent_progress(self, data: Mapping[str, Any], now: float) -> None:
        if card := self.cards.get(data.get("agentId") or ""):
            card.become(Doing.ACTIVE, _short(data.get("text")))

    def _agent_response(self, data: Mapping[str, Any], now: float) -> None:
        if card := self.cards.get(data.get("agentId") or ""):
            text = f"Done ({len(str(data.get('content') or '')):,} chars)"
            card.become(Doing.DONE, text, now + REST_S)
            self._note(now, f"@{card.agent}: {_short(data.get('content'))}", card.agent)

    def _agent_mention(self, data: Mapping[str, Any], now: float) -> None:
        giver, taker = data.get("fromAgent") or "", data.get("toAgent") or ""
        if giver not in self.cards and taker not in self.cards:
            return
        self.flow.append((giver, taker))
        self._note(now, f"@{giver} → @{taker}", taker)
        if (card := self.cards.get(taker)) and card.doing is not Doing.ACTIVE:
            card.become(Doing.WAITING, f"has mail from @{giver}")

    def _message_done(self, data: Mapping[str, Any], now: float) -> None:
        if not data.get("agentId") or data.get("agentId") in self.cards:
            self.processed += 1

    def _note(self, now: float, text: str, agent: str) -> None:
        number, data = self._heard
        self.activity.append(
            Activity(
                moment=now,
                text=text,
                agent=agent,
                number=number,
                channel=str(data.get("channel") or ""),
                message=str(data.get("messageId") or ""),
                whole=str(data.get("content") or data.get("message") or text),
            )
        )


def _short(text: object) -> str:
    line = " ".join(str(text or "").split())
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"
