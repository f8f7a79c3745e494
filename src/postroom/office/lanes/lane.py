"""The lane of an agent: its mail is worked through one turn at a time, over all processes and hosts.

A lane is a lease in the store. Whoever has it claims what the next turn is about and no more, keeps the
claims alive while the agent works, and stops working when the lane or a claim is lost: then somebody else has
it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from postroom.errors import ClaimLost, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.lanes.batches import Batch, group, join, person_of
from postroom.office.lanes.slots import LanePlaces
from postroom.office.lanes.turn_runner import TurnDependencies, TurnRunner, Worker
from postroom.office.ports import RoomPort
from postroom.office.turns import outcomes

log = logging.getLogger("postroom.lanes")

# An idle lane looks up seldom, since mail wakes it; but before its lease is over.
WAIT_S = 15.0
PAUSE_S = 1.0
# Between looks whether an agent that works on another host was moved to this one.
ELSEWHERE_S = 3.0
AT_ONCE = 200


class Lane:
    def __init__(self, room: RoomPort, worker: Worker, deps: TurnDependencies) -> None:
        self._room = room
        self._deps = deps
        self._agent = worker.agent
        self._runner = TurnRunner(room, worker, deps)
        self._stopping = asyncio.Event()
        self._look = asyncio.Event()
        self._leader = room.leader(f"lane/{worker.agent}", lease_s=deps.lease_s)
        self._places = deps.slots.lanes_of(worker.choices[0].provider)
        self._claimed: dict[str, Message] = {}
        self._in_hand: tuple[Batch, asyncio.Task[None]] | None = None
        self._handing_in: asyncio.Task[None] | None = None

    @property
    def agent(self) -> str:
        return self._agent

    @property
    def is_steerable(self) -> bool:
        return self._runner.is_steerable

    def stop(self) -> None:
        """After the turn in hand; what was claimed besides is given back."""
        self._stopping.set()

    def look_up(self) -> None:
        """Look at once whether what is in hand is still ours: somebody may have cancelled it."""
        self._look.set()

    def interrupt(self, channel: str, sender_id: str) -> None:
        """End the turn in hand if it is for this person: it begins again, with what came meanwhile."""
        if self._works_for(channel, sender_id):
            self._drop("its person wrote more")

    def steer(self, channel: str, sender_id: str) -> None:
        """What this person wrote goes into the turn in hand, if it is theirs; or else that begins again,
        unless it only has to be settled."""
        if self._runner.takes_more and self._in_hand is not None and self._works_for(channel, sender_id):
            handing_in = self._hand_in(self._in_hand[0], self._handing_in)
            self._handing_in = asyncio.create_task(handing_in)
        elif not self._runner.has_answered:
            self.interrupt(channel, sender_id)

    def _works_for(self, channel: str, sender_id: str) -> bool:
        if self._in_hand is None:
            return False
        primary = self._in_hand[0].primary
        return (primary.channel, primary.sender_id) == (channel, sender_id)

    async def _hand_in(self, batch: Batch, before: asyncio.Task[None] | None) -> None:
        """What the turn does not take any more waits for the next one."""
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)
        inbox, person = queues.inbox(self._agent), person_of(batch.primary)
        try:
            waiting = await self._room.messages(queue=inbox, state="pending", limit=AT_ONCE)
            wanted = [
                each.id
                for each in waiting.messages
                if each.from_agent is None and not each.attempts and person_of(each) == person
            ]
            mail = await self._claim(inbox, ids=wanted, limit=len(wanted)) if wanted else []
        except PostroomError as error:
            log.warning("what came for the turn of @%s waits for the next: %s", self._agent, error)
            return
        taken = {message.id: message for message in mail if await self._runner.take_more(message)}
        self._claimed |= taken
        await self._release([each for each in mail if each.id not in taken])

    async def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    await self._round()
                except StoreClosed:
                    return
                except PostroomError as error:
                    log.error("the lane of @%s pauses: %s", self._agent, error)
                    await self._sleep(PAUSE_S)
                except Exception:
                    log.exception("the lane of @%s stumbled", self._agent)
                    await self._sleep(PAUSE_S)
        finally:
            with contextlib.suppress(PostroomError):
                await self._leader.resign()

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _round(self) -> None:
        if not await self._deps.hosts.is_here(self._agent):
            if self._leader.leads:
                await self._leader.resign()
            await self._sleep(ELSEWHERE_S)
            return
        if not await self._leader.lead():
            await self._sleep(min(PAUSE_S, self._deps.lease_s / 2))
            return
        first = await self._claim_first(min(WAIT_S, self._deps.lease_s * 3 / 4))
        if first is None:
            return
        places = self._places
        if places.locked():
            # It may take long until there is a place, and what nobody works on should not be held.
            await self._release([first])
            first = None
            if not await self._enter(places):
                return
        else:
            await places.acquire()
        try:
            if first is None and await self._leader.lead():
                first = await self._claim_first()
            if first is not None:
                await self._work(first)
        finally:
            places.release()

    async def _enter(self, places: LanePlaces) -> bool:
        """Wait for a place, unless the lane is to stop."""
        entering = asyncio.ensure_future(places.acquire())
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({entering, stopped}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not entering.cancel():
                places.release()
            raise
        finally:
            stopped.cancel()
        if entering.done():
            return True
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        if not entering.cancelled():
            places.release()
        return False

    def _rooms(self) -> list[str]:
        return [queues.room_of(team) for team in self._deps.directory.teams_of(self._agent)]

    async def _claim(self, *places: str, **wanted: Any) -> list[Message]:
        inbox_only = places == (queues.inbox(self._agent),)
        return await self._room.claim(
            *places,
            lease=self._deps.lease_s,
            worker=self._leader.holder,
            subscription=None if inbox_only else self._agent,
            **wanted,
        )

    async def _claim_first(self, wait: float = 0) -> Message | None:
        """The next that waits, in the inbox or in the rooms; one's own posts need no answer."""
        agent = self._agent
        claiming = asyncio.ensure_future(self._claim(queues.inbox(agent), *self._rooms(), wait=wait))
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({claiming, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not claiming.done():
                claiming.cancel()
                await asyncio.gather(claiming, return_exceptions=True)
            elif not claiming.cancelled() and self._is_cancelled():
                # Nobody else will give back what was claimed at that very moment.
                await self._release(claiming.result() if claiming.exception() is None else [])
        if claiming.cancelled():
            return None
        mail = await self._without_own(claiming.result())
        return mail[0] if mail else None

    async def _without_own(self, mail: list[Message]) -> list[Message]:
        """One's own posts are read, by whoever wrote them."""
        own = [each for each in mail if each.subscription and each.from_agent == self._agent]
        if own:
            done = tuple(c.Complete(**outcomes.held(message, self._agent)) for message in own)
            await self._room.run(c.Unit(commands=done, actor=self._agent))
        return [each for each in mail if each not in own]

    async def _join(self, first: Message) -> Batch:
        """With all that is answered in the same turn, and nothing else: a crash counts against what was
        claimed, so nothing is claimed that is not begun at once."""
        mail = [first]
        try:
            if first.attempts == 1:
                rooms = self._rooms()
                posts = await self._claim(*rooms, limit=AT_ONCE) if rooms else []
                mail = [first, *await self._without_own(posts)]
            inbox = queues.inbox(self._agent)
            if first.attempts == 1 and first.subscription is None:
                waiting = await self._room.messages(queue=inbox, state="pending", limit=AT_ONCE)
                joined = [each.id for each in join(first, waiting.messages)]
                if joined:
                    mail += await self._claim(inbox, ids=joined, limit=len(joined))
            mine = next(batch for batch in group(mail) if first in batch.messages)
        except BaseException:
            await self._release(mail)
            raise
        await self._release([each for each in mail if each not in mine.messages])
        return mine

    # what was claimed is kept

    async def _keep(self) -> None:
        """The lane and every claim, until the last is settled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._deps.lease_s / 3):
                    await self._look.wait()
            self._look.clear()
            try:
                if not await self._leader.lead():
                    self._drop("another process has the lane now")
                lost = await self._extend()
            except PostroomError as error:
                log.error("the leases of @%s were not extended: %s", self._agent, error)
                continue
            if self._in_hand and self._in_hand[0].primary.id in lost:
                self._drop("its message was cancelled, or taken over")

    async def _extend(self) -> set[str]:
        """Those that are not ours any more."""
        mail = list(self._claimed.values())
        asked = [
            self._room.run(c.Extend(lease_s=self._deps.lease_s, **outcomes.held(message, self._agent)))
            for message in mail
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        lost = {m.id for m, answer in zip(mail, answers, strict=True) if isinstance(answer, ClaimLost)}
        for message_id in lost:
            self._claimed.pop(message_id, None)
        others = [a for a in answers if isinstance(a, BaseException) and not isinstance(a, ClaimLost)]
        if others:
            raise others[0]
        return lost

    def _drop(self, reason: str) -> None:
        if self._in_hand is not None and not self._in_hand[1].done():
            log.warning("the turn of @%s is ended: %s", self._agent, reason)
            self._in_hand[1].cancel()

    # and worked through

    async def _work(self, first: Message) -> None:
        is_ours = not self._stopping.is_set() and await self._leader.lead()
        if not is_ours or not await self._deps.hosts.take(self._agent):
            # The wait was longer than it seemed, and somebody else has the lane now.
            await self._release([first])
            return
        batch = await self._join(first)
        self._claimed = {message.id: message for message in batch.messages}
        beat = asyncio.create_task(self._keep())
        try:
            if await self._serve(batch):
                self._claimed = {}
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
            mail, self._claimed = list(self._claimed.values()), {}
            await self._release(mail)

    async def _serve(self, batch: Batch) -> bool:
        """Whether the batch is settled; if not, what is left of it is given back."""
        serving = asyncio.create_task(self._runner.serve(batch))
        self._in_hand = (batch, serving)
        try:
            await serving
        except asyncio.CancelledError:
            if self._is_cancelled():
                raise
            return False
        except ClaimLost as error:
            log.warning("%s", error)
            return False
        except StoreClosed:
            raise
        except Exception as error:
            log.exception("@%s could not be served", self._agent)
            await self._refuse(batch, error)
        finally:
            self._in_hand = None
            if self._handing_in is not None:
                await asyncio.gather(self._handing_in, return_exceptions=True)
                self._handing_in = None
        return True

    async def _refuse(self, batch: Batch, error: Exception) -> None:
        """What we ourselves cannot do counts as an attempt, or it would be tried for ever."""
        for message in batch.messages:
            with contextlib.suppress(ClaimLost):
                reason = f"{type(error).__name__}: {error}"
                again = not outcomes.is_last(message, self._deps.rules)
                fail = c.Fail(
                    reason=reason, kind="internal", retry=again, **outcomes.held(message, self._agent)
                )
                await self._room.run(fail)

    async def _release(self, mail: Sequence[Message]) -> None:
        for message in mail:
            with contextlib.suppress(PostroomError):
                await self._room.run(c.Release(**outcomes.held(message, self._agent)))

    def _is_cancelled(self) -> bool:
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
