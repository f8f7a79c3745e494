"""Webhooks of a tenant: made, changed, tried, and the log of what was delivered."""

import secrets
import uuid
from collections.abc import Callable, Sequence

import msgspec

from postroom.errors import Invalid, InvalidField
from postroom.kernel import checks, webhooks
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.ports import MessageFilter
from postroom.kernel.rows import Stored
from postroom.kernel.webhooks import Webhook
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, ServiceCall
from postroom.services.context import ServiceContext
from postroom.services.messages import FoundMessage, MessageService

ACTIVE, INACTIVE = "active", "inactive"
MOST_RETRIES = 50
MOST_LISTED = 1000
SECRET_CHARS = (16, 200)
# What a delivery is called that is in one of these states.
DELIVERY_STATES: dict[str, tuple[str, ...]] = {
    "pending": ("pending", "delayed", "claimed"),
    "delivered": ("completed",),
    "failed": ("dead", "cancelled", "expired"),
}

CheckAddress = Callable[[str], object]
"""Raises when a webhook may not lead there."""


class NoWebhooks(Invalid):
    """Webhooks cannot be made here: this process cannot tell where {url} leads. Ask the server that runs."""

    code = "WEBHOOK_ADDRESS"


def refuse_address(url: str) -> None:
    raise NoWebhooks(url=url[:200])


class WebhookDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a webhook. Without a secret, one is made, or the old one stays."""

    url: str
    events: Sequence[str] = ()
    secret: str | None = None
    status: str = ACTIVE
    max_retries: int = 5
    description: str = ""


class Webhooks(MessageService):
    CREATE = Operation("webhook.create", Permission.MANAGE, 201, whole=True)
    LIST = Operation("webhook.list", Permission.MANAGE, whole=True)
    READ = Operation("webhook.read", Permission.MANAGE, whole=True)
    UPDATE = Operation("webhook.update", Permission.MANAGE, whole=True)
    DELETE = Operation("webhook.delete", Permission.MANAGE, 204, whole=True)
    TEST = Operation("webhook.test", Permission.MANAGE, whole=True)
    DELIVERIES = Operation("webhook.deliveries", Permission.MANAGE, whole=True)

    def __init__(self, context: ServiceContext, check_address: CheckAddress = refuse_address) -> None:
        super().__init__(context)
        self._check_address = check_address

    async def create(self, caller: Caller, draft: WebhookDraft) -> Webhook:
        """Be told of events over HTTPS. The secret signs every request."""
        async with self._call(caller, self.CREATE) as call:
            await call.allow()
            events, now = self._check(draft), self._now()
            made = Webhook(
                id=str(uuid.uuid4()),
                tenant=caller.tenant,
                url=draft.url,
                events=events,
                secret=draft.secret or secrets.token_urlsafe(32),
                status=draft.status,
                max_retries=draft.max_retries,
                description=draft.description,
                own_mail=caller.is_owner,
                created_at=now,
                updated_at=now,
                acts_as=caller.acts_as,
            )
            return await self._save(call, made)

    async def list_all(self, caller: Caller) -> list[Webhook]:
        """The webhooks of the tenant."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[Webhook]:
                found = documents.list_documents(access, webhooks.KIND)
                return [webhooks.read(each.data) for each in found]

            return await call.look(find, quick=False)

    async def read(self, caller: Caller, webhook_id: str) -> Webhook:
        async with self._call(caller, self.READ) as call:
            return await call.look(lambda access: _find(access, webhook_id))

    async def update(self, caller: Caller, webhook_id: str, draft: WebhookDraft) -> Webhook:
        """Put these settings in the place of the old ones. Whoever changes it answers for what it is told."""
        async with self._call(caller, self.UPDATE) as call:
            found = await call.look(lambda access: _find(access, webhook_id))
            changed = msgspec.structs.replace(
                found,
                url=draft.url,
                events=self._check(draft),
                secret=draft.secret or found.secret,
                status=draft.status,
                max_retries=draft.max_retries,
                description=draft.description,
                own_mail=found.own_mail and caller.is_owner,
                updated_at=self._now(),
                acts_as=caller.acts_as,
                problem="",
            )
            return await self._save(call, changed)

    async def delete(self, caller: Caller, webhook_id: str) -> None:
        """What was not delivered yet is not delivered any more."""
        async with self._call(caller, self.DELETE) as call:
            await call.look(lambda access: _find(access, webhook_id))
            await call.commit(documents.drop(call, webhooks.KIND, webhook_id, note={"id": webhook_id}))

    async def test(self, caller: Caller, webhook_id: str) -> str:
        """Deliver an event that says it is a test; its id. How it went is in the log of deliveries."""
        async with self._call(caller, self.TEST) as call:
            hook = await call.look(lambda access: _find(access, webhook_id))
            event_id = f"evt_{uuid.uuid4().hex}"
            told = webhooks.envelope(
                webhooks.TEST, event_id, hook.tenant, {"webhook_id": hook.id}, self._now()
            )
            for command in (*webhooks.make_queue(), webhooks.delivery(hook, told, None)):
                await self._context.room.run(command)
            return event_id

    async def list_deliveries(
        self,
        caller: Caller,
        webhook_id: str,
        *,
        status: str | None = None,
        since: int | None = None,
        limit: int = 50,
    ) -> list[FoundMessage]:
        """What was sent, newest first, with how often it was tried and what came of it."""
        async with self._call(caller, self.DELIVERIES) as call:

            def find(access: Access) -> list[Stored]:
                hook = _find(access, webhook_id)
                checks.check_count("limit", limit, least=1, most=MOST_LISTED)
                if status is not None and status not in DELIVERY_STATES:
                    known = ", ".join(DELIVERY_STATES)
                    raise InvalidField("status", f"is {status!r}, must be one of {known}")
                wanted = MessageFilter(
                    tenant=webhooks.TENANT,
                    message_type=webhooks.MESSAGE,
                    labels=(("webhook", hook.id),),
                    states=DELIVERY_STATES[status] if status else (),
                    created_after=since,
                    newest_first=True,
                )
                return _seen(access, wanted, limit)

            return [self._found(each) for each in await call.look(find, quick=False)]

    def _check(self, draft: WebhookDraft) -> tuple[str, ...]:
        """The events it wants, when all of it makes sense."""
        limits = self._context.room.limits
        checks.check_name("url", draft.url, msgspec.structs.replace(limits, text_chars=2000))
        self._check_address(draft.url)
        checks.check_text("description", draft.description, limits)
        checks.check_count("max_retries", draft.max_retries, least=0, most=MOST_RETRIES)
        if draft.status not in (ACTIVE, INACTIVE):
            raise InvalidField("status", f"is {draft.status!r}, must be {ACTIVE} or {INACTIVE}")
        least, most = SECRET_CHARS
        if draft.secret is not None and not least <= len(draft.secret) <= most:
            raise InvalidField("secret", f"must have {least} to {most} characters")
        return webhooks.check_events(list(draft.events))

    async def _save(self, call: ServiceCall, hook: Webhook) -> Webhook:
        await call.commit(
            documents.put(call, webhooks.KIND, hook.id, msgspec.to_builtins(hook), note={"id": hook.id}),
            webhook=hook.id,
        )
        return hook


def _find(access: Access, webhook_id: str) -> Webhook:
    return webhooks.read(documents.find_document(access, webhooks.KIND, webhook_id, "webhook").data)


def _seen(access: Access, wanted: MessageFilter, limit: int) -> list[Stored]:
    """Deliveries that tell of nothing that is closed to the caller."""
    found: list[Stored] = []
    after: int | None = None
    while True:
        part = access.reader.page(wanted, after, limit)
        found += [each for each in part if access.caller.is_admin or _is_seen(access, each)]
        if len(part) < limit or len(found) >= limit:
            return found[:limit]
        after = part[-1].row.seq


def _is_seen(access: Access, delivery: Stored) -> bool:
    about = webhooks.payload_of(delivery.content.body)
    scope = access.reader.scope(access.tenant, about["scope"]) if about.get("scope") else None
    if scope is None:
        return "scope" not in about  # a test tells of nothing
    queue = access.reader.queue(access.tenant, scope.slug, about.get("queue") or "")
    return queue is not None and access.verdict(scope, queue, Permission.VIEW) is AccessVerdict.ALLOWED
