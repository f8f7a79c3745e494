"""Claims over HTTP: tokens, holders known by their key, long polls, labels, and callers who hang up."""

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from postroom.clock import ManualClock
from tests.api.queue.service import OWNER, Caller, Service
from tests.api.queue.test_checklist import JOBS, SCOPE, claim, message_of, publish, settle


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


async def test_a_stale_token_changes_nothing(jobs: Caller, clock: ManualClock) -> None:
    sent = await publish(jobs, 1)
    [first] = await claim(jobs)
    clock.advance(31)
    [second] = await claim(jobs)
    for verb in ("complete", "fail", "release", "extend"):
        refused = await settle(jobs, first, verb)
        assert (refused.status, refused.code) == (409, "SCAIQUEUE_CLAIM_LOST"), verb
    assert (await message_of(jobs, sent))["state"] == "claimed"
    assert (await settle(jobs, second, "complete")).status == 200


async def test_without_a_token_the_holder_is_known_by_its_key(jobs: Caller, service: Service) -> None:
    one, two = await service.key(), await service.key()
    sent = await publish(jobs, 1)
    [claimed] = await claim(one, worker="w7")
    assert (claimed["claimed_by_type"], claimed["claimed_by_id"]) == ("api_key", one.headers["x-key-id"])
    path = f"{SCOPE}/messages/{sent['id']}/complete"
    assert (await two("POST", path)).code == "SCAIQUEUE_CLAIM_LOST"
    assert (await one("POST", path, {"result": 7})).data["result"] == 7
    assert (await one("POST", path)).code == "SCAIQUEUE_CLAIM_LOST", "it is no longer held"


async def test_no_other_reader_is_shown_the_token(jobs: Caller) -> None:
    sent = await publish(jobs, 1)
    await claim(jobs)
    assert "claim_token" not in await message_of(jobs, sent)
    assert "claim_token" not in (await jobs.get(JOBS + "/messages"))[0]


async def test_labels_choose_what_is_claimed(jobs: Caller) -> None:
    for n in range(6):
        await publish(jobs, n, labels={"colour": "red" if n % 2 else "blue", "n": n})
    taken = await claim(jobs, batch_size=10, labels={"colour": "red"})
    assert [message["body"] for message in taken] == [1, 3, 5]
    assert [message["body"] for message in await claim(jobs, labels={"n": 4, "colour": "blue"})] == [4]


async def test_a_long_poll_ends_with_the_first_message(live: Service) -> None:
    owner = live.owner
    await owner.post("/scopes", {"slug": "work"})
    await owner.post(SCOPE + "/queues", {"slug": "jobs"})
    waiting = asyncio.create_task(claim(owner, wait_s=60))
    await until(lambda: bool(live.room._core.wakeups._lines))
    await publish(owner, "at last")
    [message] = await asyncio.wait_for(waiting, 60)
    assert message["body"] == "at last"
    assert await claim(owner, wait_s=0.05) == []


async def waiting(live: Service) -> asyncio.StreamWriter:
    """Somebody who waits for a message of a queue with long leases."""
    await live.owner.post("/scopes", {"slug": "work"})
    await live.owner.post(SCOPE + "/queues", {"slug": "jobs", "visibility_timeout_s": 3600})
    address = urlsplit(live.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    body = json.dumps({"wait_s": 50}).encode()
    head = f"POST /v1{JOBS}/claim HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {OWNER}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    await until(lambda: bool(live.room._core.wakeups._lines))
    return writer


async def test_a_caller_who_hung_up_is_given_nothing(live: Service) -> None:
    writer = await waiting(live)
    writer.close()
    await writer.wait_closed()
    await until(lambda: not live.room._core.wakeups._lines)
    await publish(live.owner, 1)
    assert len(await claim(live.owner)) == 1, "not lost to the one who is gone"


async def test_what_was_claimed_for_a_caller_who_just_hung_up_is_given_back(
    live: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody looks whether the caller is there before the message comes.
    monkeypatch.setattr("postroom.api.claim_wait.LOOK_S", 3600)
    writer = await waiting(live)
    writer.close()
    await writer.wait_closed()
    sent = await publish(live.owner, 1)
    [claimed] = await claim(live.owner, wait_s=50)
    assert (claimed["id"], claimed["attempts"]) == (sent["id"], 1), "nor was it an attempt"


async def test_batches_and_waits_have_their_bounds(jobs: Caller) -> None:
    for wish in ({"batch_size": 0}, {"batch_size": 101}, {"wait_s": -1}, {"wait_s": 61}, {"limit": 3}):
        assert (await jobs("POST", JOBS + "/claim", wish)).code == "VALIDATION_ERROR", wish


async def test_a_batch_is_published_whole_or_not_at_all(jobs: Caller) -> None:
    good, bad = {"body": 1}, {"body": 2, "priority_tier": "urgent"}
    refused = await jobs("POST", JOBS + "/messages/batch", {"messages": [good, bad]})
    assert (refused.status, (await jobs.get(JOBS))["depth_pending"]) == (422, 0)
    sent = await jobs(
        "POST", JOBS + "/messages/batch", {"messages": [good, {"body": 3, "idempotency_key": "k"}]}
    )
    assert (sent.status, [each["created"] for each in sent.data]) == (201, [True, True])
    again = await jobs("POST", JOBS + "/messages/batch", {"messages": [{"body": 3, "idempotency_key": "k"}]})
    assert again.data[0]["created"] is False


async def test_nobody_publishes_into_system_queues_by_hand(jobs: Caller) -> None:
    refused = await jobs("POST", SCOPE + "/queues/_dead_letter/messages", {"body": 1})
    assert (refused.status, refused.code) == (409, "SCAIQUEUE_SYSTEM_QUEUE")
    refused = await jobs("POST", SCOPE + "/queues", {"slug": "_mine"})
    assert (refused.status, refused.code) == (409, "SCAIQUEUE_SYSTEM_QUEUE")


async def test_what_asks_in_the_way_of_others_is_completed_like_any_message(
    jobs: Caller, service: Service
) -> None:
    place = JOBS.removeprefix("/scopes/").replace("/queues/", "/")
    await service.room.publish(place, 1, hitl_spec={"ask": "?"})
    [claimed] = await claim(jobs)
    done = await settle(jobs, claimed, "complete", result={"any": "thing"})
    assert (done.status, done.data["state"], done.data["result"]) == (200, "completed", {"any": "thing"})
