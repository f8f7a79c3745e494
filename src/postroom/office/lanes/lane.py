"""The lane of an agent: its mail is worked through one turn at a time, over all processes and hosts.

A lane is a lease in the store. Whoever has it claims all that waits, keeps the claims alive while the agent
works, and stops working when the lane or a claim is lost: then somebody else has it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from postroom.errors import ClaimLost, PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.lanes.batches import Batch, group
from postroom.office.lanes.turn_runner import TurnDependencies, TurnRunner, Worker
from postroom.office.ports import RoomPort
from postroom.office.turns import outcomes

log = logging.getLogger("postroom.lanes")

WAIT_S = 5.0
PAUSE_S = 1.0
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
        self._claimed: dict[str, Message] = {}
        self._in_hand: tuple[Batch, asyncio.Task[None]] | None = None

    @property
    def agent(self) -> str:
        return self._agent

    def stop(self) -> None:
        """After the turn in hand; what was claimed besides is given back."""
        self._stopping.set()

    def look_up(self) -> None:
        """Look at once whether what is in hand is still ours: somebody may have cancelled it."""
        self._look.set()

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
        if not await self._leader.lead():
            await self._sleep(min(PAUSE_S, self._deps.lease_s / 2))
            return
        mail = await self._claim()
        if not mail:
            return
        if not await self._leader.lead():
            # The wait was longer than it seemed, and somebody else has the lane now.
            await self._release(mail)
            return
        self._claimed = {message.id: message for message in mail}
        beat = asyncio.create_task(self._keep())
        try:
            await self._work(group(mail))
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
            self._claimed = {}

    async def _claim(self) -> list[Message]:
        """All that waits, in the inbox and in the rooms; one's own posts need no answer."""
        agent, lease = self._agent, self._deps.lease_s
        rooms = [queues.room_of(team) for team in self._deps.directory.teams_of(agent)]
        claiming = asyncio.ensure_future(
            self._room.claim(
                queues.inbox(agent),
                *rooms,
                limit=AT_ONCE,
                wait=min(WAIT_S, lease / 2),
                lease=lease,
                subscription=agent if rooms else None,
                worker=self._leader.holder,
            )
        )
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
            return []
        mail, own = [], []
        for message in claiming.result():
            (own if message.subscription and message.from_agent == agent else mail).append(message)
        if own:
            done = tuple(c.Complete(**outcomes.held(message, agent)) for message in own)
            await self._room.run(c.Unit(commands=done, actor=agent))
        return mail

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

    async def _work(self, batches: list[Batch]) -> None:
        try:
            first = True
            while batches and not self._stopping.is_set():
                if not first:
                    # The turn before may have been long.
                    await self._extend()
                first = False
                batch = self._still_ours(batches[0])
                if batch is None:
                    batches.pop(0)
                    continue
                batches[0] = batch
                done = await self._serve(batch)
                if done:
                    batches.pop(0)
                    for message in batch.messages:
                        self._claimed.pop(message.id, None)
                else:
                    return
        finally:
            for batch in batches:
                await self._give_back(batch)

    def _still_ours(self, batch: Batch) -> Batch | None:
        """Without what was cancelled or taken over while it waited; None when nobody wants an answer."""
        if batch.primary.id not in self._claimed:
            company = [message for message in batch.company if message.id in self._claimed]
            people = [message for message in company if message.subscription is None]
            primary = next(iter(people or company), None)
            if primary is None:
                return None
            return Batch(primary, tuple(message for message in company if message is not primary))
        kept = tuple(message for message in batch.company if message.id in self._claimed)
        return batch if len(kept) == len(batch.company) else Batch(batch.primary, kept)

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
        return True

    async def _refuse(self, batch: Batch, error: Exception) -> None:
        """What we ourselves cannot do counts as an attempt, or it would be tried for ever."""
        for message in batch.messages:
            with contextlib.suppress(ClaimLost):
                reason = f"{type(error).__name__}: {error}"
                fail = c.Fail(reason=reason, kind="internal", **outcomes.held(message, self._agent))
                await self._room.run(fail)

    async def _give_back(self, batch: Batch) -> None:
        await self._release(batch.messages)

    async def _release(self, mail: Sequence[Message]) -> None:
        for message in mail:
            with contextlib.suppress(PostroomError):
                await self._room.run(c.Release(**outcomes.held(message, self._agent)))

    def _is_cancelled(self) -> bool:
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
