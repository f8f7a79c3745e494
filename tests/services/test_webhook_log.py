"""The log of what webhooks were told: nothing in it tells of what is closed to who reads it."""

from postroom.kernel import webhooks
from postroom.kernel.access.permissions import Permission
from postroom.services.container import Services
from postroom.services.webhooks import WebhookDraft
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue


async def test_deliveries_are_listed_past_those_about_closed_queues(served: ServedRoom) -> None:
    services = Services(served.room, check_address=lambda url: None)
    manager = await served.key("manage", "view")
    hook = await services.webhooks.create(manager, WebhookDraft(url="https://example.org/"))
    tested = await services.webhooks.test(manager, hook.id)
    for number, queue in enumerate(("open", "jobs", "jobs", "gone")):
        about = {"scope": "work", "queue": queue, "number": number}
        told = webhooks.envelope("message.published", f"evt_{number}", "default", about, served.clock.now())
        await served.room.run(webhooks.delivery(hook, told, None))
    await close_queue(served, "work/jobs", ("user", "bob"), Permission.VIEW)

    async def seen(caller: object, limit: int) -> list[str]:
        found = await services.webhooks.list_deliveries(caller, hook.id, limit=limit)  # type: ignore[arg-type]
        return [each.message.body["event_id"] for each in found]

    assert await seen(manager, 1) == ["evt_0"], "newest first, past three that are not for them"
    assert await seen(manager, 50) == ["evt_0", tested]
    assert await seen(served.owner, 50) == ["evt_3", "evt_2", "evt_1", "evt_0", tested]
