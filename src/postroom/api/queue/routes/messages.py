"""Messages: published, listed, read, cancelled; whole conversations by their correlation id."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from postroom.api.queue import views
from postroom.api.queue.bodies import MessageBatchBody, NewMessageBody, Reason
from postroom.api.queue.cursors import Cursor, Limit
from postroom.api.queue.envelopes import Many, One, many, one
from postroom.api.queue.gate import Calling, RouteCall, needs
from postroom.api.responses import Json
from postroom.services.messages import MessagePage, Messages, PublishedMessage

QUEUE = "/scopes/{scope_id}/queues/{queue_id}"

StateQuery = Annotated[
    str | None, Query(description="Of these alone", json_schema_extra={"enum": views.STATE_NAMES})
]


async def _publish(
    call: RouteCall, scope_id: str, queue_id: str, bodies: list[NewMessageBody]
) -> list[PublishedMessage]:
    drafts, schemas = [body.draft() for body in bodies], [body.schema_ for body in bodies]
    return await call.services.messages.publish(call.caller, scope_id, queue_id, drafts, schemas=schemas)


def add(routes: APIRouter) -> None:
    @routes.post(
        QUEUE + "/messages",
        status_code=201,
        openapi_extra=needs(Messages.PUBLISH),
        responses={
            201: {"model": One[views.MessageView]},
            200: {"model": One[views.MessageView], "description": "The key was used before"},
        },
    )
    async def publish_message(call: Calling, scope_id: str, queue_id: str, body: NewMessageBody) -> Json:
        """Publish. With a known key and the same body, the answer is the first message, with status 200."""
        [made] = await _publish(call, scope_id, queue_id, [body])
        return one(views.message(made.found, call.ids), status=201 if made.created else 200)

    @routes.post(
        QUEUE + "/messages/batch",
        status_code=201,
        openapi_extra=needs(Messages.PUBLISH),
        responses={201: {"model": Many[views.MessageView]}},
    )
    async def publish_batch(call: Calling, scope_id: str, queue_id: str, body: MessageBatchBody) -> Json:
        """Publish many, all or none."""
        made = await _publish(call, scope_id, queue_id, body.messages)
        answer = many([{**views.message(each.found, call.ids), "created": each.created} for each in made])
        answer.status_code = 201
        return answer

    @routes.get(
        QUEUE + "/messages",
        openapi_extra=needs(Messages.LIST),
        responses={200: {"model": Many[views.MessageView]}},
    )
    async def list_queue_messages(
        call: Calling,
        request: Request,
        scope_id: str,
        queue_id: str,
        state: StateQuery = None,
        message_type: str | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Json:
        """Messages of a queue, live and archived. `label.<name>=<value>` filters by labels."""
        found = await call.services.messages.list_page(
            call.caller,
            scope_id,
            queue_id,
            states=views.meant_states(state),
            message_type=message_type,
            labels=_labels(request),
            limit=limit,
            cursor=cursor,
        )
        return _page(call, found)

    @routes.get(
        "/scopes/{scope_id}/messages",
        openapi_extra=needs(Messages.LIST),
        responses={200: {"model": Many[views.MessageView]}},
    )
    async def list_scope_messages(
        call: Calling,
        request: Request,
        scope_id: str,
        correlation_id: Annotated[str | None, Query(max_length=512)] = None,
        parent_id: str | None = None,
        state: StateQuery = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Json:
        """Messages of a scope; with `correlation_id`, the whole chain in order."""
        found = await call.services.messages.list_page(
            call.caller,
            scope_id,
            correlation_id=correlation_id,
            parent_id=parent_id,
            states=views.meant_states(state),
            labels=_labels(request),
            limit=limit,
            cursor=cursor,
        )
        return _page(call, found)

    @routes.get(
        "/scopes/{scope_id}/messages/{message_id}",
        openapi_extra=needs(Messages.READ),
        responses={200: {"model": One[views.MessageView]}},
    )
    async def read_message(call: Calling, scope_id: str, message_id: str) -> Json:
        """One message, live or archived."""
        found = await call.services.messages.read(call.caller, message_id, scope=scope_id)
        return one(views.message(found, call.ids))

    @routes.post(
        "/scopes/{scope_id}/messages/{message_id}/cancel",
        openapi_extra=needs(Messages.CANCEL),
        responses={200: {"model": One[views.MessageView]}},
    )
    async def cancel_message(
        call: Calling, scope_id: str, message_id: str, body: Reason | None = None
    ) -> Json:
        """Never again. A holder learns of it when it next uses its claim."""
        reason = (body or Reason()).reason
        [found] = await call.services.messages.cancel(call.caller, message_id, scope=scope_id, reason=reason)
        return one(views.message(found, call.ids))


def _labels(request: Request) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name.removeprefix("label."), value)
        for name, value in request.query_params.multi_items()
        if name.startswith("label.")
    )


def _page(call: RouteCall, found: MessagePage) -> Json:
    shown = [views.message(each, call.ids) for each in found.items]
    return many(shown, shown[-1]["id"] if found.more else None)
