"""Review patterns, and reviews: listed, shown with the mark of what is seen, answered once."""

from typing import Any

from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.queue import views
from postroom.api.queue.bodies import RequestBody, Text
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.services.patterns import Patterns
from postroom.services.reviews import Reviews

PATTERNS = "/scopes/{scope_id}/hitl-patterns"
REVIEW = "/scopes/{scope_id}/messages/{message_id}/review"


class NewPattern(RequestBody):
    name: Text
    version: str = "1.0"
    spec: dict[str, Any]


class Parameters(RequestBody):
    parameters: dict[str, Any] = Field(default_factory=dict)


class AnswerBody(RequestBody):
    answer: dict[str, Any] = Field(
        description="A value for each field of the spec", examples=[{"decision": "approve"}]
    )
    seen: str | None = Field(
        default=None, description="`seen` of the review, so that nothing else is decided"
    )
    claim_token: Text | None = None


def add(routes: APIRouter) -> None:
    _add_patterns(routes)
    _add_reviews(routes)


def _add_patterns(routes: APIRouter) -> None:
    @routes.post(PATTERNS, status_code=201, openapi_extra=needs(Patterns.CREATE))
    async def create_pattern(call: Calling, scope_id: str, body: NewPattern) -> Json:
        """Register a version of a pattern. It never changes; open reviews keep the one they came with."""
        made = await call.services.patterns.create(call.caller, scope_id, body.name, body.version, body.spec)
        return one(views.pattern(made, call.ids), status=201)

    @routes.get(PATTERNS, openapi_extra=needs(Patterns.LIST))
    async def list_patterns(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """All versions of all patterns."""
        found = await call.services.patterns.list_all(call.caller, scope_id)
        return many(*cut([views.pattern(each, call.ids) for each in found], cursor, limit))

    @routes.get(PATTERNS + "/{pattern_id}", openapi_extra=needs(Patterns.READ))
    async def read_pattern(call: Calling, scope_id: str, pattern_id: str) -> Json:
        """By `name@version`, or the newest by its name alone."""
        found = await call.services.patterns.read(call.caller, scope_id, pattern_id)
        return one(views.pattern(found, call.ids))

    @routes.post(PATTERNS + "/{pattern_id}/preview", openapi_extra=needs(Patterns.PREVIEW))
    async def preview_pattern(call: Calling, scope_id: str, pattern_id: str, body: Parameters) -> Json:
        """The spec as a reviewer would get it with these parameters."""
        spec = await call.services.patterns.preview(call.caller, scope_id, pattern_id, body.parameters)
        return one(spec)

    @routes.delete(PATTERNS + "/{pattern_id}", status_code=204, openapi_extra=needs(Patterns.DELETE))
    async def delete_pattern(call: Calling, scope_id: str, pattern_id: str) -> Response:
        """One version; reviews that were made with it are not touched."""
        await call.services.patterns.delete(call.caller, scope_id, pattern_id)
        return Response(status_code=204)


def _add_reviews(routes: APIRouter) -> None:
    @routes.get("/scopes/{scope_id}/reviews", openapi_extra=needs(Reviews.LIST))
    async def list_reviews(
        call: Calling, scope_id: str, limit: Limit = 50, cursor: Cursor = None, mine: bool = False
    ) -> Json:
        """Reviews that wait for an answer, the most urgent first; `mine`: those assigned to this caller."""
        found = await call.services.reviews.list_open(call.caller, scope_id, mine=mine)
        return many(*cut([views.review(each, call.ids) for each in found], cursor, limit))

    @routes.get(REVIEW, openapi_extra=needs(Reviews.READ))
    async def read_review(call: Calling, scope_id: str, message_id: str) -> Json:
        """What a reviewer sees, and when it is answered, who decided what, when, seeing what."""
        found = await call.services.reviews.read(call.caller, message_id, scope=scope_id)
        return one({**views.review(found, call.ids), "decided": views.decision(found)})

    @routes.post(REVIEW, openapi_extra=needs(Reviews.ANSWER))
    async def answer_review(call: Calling, scope_id: str, message_id: str, body: AnswerBody) -> Json:
        """Decide. A second answer, and one that comes too late, is refused and changes nothing."""
        found = await call.services.reviews.answer(
            call.caller, message_id, body.answer, scope=scope_id, seen=body.seen, token=body.claim_token
        )
        return one(views.message(found, call.ids))
