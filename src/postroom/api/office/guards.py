"""What the guards have stopped, today's budgets, and the switch that pauses everybody."""

from typing import Annotated

import msgspec
from fastapi import APIRouter
from pydantic import Field

from postroom.api.dependencies import Dependencies
from postroom.api.openapi import AnswerModel, ObjectBody, Ok, answers
from postroom.api.responses import Json
from postroom.errors import NotFound
from postroom.office import queues
from postroom.office.guards import pauses

Conversation = Annotated[str, Field(min_length=1, max_length=1000, description="As the listing names it")]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]


class Named(ObjectBody):
    conversation: Conversation


class BudgetLimitsBody(Named):
    """At least one of the three."""

    usd: Dollars | None = None
    messages: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    hops: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class BudgetLimit(ObjectBody):
    account: Annotated[str, Field(min_length=1, max_length=500, examples=["agent/coder/2026-11-16"])]
    usd: Dollars


class ConversationNotFound(NotFound):
    """There is no conversation "{conversation}". See postroom guards list, or postroom trace."""


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["guards"])
    room = front.room

    async def known(conversation: str) -> str:
        page = await room.messages(scope=queues.SCOPE, correlation_id=conversation, limit=1)
        if not page.messages:
            raise ConversationNotFound(conversation=conversation)
        return conversation

    @api.get("/api/guards", responses=answers(AnswerModel))
    async def look() -> Json:
        """Whether everybody pauses, the conversations that wait for a person, and today's budgets."""
        rules, now = front.staff.office.guards, front.clock.now()
        return Json(
            {
                "paused": await pauses.paused(room),
                "conversations": [
                    msgspec.to_builtins(one) for one in await pauses.paused_conversations(room)
                ],
                "budgets": [msgspec.to_builtins(one) for one in await pauses.budgets(room, rules, now)],
            }
        )

    @api.post("/api/guards/continue", responses=answers(Ok, 400, 404, 409))
    async def go_on(given: Named) -> Json:
        """Let a paused conversation go on, as far again as the guard allows."""
        return Json({"ok": True, "messages": await pauses.resume(room, await known(given.conversation))})

    @api.post("/api/guards/raise", responses=answers(Ok, 400, 404, 409))
    async def raise_limit(given: BudgetLimitsBody) -> Json:
        """New limits for one conversation; if it was paused, it goes on."""
        count = await pauses.raise_limit(
            room, await known(given.conversation), usd=given.usd, messages=given.messages, hops=given.hops
        )
        return Json({"ok": True, "messages": count})

    @api.post("/api/guards/stop", responses=answers(Ok, 400, 404, 409))
    async def stop(given: Named) -> Json:
        """End a conversation for good: what is open of it is cancelled."""
        count = await pauses.stop(room, await known(given.conversation))
        front.staff.office.look_up()
        return Json({"ok": True, "messages": count})

    @api.post("/api/guards/budget", responses=answers(Ok, 400, 404, 409))
    async def raise_budget(given: BudgetLimit) -> Json:
        """A higher limit for one of today's budgets."""
        return Json({"ok": True, "messages": await pauses.raise_budget(room, given.account, given.usd)})

    @api.post("/api/guards/pause-all", responses=answers(Ok))
    async def pause_all() -> Json:
        """No agent begins a turn any more; mail is still taken in."""
        return Json({"ok": True, "changed": await pauses.pause_all(room)})

    @api.post("/api/guards/resume-all", responses=answers(Ok))
    async def resume_all() -> Json:
        """Everybody goes on."""
        return Json({"ok": True, "messages": await pauses.resume_all(room)})

    return api
