"""What envelopes become: strangers get a code, and what approved people write reaches the office, once."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from postroom.channels.channel import Channel
from postroom.channels.chat_rules import ChatRules
from postroom.channels.errors import FileUnavailable
from postroom.channels.intake_queue import IntakeQueue, read_envelope
from postroom.channels.loop_guard import LoopGuard
from postroom.channels.model import Address, Envelope, ReceivedFile, ReceivedMessage
from postroom.channels.pauses import Pauses
from postroom.errors import BodyTooLarge, ClaimLost, MessageNotFound, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.office import queues
from postroom.office.chat_preferences import BusyMode, read_preferences
from postroom.office.files import safe_name
from postroom.office.intake.intake import Also, Incoming, IntakeResult
from postroom.office.message_files import FilesAway, MessageFiles, in_thread
from postroom.office.pairing import Admission, SenderRole
from postroom.office.ports import RoomPort
from postroom.services.chat_commands import ChatRequest, read_command

log = logging.getLogger("postroom.channels")

FETCH_TRIES = 4
AWAY_CAP_S = 30.0
NOTICE = "office.notice"
FAILED = (
    "Your message arrived, but something failed here and no agent has it."
    " The owner finds it among the dead letters."
)


class OfficeIntake(Protocol):
    """What the office does with a message: commits it together with what `also` makes, or raises why not."""

    def __call__(self, mail: Incoming, /, also: Also) -> Awaitable[IntakeResult]: ...


class Admit(Protocol):
    """Whether somebody may write. What `tell` makes of the reply to a stranger commits with it."""

    def __call__(
        self, channel: str, sender_id: str, sender: str, tell: Callable[[str], Sequence[c.Command]]
    ) -> Awaitable[Admission]: ...


class AnswerCommand(Protocol):
    """What is said at once to a command; None when it is none, or for the office itself."""

    def __call__(self, asked: ChatRequest, /) -> Awaitable[str | None]: ...


async def answer_nothing(asked: ChatRequest) -> str | None:
    return None


FindRole = Callable[[str, str], Awaitable[SenderRole | None]]


async def find_no_role(channel: str, sender_id: str) -> SenderRole | None:
    return None


class Reception:
    """Where a channel's envelopes go: it is the channel's `EnvelopeStore`."""

    def __init__(
        self,
        room: RoomPort,
        name: str,
        channel: Channel,
        *,
        admit: Admit,
        take: OfficeIntake,
        files: MessageFiles,
        file_bytes: int,
        pauses: Pauses,
        rules: ChatRules,
        loops: LoopGuard,
        answer: AnswerCommand = answer_nothing,
        find_role: FindRole = find_no_role,
        interrupt: Callable[[str, str], None] = lambda channel, sender: None,
        steer: Callable[[str, str], None] = lambda channel, sender: None,
        taken: Callable[[Address], None] = lambda address: None,
    ) -> None:
        # Called when the office has a message: somebody is at work on it.
        self._taken = taken
        self._rules = rules
        self._loops = loops
        self._answer = answer
        self._find_role = find_role
        self._announce = {BusyMode.INTERRUPT: interrupt, BusyMode.STEER: steer}
        self._room = room
        self._name = name
        self._channel = channel
        self._admit = admit
        self._take = take
        self._files = files
        self._file_bytes = file_bytes
        self._pauses = pauses
        self._queue = IntakeQueue(room, name)

    async def __call__(self, envelopes: Sequence[Envelope], cursor: Mapping[str, Any] | None = None) -> None:
        """Returns when nothing of these can be lost any more."""
        accepted = []
        leaves_something = False
        for envelope in envelopes:
            received = self._read(envelope)
            if received is None or not received.addressed:
                continue
            admission = await self._ask_admission(received)
            leaves_something |= admission.reply is not None
            if admission.approved:
                accepted.append((envelope, received))
        # What strangers write costs no disk, not even a place in the platform's stream.
        moves = bool(accepted) or leaves_something or not envelopes
        await self._queue.append(accepted, cursor if moves else None)

    async def read_cursor(self) -> dict[str, Any]:
        return await self._queue.read_cursor()

    def _read(self, envelope: Envelope) -> ReceivedMessage | None:
        """One event that makes no sense holds up no other."""
        try:
            return self._channel.read(envelope)
        except Exception:
            log.exception("%s: event %s is not understood and left out", self._name, envelope.event_id)
            return None

    async def _ask_admission(self, received: ReceivedMessage) -> Admission:
        """A stranger's code and the word that tells it are one unit: no code is given and never told."""

        def tell(code: str) -> tuple[c.Command, ...]:
            key = f"pairing:{received.sender_id}:{received.message_id}"
            return self._tell(msgspec.structs.replace(received, text=""), code, key)

        return await self._admit(self._name, received.sender_id, received.sender, tell)

    async def handle(self, message: Message) -> None:
        """One envelope: what it becomes and its own end are one unit."""
        received = self._channel.read(read_envelope(message))
        end = c.Complete(message_id=message.id, token=message.claim_token or "", actor=self._room.actor)
        if received is None:
            await self._room.run(end)
            return
        text = received.text
        if received.pressed is not None:
            text = await self._words_of_button(received)
            await self._confirm_press(received)
            if text is None:
                await self._room.run(end)
                return
        await self._slow_down(received)
        text = read_command(text)
        asked = ChatRequest(
            channel=self._name,
            chat=received.chat,
            sender_id=received.sender_id,
            sender=received.sender,
            text=text,
        )
        if not received.files and (said := await self._answer(asked)) is not None:
            told = self._tell(received, said, f"command:{received.chat}/{received.message_id}")
            await self._room.run(c.Unit(commands=(*told, end), actor=self._room.actor))
            return
        files, remarks = await self._fetch_files(received, message.id)
        await self._hand_over(await self._describe(received, text, files, remarks), received, end)

    async def _slow_down(self, received: ReceivedMessage) -> None:
        """Two programs that answer each other go on, but slowly. What came is handled after the pause."""
        pause = self._loops.count(received.sender_id)
        if pause:
            log.warning(
                "%s: %s writes very fast; what they write waits %g s", self._name, received.sender_id, pause
            )
            await self._pauses.sleep(pause)

    async def _describe(
        self, received: ReceivedMessage, text: str, files: list[str], remarks: list[str]
    ) -> Incoming:
        wanted = await read_preferences(self._room, self._name, received.chat)
        metadata: dict[str, Any] = {"address": msgspec.to_builtins(received.address)}
        if received.thread is not None:
            metadata["thread"] = received.thread
        metadata |= {
            name: value
            for name, value in (
                ("busy", wanted.busy or self._rules.busy),
                ("noise", wanted.noise or self._rules.noise),
                ("signature", self._rules.signature),
            )
            if value is not None
        }
        return Incoming(
            channel=self._name,
            sender=received.sender,
            sender_id=received.sender_id,
            text="\n\n".join(filter(None, [text, *remarks])),
            platform_id=f"{received.chat}/{received.message_id}",
            chat=received.chat,
            sticky=self._rules.default_agent,
            agent=await self._only_agent(received),
            files=tuple(files),
            metadata=metadata,
        )

    async def _only_agent(self, received: ReceivedMessage) -> str | None:
        """Guests write to one agent, and choose no other."""
        role = await self._find_role(self._name, received.sender_id)
        if role is not SenderRole.GUEST:
            return None
        return self._rules.default_agent or self._rules.agent_of_guests()

    async def _hand_over(self, incoming: Incoming, received: ReceivedMessage, end: c.Command) -> None:
        def also(notice: str | None) -> tuple[c.Command, ...]:
            told = () if notice is None else self._tell(received, notice, f"notice:{incoming.platform_id}")
            return (*told, end)

        try:
            result = await self._take(incoming, also)
        except (ClaimLost, MessageNotFound, StoreClosed):
            raise
        except PostroomError as refusal:
            # The person is told why, in place of an answer.
            log.warning("%s: message %s was refused: %s", self._name, incoming.platform_id, refusal)
            told = self._tell(received, str(refusal), f"refused:{incoming.platform_id}")
            await self._room.run(c.Unit(commands=(*told, end), actor=self._room.actor))
            return
        if result.receipts:
            announce = self._announce.get(incoming.metadata["busy"])
            if announce is not None and not result.repeated:
                announce(self._name, received.sender_id)
            self._taken(received.address)

    def tell_failure(self, message: Message) -> tuple[c.Command, ...]:
        """For an envelope that is given up: the person hears of it, and does not wait for an answer."""
        received = self._read(read_envelope(message))
        return () if received is None else self._tell(received, FAILED, f"failed:{message.id}")

    async def _words_of_button(self, received: ReceivedMessage) -> str | None:
        """A pressed button says what its label says. None when nobody knows the button any more."""
        message_id, _, index = (received.pressed or "").rpartition(":")
        try:
            asked = await self._room.get(message_id)
            return str(asked.body.get("says", asked.body["choices"])[int(index)])
        except (MessageNotFound, KeyError, IndexError, ValueError, TypeError):
            log.info("%s: an unknown button was pressed: %r", self._name, received.pressed)
            return None

    async def _confirm_press(self, received: ReceivedMessage) -> None:
        if received.press_handle is not None:
            await self._channel.confirm_press(received.press_handle)

    async def _fetch_files(self, received: ReceivedMessage, name: str) -> tuple[list[str], list[str]]:
        paths: list[str] = []
        remarks: list[str] = []
        for file in received.files:
            try:
                paths.append(await self._fetch(file, f"{self._name}_{name}_{safe_name(file.name)}"))
            except FileUnavailable as problem:
                log.warning("%s: %s", self._name, problem)
                remarks.append(f"[{problem}]")
        return paths, remarks

    async def _fetch(self, file: ReceivedFile, name: str) -> str:
        if file.size is not None and file.size > self._file_bytes:
            reason = f"it has {file.size} bytes, and at most {self._file_bytes} are taken."
            raise FileUnavailable(name=file.name, reason=reason)
        attempt = 0
        while True:
            attempt += 1
            try:
                # Opened before anything is fetched: a full disk is no reason to ask the platform.
                receiving = self._files.receiving("", safe_name(name), max_bytes=self._file_bytes)
                async with in_thread(receiving) as target:
                    await self._channel.fetch_file(file, target)
                return target.ref
            except FilesAway as problem:
                # The message waits with its file: it is safe where it is, and the person has not been told
                # anything.
                log.warning("%s: the file %s waits: %s", self._name, file.name, problem)
                await self._pauses.sleep(min(AWAY_CAP_S, 2.0 ** (attempt - 1)))
            except BodyTooLarge:
                reason = f"it is larger than {self._file_bytes} bytes."
                raise FileUnavailable(name=file.name, reason=reason) from None
            except FileUnavailable:
                if attempt >= FETCH_TRIES:
                    raise
                await self._pauses.sleep(2.0 ** (attempt - 1))

    def _tell(self, received: ReceivedMessage, text: str, key: str) -> tuple[c.Command, ...]:
        message = NewMessage(
            body={"text": text, "original": received.text},
            message_type=NOTICE,
            channel=self._name,
            sender=received.sender,
            sender_id=received.sender_id,
            idempotency_key=key,
            correlation_id=f"{self._name}:{received.chat}/{received.message_id}",
            metadata={"address": msgspec.to_builtins(received.address)},
        )
        publish = c.Publish(queue=queues.outbox(self._name), messages=[message], actor=self._room.actor)
        return (queues.open_outbox(self._name), publish)
