"""From the ledger to deliveries: each event is read once; its deliveries are published with the new position.

The same reader gives the subscribers of a scope's `_events` queue their copies.
"""

import contextlib
import uuid
from typing import Any, NamedTuple

from postroom.errors import PositionMoved, PostroomError
from postroom.kernel import commands as c
from postroom.kernel import webhooks
from postroom.kernel.ledger import Event
from postroom.kernel.model import EVENTS_QUEUE, NewMessage
from postroom.kernel.reader import Reader
from postroom.kernel.webhooks import EVENTS, PREFIX, Webhook
from postroom.runtime import Room
from postroom.webhooks.entitlement import OWN_SCOPES, Entitlement

POSITION = "webhooks"
SAVE_S = 5.0
MOST = 10_000
_NAMESPACE = uuid.UUID("5f1b6f0e-6d0c-4a53-9a55-2f0d2f1c9f10")


class Told(NamedTuple):
    """An event, who wants to hear of it, and what they hear."""

    event: Event
    hooks: list[Webhook]
    heard: bool
    payload: dict[str, Any]


def _is_told(event: Event) -> bool:
    """Events of messages in the queues of tenants; of system queues only that a message came to lie there."""
    if PREFIX + event.type not in EVENTS or event.tenant == webhooks.TENANT or not event.queue:
        return False
    return not event.queue.startswith("_") or event.type == "message.dead_lettered"


class Relay:
    def __init__(self, room: Room, *, own_scopes: frozenset[str] = OWN_SCOPES) -> None:
        self._room = room
        self._entitlement = Entitlement(room, own_scopes)
        self._leader = room.leader(POSITION)
        # Reading again what nobody wanted to hear does no harm, so the position need not be kept each time.
        self._reader = room.ledger_reader(POSITION, save_s=SAVE_S)

    async def run(self) -> None:
        """Until stopped, in one process at a time, woken by commits."""
        await self._leader.run(self._follow, finish=self._reader.save)

    def stop(self) -> None:
        self._leader.stop()

    async def catch_up(self) -> None:
        """Handle all events that are there now."""
        await self._follow(follow=False)

    async def _follow(self, *, follow: bool = True) -> None:
        async with contextlib.aclosing(self._reader.pages(follow=follow)) as pages:
            async for page in pages:
                await self._handle(page)

    async def _handle(self, page: list[Event]) -> None:
        events = [event for event in page if _is_told(event)]
        if not events:
            return
        told = await self._room.look(lambda reader: self._look(reader, events))
        commands = [command for each in told for command in self._deliveries(each)]
        if not commands:
            return
        try:
            await self._reader.commit(page[-1].seq, commands)
        except PostroomError as error:
            _check_refused(error)
            # One of them cannot be published (its queue was closed): each for itself, then.
            for command in commands:
                try:
                    await self._room.run(command)
                except PostroomError as one:
                    _check_refused(one)
            await self._reader.commit(page[-1].seq, ())

    def _look(self, reader: Reader, events: list[Event]) -> list[Told]:
        """Of these events, those that somebody wants to hear, and what they are told."""
        told: list[Told] = []
        hooks: dict[str, list[Webhook]] = {}
        heard: dict[tuple[str, str], bool] = {}
        for event in events:
            tenant, scope = event.tenant, event.scope or ""
            if tenant not in hooks:
                found = reader.documents(tenant, webhooks.KIND, "", "", MOST)
                hooks[tenant] = [webhooks.read(each.data) for each in found]
            if (tenant, scope) not in heard:
                copies = reader.queue(tenant, scope, EVENTS_QUEUE)
                heard[tenant, scope] = copies is not None and bool(reader.subscriptions(copies.id))
            queue = event.details.get("from", event.queue)
            wanting = [
                hook
                for hook in hooks[tenant]
                if hook.wants(PREFIX + event.type, event.time)
                and self._entitlement.covers(reader, hook, tenant, scope, queue)
            ]
            if wanting or heard[tenant, scope]:
                told.append(Told(event, wanting, heard[tenant, scope], self._payload(reader, event)))
        return told

    def _deliveries(self, told: "Told") -> list[c.Command]:
        event = told.event
        name = PREFIX + event.type
        event_id = f"evt_{uuid.uuid5(_NAMESPACE, event.hash.hex()).hex}"
        said = webhooks.envelope(name, event_id, event.tenant, told.payload, event.time)
        commands: list[c.Command] = [webhooks.delivery(hook, said, event.message_id) for hook in told.hooks]
        if told.heard:
            commands.append(_copy(event, said, event_id))
        return commands

    def _payload(self, reader: Reader, event: Event) -> dict[str, Any]:
        assert event.message_id is not None
        details = event.details
        payload: dict[str, Any] = {
            "message_id": event.message_id,
            "scope": event.scope,
            "queue": details.get("from", event.queue),
            "correlation_id": event.correlation_id,
            "attempts": details.get("attempts"),
            "state": details.get("state"),
        }
        stored = reader.get(event.message_id)
        if stored is not None:
            message = self._room.to_message(stored)
            payload["message_type"] = message.message_type
            if event.type == "message.completed":
                payload["result"] = message.result
            if event.type == "message.dead_lettered":
                payload["failure_reason"] = message.failure_reason
        return payload


def _check_refused(error: PostroomError) -> None:
    """What a queue refuses, it refuses for ever; what the store could not do is to be done again, by whoever
    reads for the webhooks then."""
    if error.http_status >= 500 or isinstance(error, PositionMoved):
        raise error


def _copy(event: Event, told: dict[str, Any], event_id: str) -> c.Publish:
    message = NewMessage(
        body=told,
        message_type=told["event_type"],
        correlation_id=event.correlation_id,
        causation_id=event.message_id,
        idempotency_key=event_id,
        source_type="service",
        source_id="events",
    )
    path = f"{event.scope}/{EVENTS_QUEUE}"
    return c.Publish(queue=path, messages=[message], actor="webhooks", tenant=event.tenant)
