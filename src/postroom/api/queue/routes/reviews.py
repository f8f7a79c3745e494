"""Review patterns, and reviews: listed, shown with the mark of what is seen, answered once."""

from typing import Any

from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.queue import documents, views
from postroom.api.queue.access import needs, visible_page
from postroom.api.queue.bodies import RequestBody, Text
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.routes.messages import read as read_message
from postroom.api.queue.routes.messages import shown as message_shown
from postroom.api.responses import Json
from postroom.kernel import jsontext, service_commands
from postroom.kernel.model import Document
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.reviews import answering, patterns
from postroom.kernel.rows import Stored
from postroom.kernel.templates import filled, holes
from postroom.services.errors import AclDenied

PLACE = "/scopes/{scope_id}/hitl-patterns"
MOST_LOOKED = 5000


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


def _shown(visit: RequestContext, found: Document) -> dict[str, Any]:
    data = found.data
    return {
        "id": f"{data['name']}@{data['version']}",
        "scope_id": visit.opaque.scope(visit.scope.id),
        "name": data["name"],
        "version": data["version"],
        "spec": data["spec"],
        "parameters": sorted(holes(data["spec"])),
        "created_at": views.when(found.created_at),
    }


async def _pattern(visit: RequestContext, pattern_id: str) -> Document:
    """By `name@version`, or the newest by its name alone."""
    name, _, version = pattern_id.partition("@")
    return await visit.house.ask(
        lambda reader: patterns.find(reader, visit.tenant, visit.scope.id, name, version or None)
    )


def review_shown(visit: RequestContext, stored: Stored) -> dict[str, Any]:
    spec = jsontext.decode_any(stored.content.hitl_spec, {})
    return {
        **message_shown(visit, stored),
        "seen": answering.seen_mark(stored.content),
        "due_at": views.when(stored.row.expires_at),
        "assignee": spec.get("assignee"),
        "escalated": bool(spec.get("escalated")),
    }


def add(routes: APIRouter) -> None:
    _add_patterns(routes)
    _add_reviews(routes)


def _add_patterns(routes: APIRouter) -> None:
    @routes.post(PLACE, status_code=201, openapi_extra=needs("manage", "pattern.create"))
    async def create_pattern(visit: Visiting, scope_id: str, body: NewPattern) -> Json:
        """Register a version of a pattern. It never changes; open reviews keep the one they came with."""
        key = patterns.key_of(visit.scope.id, body.name, body.version)
        label = f"{body.name} {body.version}"
        made = await documents.file(
            visit,
            patterns.KIND,
            key,
            body.model_dump(),
            note={"name": body.name, "version": body.version},
            new=True,
            label=label,
            scope=visit.scope.slug,
        )
        return one(_shown(visit, made), status=201)

    @routes.get(PLACE, openapi_extra=needs("view", "pattern.list"))
    async def list_patterns(
        visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None
    ) -> Json:
        """All versions of all patterns."""
        found = await documents.listed(visit, patterns.KIND, f"{visit.scope.id}/")
        return many(*cut([_shown(visit, each) for each in found], cursor, limit))

    @routes.get(PLACE + "/{pattern_id}", openapi_extra=needs("view", "pattern.read"))
    async def read_pattern(visit: Visiting, scope_id: str, pattern_id: str) -> Json:
        """By `name@version`, or the newest by its name alone."""
        return one(_shown(visit, await _pattern(visit, pattern_id)))

    @routes.post(PLACE + "/{pattern_id}/preview", openapi_extra=needs("view", "pattern.preview"))
    async def preview_pattern(visit: Visiting, scope_id: str, pattern_id: str, body: Parameters) -> Json:
        """The spec as a reviewer would get it with these parameters."""
        found = await _pattern(visit, pattern_id)
        return one(filled(found.data["spec"], body.parameters))

    @routes.delete(PLACE + "/{pattern_id}", status_code=204, openapi_extra=needs("manage", "pattern.delete"))
    async def delete_pattern(visit: Visiting, scope_id: str, pattern_id: str) -> Response:
        """One version; reviews that were made with it are not touched."""
        found = await _pattern(visit, pattern_id)
        note = {"name": found.data["name"], "version": found.data["version"]}
        await documents.unfile(visit, patterns.KIND, found.key, "pattern", note=note, scope=visit.scope.slug)
        return Response(status_code=204)


def _add_reviews(routes: APIRouter) -> None:
    @routes.get("/scopes/{scope_id}/reviews", openapi_extra=needs("view", "review.list"))
    async def list_reviews(
        visit: Visiting, scope_id: str, limit: Limit = 50, cursor: Cursor = None, mine: bool = False
    ) -> Json:
        """Reviews that wait for an answer, the most urgent first; `mine`: those assigned to this caller."""

        def look(reader: Reader) -> list[Stored]:
            wanted = MessageFilter(
                tenant=visit.tenant, scope=visit.scope.slug, states=("pending", "claimed"), reviews=True
            )
            return visible_page(reader, visit, wanted, None, MOST_LOOKED)

        found = await visit.house.ask(look)
        found.sort(key=lambda stored: (stored.row.expires_at or 2**62, stored.row.seq))
        shown = [review_shown(visit, stored) for stored in found]
        if mine:
            shown = [each for each in shown if each["assignee"] and _is_assignee(visit, each["assignee"])]
        return many(*cut(shown, cursor, limit))

    @routes.get("/scopes/{scope_id}/messages/{message_id}/review", openapi_extra=needs("view", "review.read"))
    async def read_review(visit: Visiting, scope_id: str, message_id: str) -> Json:
        """What a reviewer sees, and when it is answered, who decided what, when, seeing what."""
        assert visit.stored is not None
        answering.spec_of(visit.stored.row, visit.stored.content)
        record = await visit.house.ask(
            lambda reader: reader.latest_record(visit.tenant, answering.RECORD, message_id)
        )
        decided = None
        if record is not None:
            decided = {**record.data, "at": views.when(record.data.get("at"))}
        return one({**review_shown(visit, visit.stored), "decided": decided})

    @routes.post(
        "/scopes/{scope_id}/messages/{message_id}/review", openapi_extra=needs("consume", "review.answer")
    )
    async def answer_review(visit: Visiting, scope_id: str, message_id: str, body: AnswerBody) -> Json:
        """Decide. A second answer, and one that comes too late, is refused and changes nothing."""
        await answer(visit, body.answer, seen=body.seen, token=body.claim_token)
        return one(await read_message(visit, message_id))


async def answer(
    visit: RequestContext, values: Any, *, seen: str | None = None, token: str | None = None
) -> None:
    assert visit.stored is not None
    spec = answering.spec_of(visit.stored.row, visit.stored.content)
    assignee = spec.get("assignee")
    if assignee and not visit.caller.is_admin and not _is_assignee(visit, assignee):
        raise AclDenied(place=f"this review, which is assigned to {assignee},", permission="answer")
    visit.details = {"review": True}
    await visit.house.run(
        service_commands.AnswerReview(
            message_id=visit.stored.row.id,
            answer=values,
            reviewer=f"user:{visit.caller.user_id}" if visit.caller.user_id else visit.caller.actor,
            token=token,
            seen=seen,
            **visit.who,
        )
    )


def _is_assignee(visit: RequestContext, assignee: str) -> bool:
    """`user:…`, `group:…`, `role:…`; a bare name is a user."""
    kind, colon, name = assignee.partition(":")
    return ((kind, name) if colon else ("user", assignee)) in visit.caller.principals
