"""A conversation as a screen sees it: with an agent, a team, or in a team's room; the same verbs for all."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from postroom.clock import iso
from postroom.services.callers import Caller
from postroom.terminal.cli.output import clean

if TYPE_CHECKING:
    from postroom.services.chats import ChatLine
    from postroom.services.rooms import RoomEntry
    from postroom.services.server import ServerServices

PAGE = 40


class ConversationLine(msgspec.Struct, frozen=True):
    """`number` orders entries, and is what earlier ones are asked for by; `note` is how far it has come."""

    number: int
    author: str
    text: str
    is_own: bool
    created_at: int
    note: str = ""


class TurnWords(msgspec.Struct, frozen=True):
    number: int
    agent: str
    text: str


class Conversation(Protocol):
    @property
    def title(self) -> str: ...

    async def read(self, before: int = 0) -> list[ConversationLine]:
        """The newest, or those before a number; the oldest first."""
        ...

    async def working(self) -> list[TurnWords]: ...

    async def send(self, text: str, files: tuple[str, ...] = ()) -> str:
        """What there is to say to it at once, if anything."""
        ...

    async def stop(self, number: int) -> None: ...

    async def retry(self, number: int) -> None:
        """Of a message that nobody could answer."""
        ...


class AgentConversation:
    def __init__(self, services: "ServerServices", caller: Caller, agent: str, person: str) -> None:
        self._services = services
        self._caller = caller
        self._addressee = agent
        self._person = person
        self.title = f"@{agent}"

    async def read(self, before: int = 0) -> list[ConversationLine]:
        found = await self._services.chats.read(self._caller, self._addressee, limit=PAGE, before=before)
        return [_to_line(each) for each in found]

    async def working(self) -> list[TurnWords]:
        found = await self._services.chats.working(self._caller, self._addressee)
        return [TurnWords(each.number, each.agent, each.text) for each in found]

    async def send(self, text: str, files: tuple[str, ...] = ()) -> str:
        from postroom.services.conversations import Draft

        draft = Draft(text=text, channel="cli", sender=self._person, agent=self._addressee, files=files)
        return (await self._services.conversations.send(self._caller, draft)).notice or ""

    async def stop(self, number: int) -> None:
        await self._services.workload.kill(self._caller, number)

    async def retry(self, number: int) -> None:
        await self._services.workload.retry_dead(self._caller, number)


class TeamConversation(AgentConversation):
    """The leader gets what is written; whoever of the team answers is shown."""

    def __init__(
        self, services: "ServerServices", caller: Caller, team: str, members: tuple[str, ...], person: str
    ) -> None:
        super().__init__(services, caller, team, person)
        self._members = members

    async def read(self, before: int = 0) -> list[ConversationLine]:
        found = await self._services.chats.read_team(self._caller, self._addressee, before=before)
        return [_to_line(each) for each in found]

    async def working(self) -> list[TurnWords]:
        return await _working_among(self._services, self._caller, self._members)


class RoomConversation:
    def __init__(
        self, services: "ServerServices", caller: Caller, team: str, members: tuple[str, ...]
    ) -> None:
        self._services = services
        self._caller = caller
        self._team = team
        self._members = members
        self.title = f"#{team}"

    async def read(self, before: int = 0) -> list[ConversationLine]:
        found = await self._services.rooms.read(self._caller, self._team, limit=PAGE, before=before)
        return [
            ConversationLine(
                each.number,
                "you" if each.author == "user" else f"@{each.author}",
                each.text,
                each.author == "user",
                each.created_at * 1000,
            )
            for each in reversed(found)
        ]

    async def working(self) -> list[TurnWords]:
        return await _working_among(self._services, self._caller, self._members)

    async def send(self, text: str, files: tuple[str, ...] = ()) -> str:
        await self._services.rooms.write(self._caller, self._team, text)
        return "files are not posted to rooms" if files else ""

    async def stop(self, number: int) -> None:
        await self._services.workload.kill(self._caller, number)

    async def retry(self, number: int) -> None:
        await self._services.workload.retry_dead(self._caller, number)


def _to_line(said: "ChatLine") -> ConversationLine:
    return ConversationLine(
        said.number,
        f"@{said.author}" if said.is_agent else said.author,
        "\n".join((said.text, *(f"[file] {file}" for file in said.files))),
        not said.is_agent,
        said.created_at,
        _note(said.state, said.reason),
    )


async def _working_among(
    services: "ServerServices", caller: Caller, members: tuple[str, ...]
) -> list[TurnWords]:
    found = await services.chats.working(caller)
    return [TurnWords(each.number, each.agent, each.text) for each in found if each.agent in members]


def _note(state: str, reason: str) -> str:
    if state == "dead":
        return f"✗ {reason}".strip()
    return {"pending": "… waits", "delayed": "… waits", "claimed": "● is worked on"}.get(state, "")


def tell_post(post: "RoomEntry") -> str:
    who = "you" if post.author == "user" else f"@{post.author}"
    time = datetime.fromtimestamp(post.created_at / 1000, UTC).astimezone().strftime("%H:%M")
    return f"[{time}] {clean(who)}: {clean(post.text, lines=True)}"


def tell_entry(entry: ConversationLine) -> str:
    """One entry as plain text, without what would command a terminal."""
    note = f"  ({entry.note})" if entry.note else ""
    return clean(f"[{iso(entry.created_at)[11:16]}] {entry.author}: {entry.text}{note}", lines=True)
