"""Over HTTP, messages wait for others and queues keep a rate; nobody learns of messages they may not see."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.queue.service import Service, serving


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(tmp_path) as service:
        yield service


async def make_queue(service: Service, scope: str, **settings: object) -> None:
    await service.owner.post("/scopes", {"slug": scope})
    await service.owner.post(f"/scopes/{scope}/queues", {"slug": "jobs", **settings})


async def test_a_message_waits_for_others_over_http(service: Service) -> None:
    await make_queue(service, "shop")
    first = await service.owner.post("/scopes/shop/queues/jobs/messages", {"body": 1})
    last = await service.owner.post(
        "/scopes/shop/queues/jobs/messages", {"body": 2, "after": [first["id"]], "after_failed": "run"}
    )
    assert last["state"] == "pending"  # the word of this interface for all that wait
    [claimed] = await service.owner.post("/scopes/shop/queues/jobs/claim", {"batch_size": 5})
    token = {"claim_token": claimed["claim_token"]}
    await service.owner.post(f"/scopes/shop/messages/{first['id']}/complete", token)
    [claimed] = await service.owner.post("/scopes/shop/queues/jobs/claim", {"batch_size": 5})
    assert claimed["id"] == last["id"]


async def test_a_key_cannot_wait_for_a_message_that_it_may_not_see(service: Service) -> None:
    await make_queue(service, "shop")
    await make_queue(service, "other")
    secret = await service.owner.post("/scopes/other/queues/jobs/messages", {"body": 1})
    made = await service.owner.post(
        "/scopes/shop/api-keys", {"name": "test", "permissions": ["publish", "view"]}
    )
    key = service.owner.with_token(made["secret"])
    for message_id in (secret["id"], "nobody knows"):
        answer = await key("POST", "/scopes/shop/queues/jobs/messages", {"body": 2, "after": [message_id]})
        assert (answer.status, answer.code) == (404, "SCAIQUEUE_MESSAGE_NOT_FOUND")
    own = await key.post("/scopes/shop/queues/jobs/messages", {"body": 2})
    waiting = await key.post("/scopes/shop/queues/jobs/messages", {"body": 3, "after": [own["id"]]})
    assert (await service.room.get(waiting["id"])).state == "delayed"


async def test_a_queue_tells_and_keeps_its_rate(service: Service) -> None:
    await make_queue(service, "shop", rate_limit=2, rate_period_s=3600)
    found = await service.owner.get("/scopes/shop/queues/jobs")
    assert (found["rate_limit"], found["rate_period_s"], found["rate_key"]) == (2, 3600.0, None)
    batch = {"messages": [{"body": number} for number in range(5)]}
    await service.owner.post("/scopes/shop/queues/jobs/messages/batch", batch)
    assert len(await service.owner.post("/scopes/shop/queues/jobs/claim", {"batch_size": 5})) == 2
    assert await service.owner.post("/scopes/shop/queues/jobs/claim", {"batch_size": 5}) == []


async def test_a_queue_is_published_to_by_a_schedule(service: Service) -> None:
    await make_queue(service, "shop")
    path = "/scopes/shop/schedules/nightly"
    wish = {"queue_id": "jobs", "body": {"n": 1}, "cron": "0 3 * * *", "zone": "Europe/Berlin"}
    made = (await service.owner("PUT", path, wish)).data
    assert (made["queue"], made["missed"], made["published"]) == ("shop/jobs", "once", 0)
    assert made["next_at"].endswith("Z")
    assert await service.owner.get(path) == made
    assert [each["name"] for each in await service.owner.get("/scopes/shop/schedules")] == ["nightly"]
    receipt = await service.owner.post(f"{path}/run")
    assert (await service.room.get(receipt["id"])).body == {"n": 1}
    refused = await service.owner("PUT", path, wish | {"every_s": 60})
    assert refused.status == 422
    assert (await service.owner("DELETE", path)).status == 204
    assert (await service.owner("GET", path)).status == 404


async def test_a_schedule_of_a_queue_that_one_may_not_see_is_not_there(service: Service) -> None:
    await make_queue(service, "shop")
    await make_queue(service, "other")
    await service.owner("PUT", "/scopes/other/schedules/nightly", {"queue_id": "jobs", "every_s": 60})
    made = await service.owner.post(
        "/scopes/shop/api-keys", {"name": "test", "permissions": ["publish", "view", "manage"]}
    )
    key = service.owner.with_token(made["secret"])
    for method, path in (("GET", ""), ("GET", "/nightly"), ("DELETE", "/nightly"), ("POST", "/nightly/run")):
        assert (await key(method, f"/scopes/other/schedules{path}")).status in (403, 404)
    assert await key.get("/scopes/shop/schedules") == []
