"""What the guards have stopped, today's budgets, and the switch that pauses everybody."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, ObjectBody, Ok, answers
from postroom.api.responses import Json
from postroom.services.office_documents import guards_document

Conversation = Annotated[str, Field(min_length=1, max_length=1000, description="As the listing names it")]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]


class ConversationBody(ObjectBody):
    conversation: Conversation


class BudgetLimitsBody(ConversationBody):
    """At least one of the three."""

    usd: Dollars | None = None
    messages: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    hops: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class BudgetLimit(ObjectBody):
    account: Annotated[str, Field(min_length=1, max_length=500, examples=["agent/coder/2026-11-16"])]
    usd: Dollars


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["guards"])
    budgets = deps.services.budgets

    @api.get("/api/guards", responses=answers(AnswerModel))
    async def look(caller: Asked) -> Json:
        """Whether everybody pauses, the conversations that wait for a person, and today's budgets."""
        return Json(guards_document(await budgets.overview(caller)))

    @api.post("/api/guards/continue", responses=answers(Ok, 400, 404, 409))
    async def go_on(caller: Asked, given: ConversationBody) -> Json:
        """Let a paused conversation go on, as far again as the guard allows."""
        return Json({"ok": True, "messages": await budgets.resume(caller, given.conversation)})

    @api.post("/api/guards/raise", responses=answers(Ok, 400, 404, 409))
    async def raise_limit(caller: Asked, given: BudgetLimitsBody) -> Json:
        """New limits for one conversation; if it was paused, it goes on."""
        count = await budgets.raise_limits(
            caller, given.conversation, usd=given.usd, messages=given.messages, hops=given.hops
        )
        return Json({"ok": True, "messages": count})

    @api.post("/api/guards/stop", responses=answers(Ok, 400, 404, 409))
    async def stop(caller: Asked, given: ConversationBody) -> Json:
        """End a conversation for good: what is open of it is cancelled."""
        return Json({"ok": True, "messages": await budgets.stop(caller, given.conversation)})

    @api.post("/api/guards/budget", responses=answers(Ok, 400, 404, 409))
    async def raise_budget(caller: Asked, given: BudgetLimit) -> Json:
        """A higher limit for one of today's budgets."""
        return Json({"ok": True, "messages": await budgets.raise_budget(caller, given.account, given.usd)})

    @api.post("/api/guards/pause-all", responses=answers(Ok))
    async def pause_all(caller: Asked) -> Json:
        """No agent begins a turn any more; mail is still taken in."""
        return Json({"ok": True, "changed": await budgets.pause_all(caller)})

    @api.post("/api/guards/resume-all", responses=answers(Ok))
    async def resume_all(caller: Asked) -> Json:
        """Everybody goes on."""
        return Json({"ok": True, "messages": await budgets.resume_all(caller)})

    return api
