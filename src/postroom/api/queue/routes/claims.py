"""Claim, and what the holder of a claim may do: complete, fail, release, extend, snooze. Also replay."""

from typing import Any

from fastapi import APIRouter, Request

from postroom.api.claim_wait import taken
from postroom.api.queue import views
from postroom.api.queue.access import needs
from postroom.api.queue.bodies import ClaimBody, ClaimWish, Completion, Extension, FailureReport, Snoozing
from postroom.api.queue.envelopes import Many, One, many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.routes import reviews
from postroom.api.queue.routes.messages import QUEUE, read, shown
from postroom.api.responses import Json
from postroom.errors import ClaimLost
from postroom.kernel import commands as c
from postroom.kernel.reviews import answering
from postroom.kernel.states import State

MESSAGE = "/scopes/{scope_id}/messages/{message_id}"
ONE: dict[int | str, dict[str, Any]] = {200: {"model": One[views.MessageView]}}


def _holder(visit: RequestContext, body: ClaimBody | None) -> dict[str, Any]:
    """What a command of the holder says: the token it was given, or the one its own key holds."""
    assert visit.stored is not None
    row = visit.stored.row
    token = body.claim_token if body is not None else None
    if token is None:
        name, _, _ = (row.claimed_by or "").partition("#")
        if row.state != State.CLAIMED or name != visit.caller.actor or row.token is None:
            state = (
                "claimed by somebody else" if row.state == State.CLAIMED else views.state(State(row.state))
            )
            raise ClaimLost(message_id=row.id, state=state)
        token = row.token
    return {"message_id": row.id, "token": token, **visit.who}


def add(routes: APIRouter) -> None:
    @routes.post(
        QUEUE + "/claim",
        openapi_extra=needs("consume", "message.claim"),
        responses={200: {"model": Many[views.MessageView]}},
    )
    async def claim(
        visit: Visiting, request: Request, scope_id: str, queue_id: str, body: ClaimWish | None = None
    ) -> Json:
        """Take messages, each with a `claim_token`. Nothing to be had is an empty list; `wait_s` waits."""
        wish = body or ClaimWish()
        actor = visit.caller.actor
        command = c.Claim(
            queues=(visit.queue.path,),
            limit=wish.batch_size,
            lease_s=wish.visibility_timeout_s,
            worker=f"{actor}#{wish.worker}" if wish.worker else actor,
            subscription=wish.subscription,
            labels=tuple(wish.labels.items()),
            **visit.who,
        )
        found = await taken(visit.house.room, request, command, wish.wait_s, visit.house.closing)
        visit.details = {"claimed": [stored.row.id for stored in found]}
        if len(found) == 1:
            row = found[0].row
            visit.message_id, visit.correlation_id = row.id, row.correlation_id
        return many([shown(visit, stored, token=True) for stored in found])

    @routes.post(MESSAGE + "/complete", openapi_extra=needs("consume", "message.complete"), responses=ONE)
    async def complete(
        visit: Visiting, scope_id: str, message_id: str, body: Completion | None = None
    ) -> Json:
        """The work is done. Saying it again with the same token is no error."""
        result = body.result if body is not None else None
        assert visit.stored is not None
        if answering.is_review(visit.stored.content) and visit.stored.row.state != State.COMPLETED:
            await reviews.answer(visit, result, token=_holder(visit, body)["token"])
        else:
            await visit.house.run(c.Complete(result=result, **_holder(visit, body)))
        return one(await read(visit, message_id))

    @routes.post(MESSAGE + "/fail", openapi_extra=needs("consume", "message.fail"), responses=ONE)
    async def fail(
        visit: Visiting, scope_id: str, message_id: str, body: FailureReport | None = None
    ) -> Json:
        """It did not work: again after a pause while attempts are left, else a dead letter."""
        report = body or FailureReport()
        visit.details = {"reason": report.reason[:200]}
        await visit.house.run(
            c.Fail(reason=report.reason, retry=report.retry, delay_s=report.delay_s, **_holder(visit, report))
        )
        return one(await read(visit, message_id))

    @routes.post(MESSAGE + "/release", openapi_extra=needs("consume", "message.release"), responses=ONE)
    async def release(visit: Visiting, scope_id: str, message_id: str, body: ClaimBody | None = None) -> Json:
        """Give it back untouched; the attempt does not count."""
        await visit.house.run(c.Release(**_holder(visit, body)))
        return one(await read(visit, message_id))

    @routes.post(MESSAGE + "/extend", openapi_extra=needs("consume", "message.extend"), responses=ONE)
    async def extend(visit: Visiting, scope_id: str, message_id: str, body: Extension | None = None) -> Json:
        """Keep the claim for another lease from now."""
        wish = body or Extension()
        seconds = wish.extend_s if wish.extend_s is not None else wish.visibility_timeout_s
        await visit.house.run(c.Extend(lease_s=seconds, **_holder(visit, wish)))
        return one(await read(visit, message_id))

    @routes.post(MESSAGE + "/snooze", openapi_extra=needs("consume", "message.snooze"), responses=ONE)
    async def snooze(visit: Visiting, scope_id: str, message_id: str, body: Snoozing) -> Json:
        """Later, without counting an attempt."""
        await visit.house.run(c.Snooze(seconds=body.seconds, reason=body.reason, **_holder(visit, body)))
        return one(await read(visit, message_id))

    @routes.post(MESSAGE + "/replay", openapi_extra=needs("manage", "message.replay"), responses=ONE)
    async def replay(visit: Visiting, scope_id: str, message_id: str) -> Json:
        """A dead letter back to the queue it came from, with a clean slate of attempts."""
        await visit.house.run(c.Replay(message_ids=(message_id,), **visit.who))
        return one(await read(visit, message_id))

    @routes.post(MESSAGE + "/discard", openapi_extra=needs("manage", "message.discard"), responses=ONE)
    async def discard(visit: Visiting, scope_id: str, message_id: str) -> Json:
        """Give a dead letter up for good."""
        await visit.house.run(c.Discard(message_ids=(message_id,), **visit.who))
        return one(await read(visit, message_id))

    @routes.post(
        "/scopes/{scope_id}/dead-letters/replay", openapi_extra=needs("manage", "dead_letters.replay")
    )
    async def replay_all(visit: Visiting, scope_id: str, limit: int = 1000) -> Json:
        """All dead letters of a scope, up to a limit, back to where they came from."""
        ids = await visit.house.run(c.Replay(scope=visit.scope.slug, limit=limit, **visit.who))
        visit.details = {"replayed": len(ids)}
        return one({"replayed": ids})
