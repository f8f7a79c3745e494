"""Replies that no platform confirmed: listed, sent again, or let be."""

from fastapi import APIRouter

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, Id, Ok, answers
from postroom.api.responses import OK, Json
from postroom.services.office_documents import unconfirmed_document


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["channels"])
    unconfirmed = deps.services.unconfirmed

    @api.get("/api/unconfirmed", responses=answers(AnswerModel))
    async def list_unconfirmed(caller: Asked) -> Json:
        """Replies that may not have arrived, or were given up, the oldest first."""
        return Json([unconfirmed_document(each) for each in await unconfirmed.list_all(caller)])

    @api.post("/api/unconfirmed/{reply_id}/resend", responses=answers(Ok, 404))
    async def resend(caller: Asked, reply_id: Id) -> Json:
        """Send it again. What may have arrived comes with a word that it may be a duplicate."""
        await unconfirmed.resend(caller, reply_id)
        return Json(OK)

    @api.post("/api/unconfirmed/{reply_id}/dismiss", responses=answers(Ok, 404))
    async def dismiss(caller: Asked, reply_id: Id) -> Json:
        """Let it be: it is not sent, and not listed any more."""
        await unconfirmed.dismiss(caller, reply_id)
        return Json(OK)

    return api
