"""Messages: published, listed, read, cancelled; whole conversations by their correlation id."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from postroom.api.queue import views
from postroom.api.queue.access import AccessCheck, needs, seen_message, visible_page
from postroom.api.queue.bodies import MessageBatchBody, NewMessageBody, Reason
from postroom.api.queue.cursors import Cursor, Limit
from postroom.api.queue.envelopes import Many, One, many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.responses import Json
from postroom.errors import InvalidField, SchemaNotFound, SystemQueue
from postroom.kernel import checks, model
from postroom.kernel import commands as c
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.reviews.spec import HitlInvalid
from postroom.kernel.rows import Stored
from postroom.kernel.schemas import Validators
from postroom.kernel.states import State

QUEUE = "/scopes/{scope_id}/queues/{queue_id}"
# Parts of a review that tell of what has happened to it.
RULES_SET = frozenset({"waiting", "escalated"})

StateQuery = Annotated[str | None, Query(description="pending, claimed, completed, dead_lettered, …")]


def shown(visit: RequestContext, stored: Stored, *, token: bool = False) -> dict[str, Any]:
    places = (stored.row.scope_id, stored.row.queue_id)
    found = visit.house.directory.message(stored, with_token=token)
    return views.message(found, visit.opaque, places, token=token)


async def read(visit: RequestContext, message_id: str) -> dict[str, Any]:
    stored = await visit.house.ask(lambda reader: reader.get(message_id))
    assert stored is not None, "it was there a moment ago"
    return shown(visit, stored)


async def new_message(visit: RequestContext, body: NewMessageBody) -> model.NewMessage:
    draft = body.draft(visit.caller)
    if body.hitl_spec is not None and not {"sections", "pattern"} & set(body.hitl_spec):
        raise HitlInvalid(problem="it must have sections or name a pattern")
    for name in sorted(RULES_SET & set(body.hitl_spec or ())):
        raise HitlInvalid(problem=f"{name!r} is set by rules and time-outs alone")
    await _check_ways(visit, body.hitl_spec or {})
    if body.schema_ is not None:
        await _check_schema(visit, body.schema_, draft.body)
    return draft


async def _check_ways(visit: RequestContext, spec: dict[str, Any]) -> None:
    """A decision may lead only to queues of the scope into which the caller could publish itself.

    What leads into another scope, or to a queue that is not there yet, is judged when it is decided.
    """
    steps = spec.get("on_decision")
    ways = [*(steps.values() if isinstance(steps, dict) else ()), spec.get("escalation")]
    names = {way["queue"] for way in ways if isinstance(way, dict) and isinstance(way.get("queue"), str)}

    def look(reader: Reader) -> None:
        guard = AccessCheck(reader, visit, visit.house.clock.now())
        for queue in reader.queues(visit.tenant, visit.scope.slug):
            if not names & {queue.slug, f"/{queue.path}"}:
                continue
            if guard.verdict(visit.scope, queue.id, Permission.PUBLISH) is not AccessVerdict.ALLOWED:
                raise HitlInvalid(problem=f"it leads to {queue.slug!r}, where you may not publish")

    if names:
        await visit.house.ask(look)


async def _check_schema(visit: RequestContext, wanted: str, content: Any) -> None:
    name, version = checks.split_schema(wanted)
    scope = visit.scope
    found = [
        schema
        for schema in await visit.house.ask(lambda reader: reader.schemas(visit.tenant, scope.slug))
        if schema.name == name and version in (None, schema.version)
    ]
    if not found:
        raise SchemaNotFound(scope=scope.slug, name=name, version=version or "any")
    Validators().check(found[-1], content)


async def publish(visit: RequestContext, bodies: list[NewMessageBody]) -> list[tuple[dict[str, Any], bool]]:
    queue = visit.queue
    if queue.system:
        raise SystemQueue(queue=queue.path, verb="published to by hand")
    messages = [await new_message(visit, body) for body in bodies]
    receipts: list[model.Receipt] = await visit.house.run(
        c.Publish(queue=queue.path, messages=messages, **visit.who)
    )
    found = await visit.house.ask(lambda reader: [reader.get(receipt.id) for receipt in receipts])
    answers = []
    for stored, receipt in zip(found, receipts, strict=True):
        assert stored is not None, "it was published a moment ago"
        answers.append((shown(visit, stored), receipt.created))
    first = answers[0][0]
    visit.message_id, visit.correlation_id = first["id"], first["correlation_id"]
    visit.details = {"messages": len(answers), "created": sum(made for _, made in answers)}
    return answers


def add(routes: APIRouter) -> None:
    @routes.post(
        QUEUE + "/messages",
        status_code=201,
        openapi_extra=needs("publish", "message.publish"),
        responses={
            201: {"model": One[views.MessageView]},
            200: {"model": One[views.MessageView], "description": "The key was used before"},
        },
    )
    async def publish_message(visit: Visiting, scope_id: str, queue_id: str, body: NewMessageBody) -> Json:
        """Publish. With a known key and the same body, the answer is the first message, with status 200."""
        [(message, created)] = await publish(visit, [body])
        return one(message, status=201 if created else 200)

    @routes.post(
        QUEUE + "/messages/batch",
        status_code=201,
        openapi_extra=needs("publish", "message.publish"),
        responses={201: {"model": Many[views.MessageView]}},
    )
    async def publish_batch(visit: Visiting, scope_id: str, queue_id: str, body: MessageBatchBody) -> Json:
        """Publish many, all or none."""
        answers = await publish(visit, body.messages)
        answer = many([{**message, "created": created} for message, created in answers])
        answer.status_code = 201
        return answer

    @routes.get(
        QUEUE + "/messages",
        openapi_extra=needs("view", "message.list"),
        responses={200: {"model": Many[views.MessageView]}},
    )
    async def list_queue(
        visit: Visiting,
        request: Request,
        scope_id: str,
        queue_id: str,
        state: StateQuery = None,
        message_type: str | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Json:
        """Messages of a queue, live and archived. `label.<name>=<value>` filters by labels."""
        wanted = MessageFilter(
            tenant=visit.tenant,
            queue=visit.queue.path,
            states=_states(state),
            message_type=message_type,
            labels=_labels(request),
        )
        return await _page(visit, wanted, limit, cursor)

    @routes.get(
        "/scopes/{scope_id}/messages",
        openapi_extra=needs("view", "message.list"),
        responses={200: {"model": Many[views.MessageView]}},
    )
    async def list_scope(
        visit: Visiting,
        request: Request,
        scope_id: str,
        correlation_id: Annotated[str | None, Query(max_length=512)] = None,
        parent_id: str | None = None,
        state: StateQuery = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Json:
        """Messages of a scope; with `correlation_id`, the whole chain in order."""
        visit.correlation_id = correlation_id
        wanted = MessageFilter(
            tenant=visit.tenant,
            scope=visit.scope.slug,
            correlation_id=correlation_id,
            parent_id=parent_id,
            states=_states(state),
            labels=_labels(request),
        )
        return await _page(visit, wanted, limit, cursor)

    @routes.get(
        "/scopes/{scope_id}/messages/{message_id}",
        openapi_extra=needs("view", "message.read"),
        responses={200: {"model": One[views.MessageView]}},
    )
    async def read_message(visit: Visiting, scope_id: str, message_id: str) -> Json:
        """One message, live or archived."""
        assert visit.stored is not None
        return one(shown(visit, visit.stored))

    @routes.post(
        "/scopes/{scope_id}/messages/{message_id}/cancel",
        openapi_extra=needs("manage", "message.cancel"),
        responses={200: {"model": One[views.MessageView]}},
    )
    async def cancel_message(
        visit: Visiting, scope_id: str, message_id: str, body: Reason | None = None
    ) -> Json:
        """Never again. A holder learns of it when it next uses its claim."""
        reason = (body or Reason()).reason
        await visit.house.run(c.Cancel(message_id=message_id, reason=reason, **visit.who))
        return one(await read(visit, message_id))


def _states(state: str | None) -> tuple[str, ...]:
    if state is None:
        return ()
    known = views.MEANT_STATES.get(state)
    if known is not None:
        return known
    shown_names = sorted({views.state(each) for each in State})
    if state not in shown_names:
        raise InvalidField("state", f"is {state!r}, must be one of {', '.join(shown_names)}")
    return (state,)


def _labels(request: Request) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name.removeprefix("label."), value)
        for name, value in request.query_params.multi_items()
        if name.startswith("label.")
    )


async def _page(visit: RequestContext, wanted: MessageFilter, limit: int, cursor: str | None) -> Json:
    def look(reader: Reader) -> list[Stored]:
        after = _place(reader, visit, cursor)
        return visible_page(reader, visit, wanted, after, limit + 1)

    found = await visit.house.ask(look)
    page, more = found[:limit], len(found) > limit
    return many([shown(visit, stored) for stored in page], page[-1].row.id if more else None)


def _place(reader: Reader, visit: RequestContext, cursor: str | None) -> int | None:
    if cursor is None:
        return None
    stored = seen_message(reader, visit, cursor)
    if stored is None:
        raise InvalidField("cursor", f"{cursor!r} is not one that a listing gave")
    return stored.row.seq
