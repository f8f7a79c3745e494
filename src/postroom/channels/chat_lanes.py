"""Messages of one queue, handled one after the other for each chat and side by side for different chats.

Whoever runs this is the only one to claim from the queue. A message is held until it is settled: one that
cannot go on just now is tried again in its place, so nothing of its chat overtakes it.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from postroom.channels.pauses import Pauses, Stopping
from postroom.errors import ClaimLost, MessageNotFound, StoreClosed, WrongState
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.kernel.states import State
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.channels")

LEASE_S = 30.0
WAIT_S = 5.0
MOST_HELD = 500
AT_ONCE = 16
GRACE_S = 10.0
TRIES = 5
PAUSE_S = 1.0

# Settles the message (completes it, fails it), or raises.
Handle = Callable[[Message], Awaitable[None]]


class ChatLanes:
    def __init__(
        self,
        room: RoomPort,
        queue: str,
        key: Callable[[Message], str],
        handle: Handle,
        pauses: Pauses,
        *,
        tell_failure: Callable[[Message], Sequence[c.Command]] = lambda message: (),
    ) -> None:
        """What `tell_failure` makes commits with the end of a message that is given up."""
        self._tell_failure = tell_failure
        self._room = room
        self._queue = queue
        self._key = key
        self._handle = handle
        self._pauses = pauses
        self._lanes: dict[str, deque[Message]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._held: dict[str, Message] = {}
        self._freed = asyncio.Event()
        self._turns = asyncio.Semaphore(AT_ONCE)
        # Of each chat what a process that is gone still holds: it comes first.
        self._awaited: dict[str, set[str]] = {}
        # Their order, which times do not tell: what came together has the same.
        self._ranks: dict[str, int] = {}

    async def run(self) -> None:
        """Until cancelled; then what is under way may end, and the rest is given back."""
        await self._find_claims_of_others()
        keeping = asyncio.create_task(self._keep_claims())
        try:
            while True:
                await self._take()
        finally:
            self._pauses.stop()
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            await self._finish()

    async def _take(self) -> None:
        room_left = MOST_HELD - len(self._held)
        if room_left <= 0:
            self._freed.clear()
            await self._freed.wait()
            return
        messages = await self._room.claim(self._queue, limit=room_left, wait=WAIT_S, lease=LEASE_S)
        for message in messages:
            self._add(message)
        if self._awaited:
            await self._look_for_awaited()

    def _add(self, message: Message) -> None:
        key = self._key(message)
        lane = self._lanes.setdefault(key, deque())
        self._held[message.id] = message
        if message.id in self._awaited.get(key, ()):
            # It was here before the others, which wait for it.
            own = self._ranks[message.id]
            place = sum(1 for waiting in lane if self._ranks.get(waiting.id, len(self._ranks)) < own)
            lane.insert(place, message)
            self._forget_awaited(key, message.id)
        else:
            lane.append(message)
        self._start(key)

    def _start(self, key: str) -> None:
        if key in self._awaited or key in self._tasks or not self._lanes.get(key):
            return
        task = asyncio.create_task(self._work(key))
        self._tasks[key] = task

    async def _work(self, key: str) -> None:
        lane = self._lanes[key]
        try:
            while lane and not self._pauses.stopping:
                message = lane[0]
                if message.id in self._held:
                    async with self._turns:
                        await self._work_on(message)
                if lane and lane[0] is message:
                    lane.popleft()
        except (Stopping, StoreClosed):
            pass
        finally:
            del self._tasks[key]
            if not lane:
                self._lanes.pop(key, None)

    async def _work_on(self, message: Message) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                await self._handle(message)
            except (ClaimLost, WrongState, MessageNotFound) as error:
                log.info("%s: message %s was taken away: %s", self._queue, message.id, error)
            except (Stopping, StoreClosed):
                raise
            except Exception:
                log.exception("%s: message %s failed, try %d of %d", self._queue, message.id, attempt, TRIES)
                if attempt < TRIES:
                    await self._pauses.sleep(PAUSE_S * 2 ** (attempt - 1))
                    continue
                await self._give_up(message)
            break
        self._let_go(message.id)

    async def _give_up(self, message: Message) -> None:
        reason = f"it failed {TRIES} times; the log says why"
        fail = c.Fail(
            message_id=message.id,
            token=message.claim_token or "",
            reason=reason,
            kind="channel_error",
            retry=False,
            actor=self._room.actor,
        )
        commands = (fail, *self._tell_failure(message))
        with contextlib.suppress(ClaimLost, WrongState, MessageNotFound):
            await self._room.run(c.Unit(commands=commands, actor=self._room.actor))

    def _let_go(self, message_id: str) -> None:
        self._held.pop(message_id, None)
        self._freed.set()

    async def _keep_claims(self) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 3)
            for message in list(self._held.values()):
                extend = c.Extend(
                    message_id=message.id,
                    token=message.claim_token or "",
                    lease_s=LEASE_S,
                    actor=self._room.actor,
                )
                try:
                    await self._room.run(extend)
                except (ClaimLost, WrongState, MessageNotFound):
                    # Somebody cancelled or settled it. Whoever works on it finds out at the next step.
                    self._let_go(message.id)
                except StoreClosed:
                    return
                except Exception:
                    # The lease has two more tries.
                    log.exception("%s: the claim of %s was not renewed", self._queue, message.id)

    async def _find_claims_of_others(self) -> None:
        cursor: str | None = None
        while True:
            page = await self._room.messages(
                queue=self._queue, state=[State.CLAIMED], cursor=cursor, limit=500
            )
            for message in page.messages:
                self._awaited.setdefault(self._key(message), set()).add(message.id)
                self._ranks[message.id] = len(self._ranks)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _look_for_awaited(self) -> None:
        """What will not come back, because it ended elsewhere, is no longer waited for."""
        for key, ids in list(self._awaited.items()):
            for message_id in list(ids):
                try:
                    state = (await self._room.get(message_id)).state
                except MessageNotFound:
                    state = None
                if state not in (State.CLAIMED, State.PENDING, State.DELAYED):
                    self._forget_awaited(key, message_id)
                    self._start(key)

    def _forget_awaited(self, key: str, message_id: str) -> None:
        ids = self._awaited[key]
        ids.discard(message_id)
        if not ids:
            del self._awaited[key]

    async def _finish(self) -> None:
        tasks = list(self._tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for message in list(self._held.values()):
            release = c.Release(
                message_id=message.id, token=message.claim_token or "", actor=self._room.actor
            )
            with contextlib.suppress(ClaimLost, WrongState, MessageNotFound, StoreClosed):
                await self._room.run(release)
        self._held.clear()
        self._lanes.clear()
