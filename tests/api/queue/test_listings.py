"""Listings tell everything that a caller may see, page by page, and nothing of what it may not."""

import asyncio
from typing import Any

from tests.api.queue.service import Caller, Service
from tests.api.queue.test_checklist import JOBS, SCOPE

REVIEW = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]}


async def pages(caller: Caller, path: str, **query: Any) -> list[dict[str, Any]]:
    """All of a listing, as a client reads it."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await caller("GET", path, **query, **cursor)
        found += answer.data
        if not answer.document["has_more"]:
            assert answer.document["next_cursor"] is None
            return found
        cursor = {"cursor": answer.document["next_cursor"]}


async def closed(jobs: Caller, service: Service) -> Caller:
    """Somebody who sees the scope and its queues but `jobs`, which is for others."""
    ann = await service.key(permissions=["view"], name="ann")
    await service.owner("PUT", "/tenants/default/rates", {"key": 10_000, "tenant": 10_000})
    entry = {"principal_type": "user", "principal_id": "bob", "permissions": ["view", "consume", "publish"]}
    await jobs.post(JOBS + "/acl", entry)
    await jobs.post(SCOPE + "/queues", {"slug": "open"})
    return ann


async def test_what_lies_between_hidden_messages_is_found(jobs: Caller, service: Service) -> None:
    ann = await closed(jobs, service)
    wanted = []
    for n in range(3):
        hidden = [{"body": f"hidden {n} {m}"} for m in range(60)]
        await jobs.post(JOBS + "/messages/batch", {"messages": hidden})
        wanted.append((await jobs.post(SCOPE + "/queues/open/messages", {"body": n}))["id"])
    assert [each["id"] for each in await pages(ann, SCOPE + "/messages", limit=1)] == wanted


async def test_reviews_behind_thousands_of_messages_are_listed(jobs: Caller, service: Service) -> None:
    for _ in range(6):
        await jobs.post(JOBS + "/messages/batch", {"messages": [{"body": 0}] * 1000})
    asked = [(await jobs.post(JOBS + "/messages", {"body": n, "hitl_spec": REVIEW}))["id"] for n in range(3)]
    assert [each["id"] for each in await pages(jobs, SCOPE + "/reviews", limit=2)] == asked
    ann = await closed(jobs, service)
    assert await pages(ann, SCOPE + "/reviews") == [], "reviews of a closed queue are not for everybody"


async def test_the_audit_tells_nothing_of_a_closed_queue(jobs: Caller, service: Service) -> None:
    ann = await closed(jobs, service)
    hidden = await jobs.post(JOBS + "/messages", {"body": 1, "correlation_id": "talk"})
    seen = await jobs.post(SCOPE + "/queues/open/messages", {"body": 2, "correlation_id": "talk"})
    for path in (SCOPE + "/audit", SCOPE + "/audit/trace/talk"):
        everything, told = await jobs.get(path, limit=500), await ann.get(path, limit=500)
        assert hidden["id"] in repr(everything), "administrators see it"
        assert hidden["id"] not in repr(told), path
        assert hidden["queue_id"] not in repr(told), path
        assert seen["id"] in repr(told), path


async def test_pages_neither_skip_nor_repeat_while_others_write(jobs: Caller) -> None:
    done = asyncio.Event()
    published: list[str] = []

    async def write() -> None:
        while not done.is_set():
            batch = await jobs.post(JOBS + "/messages/batch", {"messages": [{"body": 0}] * 5})
            published.extend(each["id"] for each in batch)

    first = await jobs.post(JOBS + "/messages/batch", {"messages": [{"body": 0}] * 50})
    writers = [asyncio.create_task(write()) for _ in range(3)]
    found: list[str] = []
    cursor: dict[str, str] = {}
    while len(found) < 150:
        answer = await jobs("GET", JOBS + "/messages", limit=7, **cursor)
        found += [each["id"] for each in answer.data]
        if answer.document["has_more"]:
            cursor = {"cursor": answer.document["next_cursor"]}
    done.set()
    await asyncio.gather(*writers)
    everything = [each["id"] for each in await pages(jobs, JOBS + "/messages", limit=100)]
    assert set(everything) == {each["id"] for each in first} | set(published)
    assert found == everything[: len(found)], "in the order of entry, each once"
