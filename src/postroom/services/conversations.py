"""What people and agents write: it is sent, followed until it is answered, and its answers are delivered."""

import asyncio
import contextlib
import random
import secrets
import string
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from postroom.errors import (
    BodyTooLarge,
    IdempotencyConflict,
    InvalidField,
    MessageNotFound,
    NotFound,
    ScopeNotFound,
)
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.kernel.states import OPEN, State
from postroom.office import message_rows, queues, traces
from postroom.office.events.derive import client_id
from postroom.office.files import FileRefused
from postroom.office.guards import budgets
from postroom.office.intake.intake import Incoming
from postroom.office.lanes.batches import text_of
from postroom.office.message_rows import NumberedMessage
from postroom.office.traces import ConversationTrace
from postroom.office.turns import outcomes
from postroom.services.callers import Caller, CallerKind
from postroom.services.errors import AccessRefused
from postroom.services.office_context import (
    OfficeContext,
    OfficeControl,
    OfficeService,
    require_member,
    require_owner,
    require_owner_or_agent,
    require_viewer,
)

if TYPE_CHECKING:
    from postroom.runtime import Room

MOST = 1000
SEARCHED = 1000
TOOLS = "mcp"
PEEKED = 1000
DAILY_BUDGETS = ("day/", "agent/", "team/")
ALPHABET = string.digits + string.ascii_lowercase
# Nobody has to guess these ids in vain, and asking the system each time lets other threads go first.
_CHANCE = random.Random(secrets.randbits(256))


class DuplicateMessage(IdempotencyConflict):
    """duplicate messageId: "{message_id}" came before. Nothing was sent."""


class TurnOver(AccessRefused):
    """@{agent} may do this during a turn only, and the turn of this token is over."""

    code = "TURN_OVER"


class NotTeammates(AccessRefused):
    """@{agent} may write to members of its teams only, and @{to} is in none of them."""

    code = "NOT_TEAMMATES"


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody writes. `message_id` is the platform's own, and is never taken twice; `agent` stands
    for an @ in the text."""

    text: str
    channel: str = "api"
    sender: str = "API"
    sender_id: str | None = None
    agent: str | None = None
    message_id: str | None = None
    files: tuple[str, ...] = ()
    """Paths in the room's folder of files."""
    steers: bool = False
    """It goes into a turn for the same person that goes on now; or that begins again, with this besides."""


class SentMessage(msgspec.Struct, frozen=True):
    """`notice` is what there is to say to it at once; then `queued` tells whether an agent gets it too."""

    message_id: str
    notice: str | None = None
    queued: bool = True


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent to a person without having been asked for."""

    channel: str
    sender: str
    text: str
    sender_id: str | None = None
    agent: str | None = None
    files: tuple[str, ...] = ()


class ConversationStep(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's part of a conversation. `problem` is why it was not done the last time it was tried."""

    message_id: str
    agent: str
    from_agent: str | None
    state: State
    attempts: int
    problem: str | None


class ConversationStatus(msgspec.Struct, frozen=True):
    """`agents` still work on it. `paused` is the guard that only a person can let it pass; `failures` are the
    reasons of what died."""

    message_id: str
    agents: tuple[str, ...]
    paused: str | None
    replies: tuple[NumberedMessage, ...]
    failures: tuple[str, ...]
    steps: tuple[ConversationStep, ...] = ()

    @property
    def open(self) -> bool:
        return bool(self.agents)


def short_id(prefix: str) -> str:
    """`api_` and the like with eight characters of chance, as clients know them."""
    chance = _CHANCE.getrandbits(64)
    return f"{prefix}_{''.join(ALPHABET[(chance >> shift) % 36] for shift in range(0, 64, 8))}"


def check_size(text: str, limit: int, what: str = "message") -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise BodyTooLarge(what=what, size=size, limit=limit)


class ConversationService(OfficeService):
    def __init__(self, context: OfficeContext) -> None:
        super().__init__(context)
        self._delivering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def send(self, caller: Caller, draft: Draft, *, repeat_ok: bool = False) -> SentMessage:
        """When this returns, the message is safe. With `repeat_ok`, the same words under the same id again
        are no error, and are not sent again."""
        require_member(caller)
        if not caller.is_owner:  # in nobody else's name
            draft = msgspec.structs.replace(draft, channel="web", sender=caller.name, sender_id=caller.author)
        control = await self._context.control()
        check_size(draft.text, control.settings.limits.message_bytes)
        message_id = draft.message_id or short_id("api")
        incoming = Incoming(
            channel=draft.channel,
            sender=draft.sender,
            sender_id=draft.sender_id,
            text=draft.text,
            platform_id=message_id,
            fresh=draft.message_id is None,
            agent=draft.agent,
            files=await self._check_files(draft.files, control),
        )
        try:
            taken = await control.office.take_in(incoming)
        except IdempotencyConflict:
            raise DuplicateMessage(message_id=message_id) from None
        # What was kept of the first one is without its @ at the beginning.
        is_same = all(draft.text.strip().endswith(letter.text.strip()) for letter in taken.routed.messages)
        if taken.repeated and not (repeat_ok and is_same):
            raise DuplicateMessage(message_id=message_id)
        if draft.steers and taken.receipts and not taken.repeated:
            control.office.steer(draft.channel, draft.sender_id or "")
        return SentMessage(message_id, taken.notice, bool(taken.receipts))

    async def _check_files(self, paths: tuple[str, ...], control: OfficeControl) -> tuple[str, ...]:
        """Files that came in before, as messages name them; one that may not be read refuses all."""
        limits = control.settings.limits
        if len(paths) > limits.files_per_message:
            raise InvalidField("files", f"has {len(paths)}, at most {limits.files_per_message} at once")
        files = control.office.files

        def check() -> tuple[str, ...]:
            return tuple(files.admit(path, max_bytes=limits.file_bytes) for path in paths)

        return await asyncio.to_thread(check) if paths else ()

    async def status(self, caller: Caller, message_id: str, channel: str = "api") -> ConversationStatus:
        """The conversation that a message began. What was answered together with another message of the same
        person has that one's replies."""
        require_viewer(caller)
        room = await self._context.room()
        talks = [f"{channel}:{message_id}"]
        found: list[NumberedMessage] = []
        for talk in talks:
            part = await room.numbered(scope=queues.SCOPE, correlation_id=talk, limit=MOST, deliveries=True)
            found += [NumberedMessage(number, message) for number, message in part]
            others = [await _answered_in(room, message) for _, message in part]
            talks += dict.fromkeys(other for other in others if other and other not in talks)
        if not found:
            raise MessageNotFound(message_id=message_id)
        replies = tuple(each for each in found if queues.is_outbox(each.message.queue))
        others = [each.message for each in found if not queues.is_outbox(each.message.queue)]
        working = [each for each in others if each.state in OPEN and each.subscription is None]
        return ConversationStatus(
            message_id,
            tuple(message.agent or "" for message in working),
            await _paused_by(room, talks, [each for each in others if each.state in OPEN]),
            replies,
            tuple(each.failure_reason or "" for each in others if each.state is State.DEAD),
            tuple(_step(each) for each in others if each.subscription is None),
        )

    async def check_addressee(self, caller: Caller, name: str) -> bool:
        """Whether there is an agent or a team of this id or name."""
        require_viewer(caller)
        control = await self._context.control()
        return control.office.directory.find(name.removeprefix("@")) is not None

    async def write_to(self, caller: Caller, to: str, text: str) -> str:
        """A message to an agent or a team by name; the id it is known by. An agent writes to its teammates,
        as part of the conversation its turn is about, so that guards hold for tools as they do for tags."""
        require_owner_or_agent(caller)
        control, room = await self._context.control(), await self._context.room()
        found = control.office.directory.find(to.removeprefix("@"))
        if found is None:
            raise InvalidField("to", f'there is no agent or team "{to}"')
        if not text.strip():
            raise InvalidField("text", "is empty")
        check_size(text, control.settings.limits.message_bytes)
        if caller.kind is CallerKind.AGENT:
            cause = await message_in_turn(room, caller)
            team = control.office.directory.common_team(caller.name, found.agent, found.team)
            if team is None or found.agent == caller.name:
                raise NotTeammates(agent=caller.name, to=to)
            note = await asyncio.to_thread(control.office.files.refer, text)
            [receipt] = await room.run(outcomes.handed(cause, caller.name, found.agent, note, team, TOOLS))
            return receipt.id
        message_id = short_id(TOOLS)
        incoming = Incoming(
            channel=TOOLS,
            sender=caller.name,
            sender_id=caller.name,
            text=text,
            platform_id=message_id,
            fresh=True,
            agent=found.team or found.agent,
        )
        await control.office.take_in(incoming)
        return message_id

    async def read_inbox(self, caller: Caller, limit: int = 20) -> list[dict[str, Any]]:
        """Answers to what this caller has written with tools: to an agent the newest, to others each once."""
        require_owner_or_agent(caller)
        room = await self._context.room()
        if caller.kind is CallerKind.AGENT:
            return await _answers_to(room, caller.name, limit)
        await room.run(queues.open_outbox(TOOLS))
        claimed = await room.claim(queues.outbox(TOOLS), limit=200, worker=caller.name)
        mine = [message for message in claimed if message.sender_id == caller.name][:limit]
        async with room.unit() as unit:
            for message in claimed:
                if message in mine:
                    unit.complete(message, {"read by": caller.name})
                else:
                    unit.release(message)
        return [
            {
                "from": message.agent,
                "text": text_of(message),
                "messageId": message_rows.message_id_of(message),
                "messageIds": [
                    message_rows.message_id_of(message),
                    *message_rows.answered_with(message),
                ],
            }
            for message in mine
        ]

    # what goes out

    async def responses(self, caller: Caller, limit: int = 20) -> list[NumberedMessage]:
        """The newest answers of all channels, delivered or not."""
        require_viewer(caller)
        room = await self._context.room()
        found: list[NumberedMessage] = []
        for slug in await room.scope_counts(queues.SCOPE):
            if queues.is_outbox(slug):
                found += await message_rows.newest(room, limit, queue=f"{queues.SCOPE}/{slug}")
        found.sort(key=lambda each: each.number, reverse=True)
        return found[:limit]

    async def pending_responses(
        self, caller: Caller, channel: str, limit: int = MOST
    ) -> list[NumberedMessage]:
        """Undelivered answers of one channel, oldest first."""
        require_owner(caller)
        room = await self._context.room()
        outbox = queues.outbox(channel)
        try:
            known = await room.scope_counts(queues.SCOPE)
        except ScopeNotFound:
            return []
        if outbox.removeprefix(f"{queues.SCOPE}/") not in known:
            return []
        found = await room.numbered(queue=outbox, state=list(OPEN), limit=limit)
        return [NumberedMessage(number, message) for number, message in found]

    async def respond(self, caller: Caller, said: Outgoing) -> str:
        """Send a person something nobody asked for; the id it is known by."""
        require_owner(caller)
        control, room = await self._context.control(), await self._context.room()
        check_size(said.text, control.settings.limits.message_bytes)
        message_id = short_id("proactive")
        message = NewMessage(
            body={"text": said.text, "original": ""},
            message_type="office.proactive",
            channel=said.channel,
            sender=said.sender,
            sender_id=said.sender_id,
            agent=said.agent,
            files=await self._keep_files(said.files, control) or None,
            correlation_id=f"{said.channel}:{message_id}",
            source_type="agent" if said.agent else "user",
            source_id=said.agent or said.sender,
        )
        publish = c.Publish(queue=queues.outbox(said.channel), messages=[message], actor=room.actor)
        unit = (queues.open_outbox(said.channel), publish)
        await room.run(c.Unit(commands=unit, actor=room.actor))
        return message_id

    async def _keep_files(self, paths: tuple[str, ...], control: OfficeControl) -> list[str]:
        """As every host can send them. What may not be sent is told when it should be."""
        files = control.office.files

        def keep(path: str) -> str:
            try:
                return files.admit(path, max_bytes=control.settings.limits.file_bytes)
            except FileRefused:
                return path

        return (
            [await asyncio.to_thread(keep, path) for path in paths]
            if control.settings.files.url
            else list(paths)
        )

    async def acknowledge(self, caller: Caller, numbers: Sequence[int]) -> None:
        """They are delivered. One that is not known, or was acknowledged before, is no error."""
        require_owner(caller)
        room = await self._context.room()
        for number in numbers:
            message = await message_rows.by_number(room, number)
            if message is not None and queues.is_outbox(message.queue):
                async with self._delivering[message.path]:
                    await _deliver(room, message)

    async def history(
        self, caller: Caller, agent: str | None = None, *, limit: int = 100, since: int = 0
    ) -> list[dict[str, Any]]:
        """What was said to and by an agent, or all of them, the newest first."""
        require_viewer(caller)
        return await message_rows.history(await self._context.room(), agent, limit, since)

    async def trace(self, caller: Caller, conversation: str, *, whole: bool = False) -> ConversationTrace:
        """A conversation as a tree of what caused what, by its id or that of one of its messages. Texts are
        excerpts, unless they are wanted whole."""
        require_viewer(caller)
        room = await self._context.room()
        chars = None if whole else traces.TEXT_CHARS
        found = await traces.trace(room, conversation, text_chars=chars)
        if not found.messages:
            with contextlib.suppress(NotFound):
                message = await room.get(conversation)
                talk = message.correlation_id or message.id
                found = await traces.trace(room, talk, text_chars=chars)
        if not found.messages:
            raise MessageNotFound(message_id=conversation)
        return found

    async def search(self, caller: Caller, query: str, limit: int = 20) -> list[dict[str, Any]]:
        """The newest rows with all these words: an agent's own, or for the owner those of all agents."""
        require_viewer(caller, agents=True)
        whose = caller.name if caller.kind is CallerKind.AGENT else None
        rows = await message_rows.history(await self._context.room(), whose, SEARCHED, 0)
        words = query.casefold().split()
        return [row for row in rows if all(word in row["content"].casefold() for word in words)][:limit]


async def message_in_turn(room: "Room", caller: Caller) -> Message:
    """What the agent works on at the moment."""
    try:
        message = await room.get(caller.turn)
    except NotFound:
        raise TurnOver(agent=caller.name) from None
    if message.state is not State.CLAIMED:
        raise TurnOver(agent=caller.name)
    return message


async def _answers_to(room: "Room", agent: str, limit: int) -> list[dict[str, Any]]:
    sent = await room.numbered(
        scope=queues.SCOPE, labels={"by": TOOLS, "from": agent}, newest_first=True, limit=limit
    )
    return [
        {
            "from": message.agent,
            "messageId": message.id,
            "about": text_of(message)[:200],
            "waiting": message.state in OPEN,
            "text": await _answer_to(room, message),
            "state": message.state,
        }
        for _, message in sent
    ]


async def _answer_to(room: "Room", message: Message) -> str | None:
    """Its own, or that of the message with which it was answered."""
    result = message.result if isinstance(message.result, dict) else {}
    if "with" in result:
        with contextlib.suppress(NotFound):
            result = (await room.get(result["with"])).result or {}
    return result.get("answer")


async def _deliver(room: "Room", message: Message) -> None:
    """Only who holds a message may complete it, and mail is claimed in order, so those before it are given
    back at once."""
    if message.state is State.DELAYED:
        return
    waiting = [each.id for each in await room.peek(message.path, PEEKED)]
    if message.id not in waiting:
        return
    claimed = await room.claim(message.path, limit=waiting.index(message.id) + 1, worker="api")
    async with room.unit() as unit:
        for each in claimed:
            if each.id == message.id:
                unit.complete(each, {"delivered": "acknowledged"})
            else:
                unit.release(each)


def _step(message: Message) -> ConversationStep:
    return ConversationStep(
        message_id=client_id(message),
        agent=message.agent or "",
        from_agent=message.from_agent,
        state=message.state,
        attempts=message.attempts,
        problem=message.failure_reason,
    )


async def _answered_in(room: "Room", message: Message) -> str | None:
    """The conversation with the answer, of what rode along with another message of the same person."""
    result = message.result if isinstance(message.result, dict) else {}
    if message.subscription is not None or "with" not in result:
        return None
    with contextlib.suppress(NotFound):  # pruned, and read long ago
        first = await room.get(result["with"])
        return first.correlation_id if _person(first) == _person(message) else None
    return None


def _person(message: Message) -> tuple[str | None, str | None]:
    return message.channel, message.sender_id or message.sender


async def _paused_by(room: "Room", talks: list[str], working: list[Message]) -> str | None:
    """The guard that stopped it, `paused` when everybody is, or None when it goes on by itself."""
    mail = [each for each in working if queues.is_inbox(each.queue) or each.subscription is not None]
    if not mail or any(message.state is not State.DELAYED for message in mail):
        return None
    found = await room.accounts(budgets.OFFICE, *(budgets.conversation(talk) for talk in talks))
    for account in found.values():
        if account.frozen and account.frozen != budgets.STOPPED:
            return account.frozen
    waited_for = {(message.failure_reason or "").partition(":")[0] for message in mail}
    daily = [name for name in waited_for if name.startswith(DAILY_BUDGETS)]
    used_up = daily and any(each.frozen for each in (await room.accounts(*daily)).values())
    return budgets.BudgetGuard.BUDGET.value if used_up else None
