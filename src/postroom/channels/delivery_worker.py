"""Sends the replies of one channel, piece by piece, and keeps on record what became of each.

Before a piece goes out the plan says so, and after it what the platform answered; both only while the claim
is ours. What may have been sent is never sent again, unless the platform itself drops repetitions.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, BinaryIO

import msgspec

from postroom.channels import degradation
from postroom.channels.channel import Channel
from postroom.channels.delivery_plan import DELIVERY, DeliveryPlan, PieceState, PlannedPiece
from postroom.channels.errors import (
    ChatMoved,
    MarkupRefused,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.model import Address, Choice, Piece, PieceKind
from postroom.channels.pauses import Pauses
from postroom.channels.styled_text import StyledText
from postroom.clock import SECOND, Clock
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office.chat_preferences import NoiseLevel
from postroom.office.files import FileRefused
from postroom.office.message_files import FilesAway, MessageFiles, in_thread
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.channels")

MAX_AGE_S = 24 * 3600.0
BACKOFF_CAP_S = 300.0
REMARK = (
    "(Something I sent may not have reached you, because the connection broke. Ask again if it is missing.)"
)
PROGRESS = "office.progress"
MOST_SHOWN = 1000
TOO_OLD = "too_old"
UNDELIVERABLE = "undeliverable"


class _Delivery:
    """A reply in hand: its message, its plan, and the version of the plan's document (0: not written yet)."""

    def __init__(self, message: Message, plan: DeliveryPlan, version: int) -> None:
        self.message = message
        self.plan = plan
        self.version = version


class DeliveryWorker:
    def __init__(
        self,
        room: RoomPort,
        name: str,
        channel: Channel,
        clock: Clock,
        pauses: Pauses,
        *,
        files: MessageFiles,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self._files = files
        self._room = room
        self._name = name
        self._channel = channel
        self._clock = clock
        self._pauses = pauses
        self._max_age_s = max_age_s
        # Of each conversation, the message that shows its progress.
        self._shown: dict[str | None, tuple[Address, str]] = {}
        # The platform asked the whole bot to wait until then.
        self._quiet_until = 0

    async def deliver(self, message: Message) -> None:
        in_place = message.message_type == PROGRESS and message.metadata.get("noise") == NoiseLevel.PROGRESS
        if in_place and await self._show_progress(message):
            return
        delivery = await self._open(message)
        if delivery is None:
            await self._refuse(message, "nobody is named to whom it could go")
            return
        while (index := delivery.plan.next_piece()) is not None:
            if self._is_too_old(delivery):
                delivery.plan = delivery.plan.abandon_rest("it waited too long and would be out of place now")
                break
            planned = delivery.plan.pieces[index]
            if planned.state is PieceState.SENT and not self._may_repeat(planned):
                self._mark_ambiguous(delivery, index, "the program stopped while it was being sent")
                continue
            await self._send_piece(delivery, index)
        await self._end(delivery)
        if message.message_type == PROGRESS:
            self._remember_progress(delivery)
        else:
            self._shown.pop(message.correlation_id, None)

    def _remember_progress(self, delivery: _Delivery) -> None:
        """What comes next of the same conversation takes its place, as long as this process lives."""
        last = delivery.plan.pieces[-1]
        if last.platform_id is not None:
            if len(self._shown) >= MOST_SHOWN:
                self._shown.pop(next(iter(self._shown)))
            self._shown[delivery.message.correlation_id] = (delivery.plan.address, last.platform_id)

    async def _show_progress(self, message: Message) -> bool:
        """Whether it is done with: without edits nothing is shown, and the final answer says all."""
        complete = c.Complete(message_id=message.id, token=message.claim_token or "", actor=self._room.actor)
        if not self._channel.capabilities.edits:
            await self._room.run(complete)
            return True
        shown = self._shown.get(message.correlation_id)
        if shown is None:
            return False
        pieces = degradation.make_pieces(_read_reply(message), self._channel.capabilities, self._files)
        try:
            await self._channel.edit(*shown, pieces[-1])
        except SendProblem as problem:
            log.debug("%s: no progress in %s: %s", self._name, shown[0].chat, problem)
        await self._room.run(complete)
        return True

    def _may_repeat(self, planned: PlannedPiece) -> bool:
        """Whether the platform still knows the key under which it was sent."""
        can = self._channel.capabilities
        age = self._clock.now() - planned.sent_at
        return can.repeatable and (can.repeatable_s is None or age < can.repeatable_s * SECOND)

    async def _open(self, message: Message) -> _Delivery | None:
        document = await self._room.document(DELIVERY, message.id)
        if document is not None:
            plan = msgspec.convert(document.data, DeliveryPlan).take_up_abandoned(self._clock.now())
            return _Delivery(message, plan, document.version)
        address = read_address(message)
        if address is None:
            return None
        reply = _read_reply(message)
        pieces = await asyncio.to_thread(
            degradation.make_pieces, reply, self._channel.capabilities, self._files
        )
        if isinstance(message.body, dict) and "pieces" in message.body:
            # Sent again: they were made for this platform already.
            pieces += msgspec.convert(message.body["pieces"], list[Piece])
        planned = tuple(PlannedPiece(piece=piece) for piece in pieces)
        return _Delivery(message, DeliveryPlan(channel=self._name, address=address, pieces=planned), 0)

    async def _send_piece(self, delivery: _Delivery, index: int) -> None:
        await self._wait_for_quiet()
        delivery.plan = delivery.plan.change(index, state=PieceState.SENT, sent_at=self._clock.now())
        await self._save(delivery)
        piece = delivery.plan.pieces[index].piece
        address = delivery.plan.address
        if index:
            # Only the first piece points at what it answers.
            address = msgspec.structs.replace(address, reply_to=None)
        try:
            async with self._open_file(piece) as file:
                key = f"{delivery.message.id}/{index}"
                platform_id = await self._channel.send(address, piece, key, file)
        except SendProblem as problem:
            await self._face(delivery, index, problem)
            return
        delivery.plan = delivery.plan.change(index, state=PieceState.CONFIRMED, platform_id=platform_id)
        if delivery.plan.next_piece() is not None:
            await self._save(delivery)

    @contextlib.asynccontextmanager
    async def _open_file(self, piece: Piece) -> AsyncIterator[BinaryIO | None]:
        """Checked again: what a path names may have changed since the plan was made."""
        if piece.path is None:
            yield None
            return
        try:
            async with in_thread(self._files.open(piece.path)) as (_, file):
                yield file
        except (FileRefused, OSError) as problem:
            raise Undeliverable(str(problem), whole=False) from problem
        except FilesAway as problem:
            raise NotSent(str(problem)) from problem

    async def _face(self, delivery: _Delivery, index: int, problem: SendProblem) -> None:
        """What a problem means for the piece; those that did not go out are prepared again."""
        planned = delivery.plan.pieces[index]
        log.warning("%s: piece %d of %s: %s", self._name, index + 1, delivery.message.id, problem)
        match problem:
            case RetryAfter():
                await self._prepare_again(delivery, index, reason=problem.reason)
                await self._wait(problem)
            case MarkupRefused():
                plain = degradation.without_markup(planned.piece)
                await self._prepare_again(delivery, index, piece=plain)
            case ChatMoved():
                address = msgspec.structs.replace(delivery.plan.address, chat=problem.chat, reply_to=None)
                delivery.plan = msgspec.structs.replace(delivery.plan, address=address)
                await self._prepare_again(delivery, index)
            case Undeliverable() if problem.whole:
                delivery.plan = delivery.plan.abandon_rest(problem.reason)
            case Undeliverable():
                delivery.plan = delivery.plan.change(index, state=PieceState.ABANDONED, reason=problem.reason)
                await self._save(delivery)
            case MaybeSent() if not self._may_repeat(planned):
                self._mark_ambiguous(delivery, index, problem.reason)
                await self._save(delivery)
            case NotSent() | MaybeSent():
                failures = planned.failures + 1
                await self._prepare_again(delivery, index, reason=problem.reason, failures=failures)
                await self._pauses.sleep(min(BACKOFF_CAP_S, 2.0 ** (failures - 1)))
            case _:
                raise problem

    async def _prepare_again(self, delivery: _Delivery, index: int, **changes: Any) -> None:
        delivery.plan = delivery.plan.change(index, state=PieceState.PREPARED, **changes)
        await self._save(delivery)

    def _mark_ambiguous(self, delivery: _Delivery, index: int, reason: str) -> None:
        """The person gets a word at the end, once, that something may be missing."""
        plan = delivery.plan.change(index, state=PieceState.AMBIGUOUS, reason=reason)
        if not any(planned.remark for planned in plan.pieces):
            remark = Piece(kind=PieceKind.TEXT, text=StyledText(REMARK))
            plan = plan.with_pieces([*plan.pieces, PlannedPiece(piece=remark, remark=True)])
        delivery.plan = plan
        log.warning("%s: %s may be missing: %s", self._name, delivery.message.id, reason)

    async def _wait(self, problem: RetryAfter) -> None:
        if problem.whole_channel:
            self._quiet_until = max(self._quiet_until, self._clock.now() + round(problem.seconds * SECOND))
        await self._pauses.sleep(problem.seconds)

    async def _wait_for_quiet(self) -> None:
        while (left := self._quiet_until - self._clock.now()) > 0:
            await self._pauses.sleep(left / SECOND)

    def _is_too_old(self, delivery: _Delivery) -> bool:
        began = max(delivery.message.created_at, delivery.plan.since)
        return self._clock.now() - began > self._max_age_s * SECOND

    async def _save(self, delivery: _Delivery) -> None:
        """Together with the claim: who has lost it writes nothing."""
        message = delivery.message
        extend = c.Extend(message_id=message.id, token=message.claim_token or "", actor=self._room.actor)
        await self._commit(delivery, extend, self._put(delivery))

    async def _end(self, delivery: _Delivery) -> None:
        message, plan = delivery.message, delivery.plan
        held: dict[str, Any] = {"message_id": message.id, "token": message.claim_token or ""}
        held["actor"] = self._room.actor
        if plan.state is PieceState.ABANDONED:
            reason = next(p.reason for p in plan.pieces if p.state is PieceState.ABANDONED) or ""
            kind = TOO_OLD if self._is_too_old(delivery) else UNDELIVERABLE
            # The plan stays: when the owner sends it once more, what arrived is not repeated.
            fail = c.Fail(reason=reason, kind=kind, retry=False, **held)
            await self._commit(delivery, fail, self._put(delivery))
            return
        complete = c.Complete(result=plan.summary(), **held)
        if plan.state is PieceState.AMBIGUOUS:
            await self._commit(delivery, complete, self._put(delivery))
        elif delivery.version:
            drop = c.DropDocument(kind=DELIVERY, key=message.id, actor=self._room.actor)
            await self._commit(delivery, complete, drop)
        else:
            await self._room.run(complete)

    async def _refuse(self, message: Message, reason: str) -> None:
        token = message.claim_token or ""
        await self._room.run(
            c.Fail(
                message_id=message.id,
                token=token,
                reason=reason,
                kind=UNDELIVERABLE,
                retry=False,
                actor=self._room.actor,
            )
        )

    def _put(self, delivery: _Delivery) -> c.Command:
        data = msgspec.to_builtins(delivery.plan)
        return c.PutDocument(
            kind=DELIVERY,
            key=delivery.message.id,
            data=data,
            expect=delivery.version,
            history=False,
            actor=self._room.actor,
        )

    async def _commit(self, delivery: _Delivery, *commands: c.Command) -> None:
        answers = await self._room.run(c.Unit(commands=commands, actor=self._room.actor))
        if isinstance(commands[-1], c.PutDocument):
            delivery.version = answers[-1]


def read_address(message: Message) -> Address | None:
    """Where the channel said the question came from; for what nobody asked, the person themselves."""
    if "address" in message.metadata:
        return msgspec.convert(message.metadata["address"], Address)
    return Address(chat=message.sender_id) if message.sender_id else None


def _read_reply(message: Message) -> degradation.Reply:
    body = message.body if isinstance(message.body, dict) else {}
    choices = tuple(
        Choice(str(label), f"{message.id}:{index}") for index, label in enumerate(body.get("choices", ()))
    )
    return degradation.Reply(
        text=str(body.get("text", "")),
        files=tuple(message.files),
        choices=choices,
        says=tuple(map(str, body.get("says", ()))),
    )
