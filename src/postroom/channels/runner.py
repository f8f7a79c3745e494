"""Runs one channel: receives, hands envelopes to the office, delivers replies; begins anew after a failure.

Of several processes one runs it, by a lease in the store.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from postroom.channels.channel import Channel, WebhookAnswer, WebhookRequest
from postroom.channels.chat_lanes import ChatLanes
from postroom.channels.chat_rules import ChatRules
from postroom.channels.delivery_worker import MAX_AGE_S, DeliveryWorker, read_address
from postroom.channels.errors import ChannelMisconfigured, ChannelUnlinked
from postroom.channels.intake_queue import intake, open_intake, read_chat
from postroom.channels.loop_guard import LoopGuard
from postroom.channels.pauses import Pauses, Sleep, Stopping
from postroom.channels.reception import (
    Admit,
    AnswerCommand,
    FindRole,
    OfficeIntake,
    Reception,
    answer_nothing,
    find_no_role,
)
from postroom.channels.typing_signs import TypingSigns
from postroom.channels.unconfirmed_retention import UnconfirmedRetention
from postroom.channels.waiting_words import WaitingWords
from postroom.clock import Clock
from postroom.errors import StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.files import MAX_FILE_BYTES
from postroom.office.message_files import MessageFiles
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.channels")

RETRY_S = 1.0
RETRY_CAP_S = 60.0
UNLINKED_S = 2.0


class ChannelStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a channel is: `problem` says why it does not receive, and what to do."""

    running: bool = False
    receiving: bool = False
    problem: str | None = None
    # What a phone must scan first.
    pairing: str | None = None


class ChannelSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel needs of the office around it."""

    admit: Admit
    take: OfficeIntake
    # Where received files go, and from where files leave: what agents send was copied there.
    files: MessageFiles
    file_bytes: int = MAX_FILE_BYTES
    max_age_s: float = MAX_AGE_S
    # So long replies that nobody confirmed are listed; none: for ever.
    unconfirmed_s: float | None = None
    # So long after its process died, another one takes the channel over.
    lease_s: float = 15.0
    rules: ChatRules = ChatRules()
    answer: AnswerCommand = answer_nothing
    find_role: FindRole = find_no_role
    # Ends the turns that work for somebody, so that they begin again with what was written meanwhile.
    interrupt: Callable[[str, str], None] = lambda channel, sender: None
    # Hands them what was written meanwhile, where their provider takes it.
    steer: Callable[[str, str], None] = lambda channel, sender: None


class ChannelRunner:
    def __init__(
        self,
        room: RoomPort,
        name: str,
        channel: Channel,
        setup: ChannelSetup,
        clock: Clock,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._room = room
        self._name = name
        self._channel = channel
        self._setup = setup
        self._clock = clock
        self._sleep = sleep
        self._leader = room.leader(f"channel/{name}", lease_s=setup.lease_s)
        self._status = ChannelStatus()
        self._settled = asyncio.Event()
        self._reception: Reception | None = None

    @property
    def status(self) -> ChannelStatus:
        return self._status

    async def run(self) -> None:
        """Until cancelled or stopped."""
        commands = (open_intake(self._name), queues.open_outbox(self._name))
        scope = c.CreateScope(slug=queues.SCOPE, exist_ok=True)
        await self._room.run(c.Unit(commands=(scope, *commands), actor=self._room.actor))
        await self._allow_deaths()
        try:
            await self._leader.run(self._work)
        finally:
            self._status = ChannelStatus()
            await self._channel.close()

    async def _allow_deaths(self) -> None:
        """Queues of earlier versions wore out after fewer."""
        own = (intake(self._name), queues.outbox(self._name))
        for queue in await self._room.queues(queues.SCOPE):
            if queue.path in own and queue.settings.max_retries < queues.CHAT_ATTEMPTS:
                settings = {"max_retries": queues.CHAT_ATTEMPTS}
                await self._room.run(c.UpdateQueue(queue=queue.path, settings=settings))

    def stop(self) -> None:
        self._leader.stop()

    async def settled(self) -> None:
        """Until it is known whether it receives: the status says so, or why not."""
        await self._settled.wait()

    async def accept_webhook(self, request: WebhookRequest) -> WebhookAnswer:
        """What the platform pushed to this process: 503 while another has the channel or it is not ready."""
        if self._reception is None:
            return WebhookAnswer(503)
        return await self._channel.accept_webhook(request, self._reception)

    async def _work(self) -> None:
        pauses = Pauses(self._sleep)
        self._status = ChannelStatus(running=True)
        await self._persist(pauses, self._channel.open)
        signs = TypingSigns(self._channel, pauses)
        reception = self._make_reception(pauses, signs)
        worker = self._make_worker(pauses)

        async def deliver(message: Message) -> None:
            address = read_address(message)
            if address is not None:
                signs.stop(address.chat)
            await worker.deliver(message)

        async def receive() -> None:
            self._status = ChannelStatus(running=True, receiving=True)
            self._settled.set()
            await self._channel.receive(reception)

        envelopes = ChatLanes(
            self._room,
            intake(self._name),
            read_chat,
            reception.handle,
            pauses,
            tell_failure=reception.tell_failure,
        )
        replies = ChatLanes(self._room, queues.outbox(self._name), _chat_of, deliver, pauses)
        self._reception = reception
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(envelopes.run())
                group.create_task(replies.run())
                group.create_task(self._persist(pauses, receive, for_ever=True))
                if after_s := self._setup.rules.long_turn_s:
                    words = WaitingWords(self._room, self._name, self._clock, after_s)
                    group.create_task(words.run(pauses))
                if (keep_s := self._setup.unconfirmed_s) is not None:
                    unconfirmed = UnconfirmedRetention(self._room, self._name, self._clock, keep_s)
                    group.create_task(unconfirmed.run(pauses))
        except ExceptionGroup as errors:
            # What the leader knows by its kind must not come wrapped.
            raise errors.exceptions[0] from None
        finally:
            self._reception = None
            await signs.close()

    async def _persist(
        self, pauses: Pauses, work: Callable[[], Awaitable[None]], *, for_ever: bool = False
    ) -> None:
        """Does it, and again after a pause when the platform or the network fails."""
        pause = RETRY_S
        while True:
            try:
                await work()
                if not for_ever:
                    return
                pause = RETRY_S
            except (StoreClosed, Stopping):
                raise
            except ChannelUnlinked as problem:
                if self._status.problem != str(problem):
                    log.warning("%s", problem)
                self._complain(str(problem))
                pause = UNLINKED_S
            except ChannelMisconfigured as problem:
                self._complain(str(problem))
                log.error("%s", problem)
                pause = RETRY_CAP_S
            except Exception as error:
                self._complain(f"{type(error).__name__}: {error}")
                log.warning(
                    "the channel %s cannot reach its platform: %s; again in %g s", self._name, error, pause
                )
            await pauses.sleep(pause)
            pause = min(RETRY_CAP_S, pause * 2)

    def _complain(self, problem: str) -> None:
        self._status = ChannelStatus(running=True, problem=problem, pairing=self._channel.pairing)
        self._settled.set()

    def _make_reception(self, pauses: Pauses, signs: TypingSigns) -> Reception:
        rules = self._setup.rules
        return Reception(
            self._room,
            self._name,
            self._channel,
            admit=self._setup.admit,
            take=self._setup.take,
            files=self._setup.files,
            file_bytes=self._setup.file_bytes,
            pauses=pauses,
            rules=rules,
            loops=LoopGuard(self._clock, events=rules.loop_events, window_s=rules.loop_window_s),
            answer=self._setup.answer,
            find_role=self._setup.find_role,
            interrupt=self._setup.interrupt,
            steer=self._setup.steer,
            taken=signs.start,
        )

    def _make_worker(self, pauses: Pauses) -> DeliveryWorker:
        return DeliveryWorker(
            self._room,
            self._name,
            self._channel,
            self._clock,
            pauses,
            files=self._setup.files,
            max_age_s=self._setup.max_age_s,
        )


def _chat_of(message: Message) -> str:
    address = read_address(message)
    return "" if address is None else address.chat
