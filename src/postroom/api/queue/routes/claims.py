"""Claim, and what the holder of a claim may do: complete, fail, release, extend, snooze. Also replay."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from postroom.api.claim_wait import unless_gone
from postroom.api.queue import views
from postroom.api.queue.bodies import (
    ClaimBody,
    ClaimWish,
    Completion,
    CompletionBatchBody,
    Extension,
    FailureReport,
    Snoozing,
)
from postroom.api.queue.envelopes import Many, One, Problem, many, one, problem_of
from postroom.api.queue.gate import Calling, needs
from postroom.api.queue.routes.messages import QUEUE
from postroom.api.responses import Json
from postroom.errors import PostroomError
from postroom.services.claims import Claims, CompletedWork
from postroom.services.dead_letters import DeadLetters
from postroom.services.messages import FoundMessage

MESSAGE = "/scopes/{scope_id}/messages/{message_id}"
ONE: dict[int | str, dict[str, Any]] = {200: {"model": One[views.MessageView]}}


class CompletionView(BaseModel):
    """What became of one of many: its message, or why it was refused."""

    message_id: str
    status: int
    """As the completion of this one alone would have been answered."""
    message: views.MessageView | None = None
    error: Problem | None = None


def _completion(done: CompletedWork, outcome: FoundMessage | PostroomError, call: Calling) -> dict[str, Any]:
    if isinstance(outcome, PostroomError):
        return {
            "message_id": done.message_id,
            "status": outcome.http_status,
            "error": problem_of(outcome),
        }
    return {"message_id": done.message_id, "status": 200, "message": views.message(outcome, call.ids)}


def add(routes: APIRouter) -> None:
    @routes.post(
        QUEUE + "/claim",
        openapi_extra=needs(Claims.CLAIM),
        responses={200: {"model": Many[views.MessageView]}},
    )
    async def claim(
        call: Calling, request: Request, scope_id: str, queue_id: str, body: ClaimWish | None = None
    ) -> Json:
        """Take messages, each with a `claim_token`. Nothing to be had is an empty list; `wait_s` waits."""
        wish, claims = body or ClaimWish(), call.services.claims
        work = claims.claim(
            call.caller,
            [(scope_id, queue_id)],
            limit=wish.batch_size,
            lease_s=wish.visibility_timeout_s,
            worker=wish.worker,
            subscription=wish.subscription,
            labels=tuple(wish.labels.items()),
            wait_s=wish.wait_s,
        )
        found = await unless_gone(request, work, lambda gone: claims.give_back(call.caller, gone))
        return many([views.message(each, call.ids, token=True) for each in found or []])

    @routes.post(MESSAGE + "/complete", openapi_extra=needs(Claims.COMPLETE), responses=ONE)
    async def complete(call: Calling, scope_id: str, message_id: str, body: Completion | None = None) -> Json:
        """The work is done. Saying it again with the same token is no error."""
        done = body or Completion()
        found = await call.services.claims.complete(
            call.caller, message_id, done.claim_token, scope=scope_id, result=done.result
        )
        return one(views.message(found, call.ids))

    @routes.post(
        "/scopes/{scope_id}/messages/complete",
        openapi_extra=needs(Claims.COMPLETE_MANY),
        responses={200: {"model": Many[CompletionView]}},
    )
    async def complete_many(call: Calling, scope_id: str, body: CompletionBatchBody) -> Json:
        """The work on many messages is done, with one commit. For each in order its `message`, or the `error`
        that it alone was refused with."""
        done = [CompletedWork(each.message_id, each.claim_token, each.result) for each in body.messages]
        found = await call.services.claims.complete_many(call.caller, scope_id, done)
        return many([_completion(each, outcome, call) for each, outcome in zip(done, found, strict=True)])

    @routes.post(MESSAGE + "/fail", openapi_extra=needs(Claims.FAIL), responses=ONE)
    async def fail(call: Calling, scope_id: str, message_id: str, body: FailureReport | None = None) -> Json:
        """It did not work: again after a pause while attempts are left, else a dead letter."""
        report = body or FailureReport()
        found = await call.services.claims.fail(
            call.caller,
            message_id,
            report.claim_token,
            scope=scope_id,
            reason=report.reason,
            retry=report.retry,
            delay_s=report.delay_s,
        )
        return one(views.message(found, call.ids))

    @routes.post(MESSAGE + "/release", openapi_extra=needs(Claims.RELEASE), responses=ONE)
    async def release(call: Calling, scope_id: str, message_id: str, body: ClaimBody | None = None) -> Json:
        """Give it back untouched; the attempt does not count."""
        token = body.claim_token if body else None
        found = await call.services.claims.release(call.caller, message_id, token, scope=scope_id)
        return one(views.message(found, call.ids))

    @routes.post(MESSAGE + "/extend", openapi_extra=needs(Claims.EXTEND), responses=ONE)
    async def extend(call: Calling, scope_id: str, message_id: str, body: Extension | None = None) -> Json:
        """Keep the claim for another lease from now."""
        wish = body or Extension()
        seconds = wish.extend_s if wish.extend_s is not None else wish.visibility_timeout_s
        found = await call.services.claims.extend(
            call.caller, message_id, wish.claim_token, scope=scope_id, lease_s=seconds
        )
        return one(views.message(found, call.ids))

    @routes.post(MESSAGE + "/snooze", openapi_extra=needs(Claims.SNOOZE), responses=ONE)
    async def snooze(call: Calling, scope_id: str, message_id: str, body: Snoozing) -> Json:
        """Later, without counting an attempt."""
        found = await call.services.claims.snooze(
            call.caller,
            message_id,
            body.claim_token,
            scope=scope_id,
            seconds=body.seconds,
            reason=body.reason,
        )
        return one(views.message(found, call.ids))

    @routes.post(MESSAGE + "/replay", openapi_extra=needs(DeadLetters.REPLAY), responses=ONE)
    async def replay(call: Calling, scope_id: str, message_id: str) -> Json:
        """A dead letter back to the queue it came from, with a clean slate of attempts."""
        [found] = await call.services.dead_letters.replay(call.caller, message_id, scope=scope_id)
        return one(views.message(found, call.ids))

    @routes.post(MESSAGE + "/discard", openapi_extra=needs(DeadLetters.DISCARD), responses=ONE)
    async def discard(call: Calling, scope_id: str, message_id: str) -> Json:
        """Give a dead letter up for good."""
        [found] = await call.services.dead_letters.discard(call.caller, message_id, scope=scope_id)
        return one(views.message(found, call.ids))

    @routes.post("/scopes/{scope_id}/dead-letters/replay", openapi_extra=needs(DeadLetters.REPLAY_ALL))
    async def replay_all(
        call: Calling, scope_id: str, limit: Annotated[int, Query(ge=1, le=1000)] = 1000
    ) -> Json:
        """All dead letters of a scope, up to a limit, back to where they came from."""
        ids = await call.services.dead_letters.replay_all(call.caller, scope_id, limit)
        return one({"replayed": ids})
