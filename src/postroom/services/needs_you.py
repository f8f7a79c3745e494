"""What waits for a person: one list for every entrance, blocking things apart from news.

It only finds; each thing is answered by the service it belongs to, so an answer is the same everywhere.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from postroom.kernel.model import Message
from postroom.office import queues
from postroom.providers.protocol import ErrorKind
from postroom.services.callers import Caller
from postroom.services.office_context import require_viewer
from postroom.services.reviews import Review
from postroom.services.unconfirmed_replies import UnconfirmedReply
from postroom.services.use_cases import UseCases

if TYPE_CHECKING:
    from postroom.services.server import ServerServices

MOST_DEAD = 200
OWNER_ACTS = frozenset({ErrorKind.AUTH, ErrorKind.NOT_INSTALLED})


class NeedKind(StrEnum):
    PAUSE = "pause"
    CREDENTIAL = "credential"
    REVIEW = "review"
    BUDGET = "budget"
    CONVERSATION = "conversation"
    SENDER = "sender"
    CHANNEL = "channel"
    HOST = "host"
    DELIVERY = "delivery"
    UNCONFIRMED = "unconfirmed"
    DEAD = "dead"


BLOCKING = frozenset(NeedKind) - {NeedKind.DELIVERY, NeedKind.UNCONFIRMED, NeedKind.DEAD}


class PersonNeed(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is what the service of this kind knows it by; of several alike, `ids` are all of them."""

    kind: NeedKind
    id: str
    title: str
    detail: str = ""
    since: int = 0
    due_at: int | None = None
    agent: str = ""
    conversation: str = ""
    ids: tuple[str, ...] = ()
    review: Review | None = None

    @property
    def is_blocking(self) -> bool:
        return self.kind in BLOCKING


class NeedsYou(UseCases):
    def __init__(self, services: "ServerServices") -> None:
        self._services = services

    async def list_all(self, caller: Caller) -> list[PersonNeed]:
        """Blocking first, of these and of the news the oldest first."""
        require_viewer(caller)
        dead = await self._dead(caller)
        found = [
            *await self._reviews(caller),
            *await self._guards(caller),
            *(await self._senders(caller) if caller.is_owner else ()),
            *(await self._channels(caller) if caller.is_owner else ()),
            *(await self._hosts(caller) if caller.is_owner else ()),
            *(await self._unconfirmed(caller) if caller.is_owner else ()),
            *_credentials(dead),
            *_dead_groups(dead),
        ]
        return sorted(found, key=lambda need: (not need.is_blocking, need.since, need.id))

    async def count(self, caller: Caller) -> int:
        """How many things block somebody."""
        return sum(need.is_blocking for need in await self.list_all(caller))

    async def _reviews(self, caller: Caller) -> list[PersonNeed]:
        return [
            PersonNeed(
                kind=NeedKind.REVIEW,
                id=each.found.message.id,
                title=each.spec.get("title") or "A decision is asked for",
                detail=_context(each.spec),
                since=each.found.message.created_at,
                due_at=each.due_at,
                agent=each.found.message.source_id or "" if each.found.message.source_type == "agent" else "",
                conversation=each.found.message.correlation_id or "",
                review=each,
            )
            for each in await self._open_reviews(caller)
        ]

    async def _open_reviews(self, caller: Caller) -> list[Review]:
        if caller.is_owner:
            return await self._services.reviews.list_everywhere(caller)
        scopes = await self._services.scopes.list_all(caller)
        return [
            each for scope in scopes for each in await self._services.reviews.list_open(caller, scope.slug)
        ]

    async def _guards(self, caller: Caller) -> list[PersonNeed]:
        overview = await self._services.budgets.overview(caller)
        found = [
            PersonNeed(
                kind=NeedKind.CONVERSATION,
                id=each.conversation,
                title=f"A conversation is paused: {each.guard.replace('_', ' ')}",
                detail=f"{_money(each.spent)} spent"
                + (f", with {each.person} on {each.channel}" if each.person else ""),
                since=each.since,
                agent=each.agent,
                conversation=each.conversation,
            )
            for each in overview.conversations
        ]
        found += [
            PersonNeed(
                kind=NeedKind.BUDGET,
                id=each.account,
                title=f"The budget {each.account} is used up",
                detail=f"{_money(each.spent)} of {_money(each.limit or 0)} spent today; messages wait for it",
            )
            for each in overview.budgets
            if each.frozen
        ]
        if overview.paused:
            found.append(
                PersonNeed(
                    kind=NeedKind.PAUSE,
                    id="office",
                    title="Everybody is paused",
                    detail="Messages are accepted, and no agent begins a turn.",
                )
            )
        return found

    async def _senders(self, caller: Caller) -> list[PersonNeed]:
        return [
            PersonNeed(
                kind=NeedKind.SENDER,
                id=each.code,
                title=f"{each.sender or each.sender_id} wants to write on {each.channel}",
                detail=f"Code {each.code}",
                since=each.created_at,
            )
            for each in (await self._services.pairing.list_all(caller)).pending
        ]

    async def _channels(self, caller: Caller) -> list[PersonNeed]:
        channels = (await self._services.system.status(caller)).channels
        return [
            PersonNeed(
                kind=NeedKind.CHANNEL,
                id=name,
                title=f"{name} does not receive messages",
                detail=str(status["problem"]),
            )
            for name, status in channels.items()
            if status.get("problem")
        ]

    async def _hosts(self, caller: Caller) -> list[PersonNeed]:
        """Agents that are written to, and whose host is not there."""
        gone = {
            agent: host
            for agent, host in (await self._services.agents.list_hosts(caller)).items()
            if host.is_gone
        }
        if not gone:
            return []
        load = {each.agent: each for each in await self._services.workload.by_agent(caller)}
        waiting = {agent: load[agent].pending + load[agent].queued for agent in gone if agent in load}
        return [
            PersonNeed(
                kind=NeedKind.HOST,
                id=agent,
                title=f"@{agent} cannot work: the host {gone[agent].host} is not there",
                detail=f"{count} of its messages {'wait' if count > 1 else 'waits'}. {gone[agent].explain()}",
                agent=agent,
            )
            for agent, count in waiting.items()
            if count
        ]

    async def _unconfirmed(self, caller: Caller) -> list[PersonNeed]:
        """One for each channel. What was abandoned is among the dead letters."""
        by_channel: dict[str, list[UnconfirmedReply]] = {}
        for reply in await self._services.unconfirmed.list_all(caller):
            if reply.state == "ambiguous":
                by_channel.setdefault(reply.channel, []).append(reply)
        what = ("answers", "answer")
        return [
            PersonNeed(
                kind=NeedKind.UNCONFIRMED,
                id=found[0].id,
                title=f"{len(found)} {what[len(found) == 1]} may not have arrived on {name}",
                detail=f"{found[0].reason} “{found[0].text}”",
                since=found[0].since,
                ids=tuple(reply.id for reply in found),
            )
            for name, found in by_channel.items()
        ]

    async def _dead(self, caller: Caller) -> list[Message]:
        """The newest of all scopes that they may look into."""
        scopes: list[str | None] = [None]
        if not caller.is_owner:
            scopes = [each.slug for each in await self._services.scopes.list_all(caller)]
        found: list[Message] = []
        for scope in scopes:
            page = await self._services.messages.list_page(
                caller, scope=scope, states=("dead",), newest_first=True, limit=MOST_DEAD
            )
            found += [item.message for item in page.items]
        return found


def _credentials(dead: Iterable[Message]) -> list[PersonNeed]:
    """One for each agent that cannot work until its owner has done something."""
    by_agent: dict[str, list[Message]] = {}
    for message in dead:
        if message.failure_kind in OWNER_ACTS:
            by_agent.setdefault(message.agent or "", []).append(message)
    return [
        PersonNeed(
            kind=NeedKind.CREDENTIAL,
            id=agent,
            title=f"@{agent} cannot work: its provider refuses it or is missing",
            detail=found[0].failure_reason or "",
            since=min(message.updated_at for message in found),
            agent=agent,
            ids=tuple(message.id for message in found),
        )
        for agent, found in by_agent.items()
    ]


def _dead_groups(dead: Iterable[Message]) -> list[PersonNeed]:
    """Those of one queue that died of the same are one thing to decide."""
    alike: dict[tuple[str, str], list[Message]] = {}
    for message in dead:
        if message.failure_kind not in OWNER_ACTS:
            origin = message.origin_queue or message.queue
            alike.setdefault((f"{message.scope}/{origin}", message.failure_kind or ""), []).append(message)
    found: list[PersonNeed] = []
    for (queue, _), messages in alike.items():
        undelivered = queues.is_outbox(queue.partition("/")[2])
        count = len(messages)
        what = ("answer was", "answers were") if undelivered else ("message", "messages")
        verb = "not delivered" if undelivered else "died in"
        place = queue.rpartition("/")[2] if undelivered else queue
        found.append(
            PersonNeed(
                kind=NeedKind.DELIVERY if undelivered else NeedKind.DEAD,
                id=messages[0].id,
                title=f"{count} {what[count > 1]} {verb}{' on' if undelivered else ''} {place}",
                detail=messages[0].failure_reason or "",
                since=min(message.updated_at for message in messages),
                agent=messages[0].agent or "",
                conversation=messages[0].correlation_id or "",
                ids=tuple(message.id for message in messages),
            )
        )
    return found


def _context(spec: dict[str, Any]) -> str:
    return "\n\n".join(
        str(part.get("content", "")) for part in spec.get("sections", ()) if part.get("type") == "context"
    )


def _money(micros: int) -> str:
    return f"${micros / 1_000_000:,.2f}"
