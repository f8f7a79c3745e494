"""Claim, and what the holder of a claim may do: complete, fail, release, extend, snooze."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from postroom.errors import ClaimLost, InvalidField, PostroomError
from postroom.kernel import checks, service_commands
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.reviews import answering
from postroom.kernel.rows import Row, Stored
from postroom.kernel.states import State
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, ServiceCall
from postroom.services.messages import FEW, FoundMessage, MessageService
from postroom.services.reviews import answer_command, is_agent, require_person

# The most that one call from outside may claim; the owner at the shell, as much as the room gives.
MOST_CLAIMED = 100
MOST_WAIT_S = 60.0

MOST_COMPLETED = 1000

Holding = dict[str, Any]


class CompletedWork(msgspec.Struct, frozen=True):
    """One of many messages that are done; without a token it is held by the caller's own name."""

    message_id: str
    token: str | None = None
    result: Any = None


class Claims(MessageService):
    CLAIM = Operation("message.claim", Permission.CONSUME)
    COMPLETE = Operation("message.complete", Permission.CONSUME)
    COMPLETE_MANY = Operation("message.complete_many", Permission.CONSUME)
    FAIL = Operation("message.fail", Permission.CONSUME)
    RELEASE = Operation("message.release", Permission.CONSUME)
    EXTEND = Operation("message.extend", Permission.CONSUME)
    SNOOZE = Operation("message.snooze", Permission.CONSUME)

    async def claim(
        self,
        caller: Caller,
        queues: Sequence[tuple[str, str]],
        *,
        limit: int = 1,
        lease_s: float | None = None,
        subscription: str | None = None,
        labels: Sequence[tuple[str, Any]] = (),
        worker: str | None = None,
        wait_s: float = 0.0,
    ) -> list[FoundMessage]:
        """Take messages from the first of these queues (scope and name) that have any, each with its token.

        Nothing to be had is an empty list; with `wait_s` it is waited for.
        """
        async with self._call(caller, self.CLAIM) as call:

            def find(access: Access) -> tuple[str, ...]:
                paths = tuple(access.queue(*each).path for each in queues)
                if not paths:
                    raise InvalidField("queues", "names none, at least 1 is needed")
                checks.check_seconds("wait_s", wait_s, least=0, most=MOST_WAIT_S)
                most = self._context.room.limits.claim_batch if caller.is_at_shell else MOST_CLAIMED
                checks.check_count("limit", limit, least=1, most=most)
                return paths

            command = c.Claim(
                queues=await call.look(find),
                limit=limit,
                lease_s=lease_s,
                worker=caller.sign_claim(worker),
                subscription=subscription,
                labels=tuple(labels),
                audit=call.entry(),
                **call.who,
            )
            taken = await self._take(command, wait_s)
            if taken:
                call.keep()
            call.details = {"claimed": []}
            if is_agent(caller):
                taken = await self._without_reviews(caller, taken)
            return [self._found(stored, with_token=True) for stored in taken]

    async def _without_reviews(self, caller: Caller, taken: list[Stored]) -> list[Stored]:
        """An agent that held a question would keep people from answering it."""
        reviews = [stored for stored in taken if answering.is_review(stored.content)]
        await self.give_back(caller, [self._found(stored, with_token=True) for stored in reviews])
        return [stored for stored in taken if stored not in reviews]

    async def _take(self, command: c.Claim, wait_s: float) -> list[Stored]:
        """Nobody waits any more when the server is closing."""
        room, closing = self._context.room, self._context.closing
        if not wait_s:
            return await room.take(command)
        taking = asyncio.ensure_future(room.take(command, wait_s))
        ending = asyncio.ensure_future(closing.wait())
        try:
            await asyncio.wait((taking, ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            if not taking.done():
                taking.cancel()
                await asyncio.gather(taking, return_exceptions=True)
        return [] if taking.cancelled() else taking.result()

    async def give_back(self, caller: Caller, messages: Sequence[FoundMessage]) -> None:
        """For an entrance whose caller has gone meanwhile: else nobody had them until the lease ends."""
        held = [each.message for each in messages if each.message.claim_token is not None]
        releases = [
            self._context.room.run(
                c.Release(
                    message_id=message.id,
                    token=message.claim_token or "",
                    actor=caller.actor,
                    tenant=caller.tenant,
                )
            )
            for message in held
        ]
        # A claim that is lost by now needs no answer.
        await asyncio.gather(*releases, return_exceptions=True)

    async def complete(
        self,
        caller: Caller,
        message_id: str,
        token: str | None = None,
        *,
        scope: str | None = None,
        result: Any = None,
    ) -> FoundMessage:
        """The work is done. Saying it again with the same token is no error. The result of a review is its
        answer."""
        async with self._call(caller, self.COMPLETE) as call:
            stored = await call.look(lambda access: access.message(scope, message_id))
            command = _completing(call, stored, token, result)
            is_answer = isinstance(command, service_commands.AnswerReview)
            row = await call.commit(command, **({"review": True} if is_answer else {}))
            if isinstance(row, Row):
                return self._found(Stored(row, stored.content))
            return (await self._read(message_id))[0]

    async def complete_many(
        self, caller: Caller, scope: str, done: Sequence[CompletedWork]
    ) -> list[FoundMessage | PostroomError]:
        """As `complete`, for many of a scope with one commit: each message, or why it was refused. One that
        is refused keeps nobody else from being completed."""
        async with self._call(caller, self.COMPLETE_MANY) as call:

            def find(access: Access) -> list[Stored | PostroomError]:
                checks.check_count("messages", len(done), least=1, most=MOST_COMPLETED)
                return access.each_message(scope, [each.message_id for each in done])

            found = await call.look(find, quick=len(done) <= FEW)
            call.subject.message_id = call.subject.correlation_id = None
            call.details = {"messages": len(done)}
            outcomes = await self._complete_found(call, found, done)
            unread = [
                each.message_id for each, outcome in zip(done, outcomes, strict=True) if outcome is None
            ]
            read = {each.message.id: each for each in await self._read(*unread)} if unread else {}
            return [
                read[each.message_id] if outcome is None else outcome
                for each, outcome in zip(done, outcomes, strict=True)
            ]

    async def _complete_found(
        self, call: ServiceCall, found: Sequence[Stored | PostroomError], done: Sequence[CompletedWork]
    ) -> list[FoundMessage | PostroomError | None]:
        """None for what has to be read again: rules or an answer may have changed it."""
        room = self._context.room
        entry = call.entry()
        running: list[asyncio.Future[Any]] = []
        if entry is not None:
            audit = service_commands.RecordAudit(entries=(entry,), actor="audit", tenant=entry.tenant)
            running.append(room.run(audit))
            call.keep()
        for stored, each in zip(found, done, strict=True):
            try:
                if isinstance(stored, PostroomError):
                    raise stored
                running.append(room.run(_completing(call, stored, each.token, each.result)))
            except PostroomError as error:
                refused: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                refused.set_exception(error)
                running.append(refused)
        answers = (await asyncio.gather(*running, return_exceptions=True))[-len(done) :]
        outcomes: list[FoundMessage | PostroomError | None] = []
        for stored, answer in zip(found, answers, strict=True):
            if isinstance(answer, PostroomError):
                outcomes.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            elif isinstance(answer, Row) and isinstance(stored, Stored):
                outcomes.append(self._found(Stored(answer, stored.content)))
            else:
                outcomes.append(None)
        return outcomes

    async def fail(
        self,
        caller: Caller,
        message_id: str,
        token: str | None = None,
        *,
        scope: str | None = None,
        reason: str = "failed",
        kind: str | None = None,
        retry: bool = True,
        delay_s: float | None = None,
    ) -> FoundMessage:
        """It did not work: again after a pause while attempts are left, else a dead letter."""
        return await self._settle(
            caller,
            self.FAIL,
            (message_id, token, scope),
            lambda held: c.Fail(reason=reason, kind=kind, retry=retry, delay_s=delay_s, **held),
            reason=str(reason)[:200],
        )

    async def release(
        self, caller: Caller, message_id: str, token: str | None = None, *, scope: str | None = None
    ) -> FoundMessage:
        """Give it back untouched; the attempt does not count."""
        return await self._settle(
            caller, self.RELEASE, (message_id, token, scope), lambda held: c.Release(**held)
        )

    async def extend(
        self,
        caller: Caller,
        message_id: str,
        token: str | None = None,
        *,
        scope: str | None = None,
        lease_s: float | None = None,
    ) -> FoundMessage:
        """Keep the claim for another lease from now."""
        return await self._settle(
            caller, self.EXTEND, (message_id, token, scope), lambda held: c.Extend(lease_s=lease_s, **held)
        )

    async def snooze(
        self,
        caller: Caller,
        message_id: str,
        token: str | None = None,
        *,
        seconds: float,
        scope: str | None = None,
        reason: str | None = None,
    ) -> FoundMessage:
        """Later, without counting an attempt."""
        return await self._settle(
            caller,
            self.SNOOZE,
            (message_id, token, scope),
            lambda held: c.Snooze(seconds=seconds, reason=reason, **held),
        )

    async def _settle(
        self,
        caller: Caller,
        operation: Operation,
        about: tuple[str, str | None, str | None],
        build: Callable[[Holding], c.Command],
        **details: Any,
    ) -> FoundMessage:
        message_id, token, scope = about
        async with self._call(caller, operation) as call:
            stored = await call.look(lambda access: access.message(scope, message_id))
            if operation in DECIDING and answering.is_review(stored.content):
                require_person(caller, stored)
            await call.commit(build(_holding(call, stored, token)), **details)
            return (await self._read(message_id))[0]


# What ends a review without an answer, or keeps people from giving one.
DECIDING = frozenset({Claims.FAIL, Claims.SNOOZE, Claims.EXTEND})


def _completing(call: ServiceCall, stored: Stored, token: str | None, result: Any) -> c.Command:
    """The result of a review is its answer."""
    held = _holding(call, stored, token)
    if answering.is_review(stored.content) and stored.row.state != State.COMPLETED:
        return answer_command(call, stored, result, token=held["token"])
    return c.Complete(result=result, **held)


def _holding(call: ServiceCall, stored: Stored, token: str | None) -> Holding:
    """What a command of the holder says: the token it was given, or the one that it holds by its own name."""
    row = stored.row
    if token is None:
        name, _, _ = (row.claimed_by or "").partition("#")
        if row.state != State.CLAIMED or name != call.caller.actor or row.token is None:
            state = "claimed by somebody else" if row.state == State.CLAIMED else row.state
            raise ClaimLost(message_id=row.id, state=state)
        token = row.token
    return {"message_id": row.id, "token": token, **call.who}
