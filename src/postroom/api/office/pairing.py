"""Pairing: who has asked to write to the office, and who may."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.error_responses import needs
from postroom.api.openapi import AnswerModel, Id, ObjectBody, Ok, answers
from postroom.api.responses import OK, Json
from postroom.office.pairing import CodeNotFound, PairingNotFound
from postroom.services.office_documents import pairing_document


class PairingCode(ObjectBody):
    code: Annotated[str, Field(min_length=1, max_length=100)]


def _not_found(sentence: str) -> Json:
    return Json({"ok": False, "error": sentence, "code": "NOT_FOUND"}, status_code=404)


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["pairing"])
    pairings = deps.services.pairing

    @api.get("/api/pairing", responses=answers(AnswerModel))
    async def list_pairings(caller: Asked) -> Json:
        """Strangers who wait with a code, and people who may write."""
        return Json(pairing_document(await pairings.list_all(caller)))

    @api.post(
        "/api/pairing/approve",
        responses=answers(Ok, 400, 404),
        openapi_extra={**needs("code is required", "code"), "x-ok": True},
    )
    async def approve(caller: Asked, given: PairingCode) -> Json:
        """Let the person with this code write."""
        try:
            pairing = await pairings.approve(caller, given.code)
        except CodeNotFound:
            return _not_found(f"Pairing code not found: {given.code.upper()}")
        return Json({"ok": True, "entry": pairing.document()})

    @api.delete("/api/pairing/pending/{code}", responses=answers(Ok, 404))
    async def dismiss(caller: Asked, code: Id) -> Json:
        """Forget a stranger who waits."""
        try:
            await pairings.dismiss(caller, code)
        except CodeNotFound:
            return _not_found("Pending pairing not found")
        return Json(OK)

    @api.delete("/api/pairing/{channel}/{sender}", responses=answers(Ok, 404))
    async def revoke(caller: Asked, channel: Id, sender: Id) -> Json:
        """The person may not write any more."""
        try:
            await pairings.revoke(caller, channel, sender)
        except PairingNotFound:
            return _not_found("Pairing not found")
        return Json(OK)

    return api
