"""What became of a message: whether work on it goes on, and what was answered so far."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, answers
from postroom.api.responses import Json
from postroom.services.office_documents import status_document

# Clients make these ids themselves, so there may be a slash in one.
ClientsId = Annotated[str, Path(min_length=1, max_length=200)]


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["messages"])

    @api.get("/api/message/{id:path}", responses=answers(AnswerModel, 404))
    async def look(
        caller: Asked,
        id: ClientsId,  # noqa: A002
        channel: Annotated[str, Query(min_length=1, max_length=200)] = "api",
    ) -> Json:
        """The conversation that a message began: `open` while any agent has mail of it, `paused` by what it
        waits for when only a person can let it go on. A reply that says why there is none has `failed`. What
        was answered together with another message of the same person has that one's replies."""
        return Json(status_document(await deps.services.conversations.status(caller, id, channel)))

    return api
