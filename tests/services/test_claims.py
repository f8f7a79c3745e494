"""Claims: waited for, given back, and settled by their holder, with or without the token."""

import asyncio
from typing import Any

import msgspec
import pytest

from postroom.errors import ClaimLost, InvalidField, MessageNotFound, PostroomError
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import NewMessage
from postroom.kernel.states import State
from postroom.services.claims import MOST_COMPLETED, CompletedWork
from postroom.services.container import Services
from postroom.services.errors import AclDenied
from postroom.services.messages import FoundMessage
from tests.services.conftest import ServedRoom

JOBS = [("work", "jobs")]
ASK: dict[str, Any] = {"sections": [{"type": "decision", "options": ["yes", "no"]}]}


async def test_who_waits_gets_what_comes_and_nothing_when_nothing_comes(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    waiting = asyncio.ensure_future(services.claims.claim(owner, JOBS, wait_s=60))
    message = await served.room.publish("work/jobs", 1)
    async with asyncio.timeout(60):
        [taken] = await waiting
    assert taken.message.id == message.id
    assert taken.message.claim_token
    assert await services.claims.claim(owner, JOBS) == []
    assert await services.claims.claim(owner, JOBS, wait_s=0.01) == []


async def test_nobody_waits_for_a_server_that_closes(served: ServedRoom) -> None:
    closing = asyncio.Event()
    services = Services(served.room, closing=closing)
    waiting = asyncio.ensure_future(services.claims.claim(served.owner, JOBS, wait_s=60))
    await asyncio.sleep(0)
    closing.set()
    async with asyncio.timeout(30):
        assert await waiting == []
    message = await served.room.publish("work/jobs", 1)
    assert (await served.room.get(message.id)).state is State.PENDING, "nobody takes it who has gone"


async def test_what_nobody_can_be_given_is_free_at_once(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    message = await served.room.publish("work/jobs", 1)
    taken = await services.claims.claim(owner, JOBS)
    read = await services.messages.read(owner, message.id)
    await services.claims.give_back(owner, [*taken, read])
    found = await served.room.get(message.id)
    assert (found.state, found.attempts) == (State.PENDING, 0)
    await services.claims.give_back(owner, taken)
    assert (await served.room.get(message.id)).state is State.PENDING, "a claim that is lost is no error"


async def test_a_holder_settles_by_its_name_what_it_holds(served: ServedRoom) -> None:
    services = served.services
    holder, other = await served.key("consume", "view"), await served.key("consume", "view")
    message = await served.room.publish("work/jobs", 1)
    with pytest.raises(ClaimLost, match="pending"):
        await services.claims.complete(holder, message.id)
    await services.claims.claim(holder, JOBS, worker="w1")
    with pytest.raises(ClaimLost, match="somebody else"):
        await services.claims.release(other, message.id)
    extended = await services.claims.extend(holder, message.id, lease_s=600)
    assert extended.message.state is State.CLAIMED
    done = await services.claims.complete(holder, message.id, result={"ok": True})
    assert (done.message.state, done.message.result) == (State.COMPLETED, {"ok": True})


async def test_each_way_to_end_a_claim_does_what_it_says(served: ServedRoom) -> None:
    services, owner = served.services, served.owner

    async def take() -> tuple[str, str]:
        message = await served.room.publish("work/jobs", 1)
        [taken] = await services.claims.claim(owner, JOBS)
        assert taken.message.id == message.id
        return message.id, taken.message.claim_token or ""

    failed = await services.claims.fail(owner, *await take(), reason="boom", retry=False)
    assert (failed.message.state, failed.message.failure_reason) == (State.DEAD, "boom")
    snoozed = await services.claims.snooze(owner, *await take(), seconds=60)
    assert snoozed.message.state is State.DELAYED
    message_id, token = await take()
    assert (await services.claims.release(owner, message_id, token)).message.state is State.PENDING


async def test_a_claimed_review_is_completed_with_its_answer(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    [asked] = await services.messages.publish(owner, "work", "jobs", [NewMessage(body="?", hitl_spec=ASK)])
    [taken] = await services.claims.claim(owner, JOBS)
    token = taken.message.claim_token or ""
    with pytest.raises(PostroomError):
        await services.claims.complete(owner, asked.found.message.id, token, result={"decision": "maybe"})
    assert (await served.room.get(taken.message.id)).state is State.CLAIMED
    answer = {"decision": "yes"}
    done = await services.claims.complete(owner, asked.found.message.id, token, result=answer)
    assert done.message.state is State.COMPLETED
    again = await services.claims.complete(owner, asked.found.message.id, token, result=answer)
    assert again.message.result == done.message.result, "saying it again is no error"


async def test_a_review_is_answered_by_whom_it_is_assigned_to(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    spec = {**ASK, "assignee": "user:ann"}
    [asked] = await services.messages.publish(owner, "work", "jobs", [NewMessage(body="?", hitl_spec=spec)])
    message_id = asked.found.message.id
    ann, bob = [await served.key(*Permission, user_id=name) for name in ("ann", "bob")]
    with pytest.raises(AclDenied, match="user:ann"):
        await services.reviews.answer(bob, message_id, {"decision": "yes"})
    assert [each.found.message.id for each in await services.reviews.list_open(ann, "work", mine=True)] == [
        message_id
    ]
    assert await services.reviews.list_open(bob, "work", mine=True) == []
    await services.reviews.answer(ann, message_id, {"decision": "yes"})
    review = await services.reviews.read(bob, message_id)
    assert review.decided is not None
    assert review.decided["answer"]["decision"] == "yes"


async def test_many_are_completed_with_one_entry_and_each_has_its_own_outcome(served: ServedRoom) -> None:
    services, room = served.services, served.room
    sent = [await room.publish("work/jobs", number) for number in range(3)]
    holder = msgspec.structs.replace(await served.key("consume"), request_id="call-1")
    held = [each.message for each in await services.claims.claim(served.owner, JOBS, limit=3)]
    done = [CompletedWork(message.id, message.claim_token, {"n": n}) for n, message in enumerate(held)]
    done[1] = CompletedWork(held[1].id, "9-lost")
    first, lost, third, unknown = await services.claims.complete_many(
        holder, "work", [*done, CompletedWork("nobody")]
    )
    assert isinstance(first, FoundMessage)
    assert isinstance(third, FoundMessage)
    assert (first.message.state, third.message.result) == (State.COMPLETED, {"n": 2})
    assert isinstance(lost, ClaimLost)
    assert isinstance(unknown, MessageNotFound)
    assert [(await room.get(each.id)).state for each in sent] == ["completed", "claimed", "completed"]
    [entry] = [each for each in await served.audit() if each.event_type == "message.complete_many"]
    assert (entry.id, entry.message_id, entry.details) == ("call-1", None, '{"messages":4}')


async def test_the_result_of_a_review_among_many_is_its_answer(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    [asked] = await services.messages.publish(owner, "work", "jobs", [NewMessage(body=1, hitl_spec=ASK)])
    plain = await served.room.publish("work/jobs", 2)
    held = {each.message.id: each.message for each in await services.claims.claim(owner, JOBS, limit=2)}
    review = held[asked.found.message.id]
    done = [
        CompletedWork(review.id, review.claim_token, {"decision": "yes"}),
        CompletedWork(plain.id, held[plain.id].claim_token),
    ]
    answers = await services.claims.complete_many(owner, "work", done)
    assert [isinstance(answer, FoundMessage) for answer in answers] == [True, True]
    found = await served.room.get(review.id)
    assert (found.state, found.result) == (State.COMPLETED, {"decision": "yes"})


@pytest.mark.parametrize("count", [0, MOST_COMPLETED + 1])
async def test_none_or_too_many_are_not_completed_together(served: ServedRoom, count: int) -> None:
    done = [CompletedWork("nobody")] * count
    with pytest.raises(InvalidField, match="messages"):
        await served.services.claims.complete_many(served.owner, "work", done)


async def test_what_goes_wrong_without_a_name_is_no_refusal_of_one(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.room.publish("work/jobs", 1)
    [held] = await served.services.claims.claim(served.owner, JOBS)
    done = [CompletedWork(held.message.id, held.message.claim_token)]

    def run(command: object) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(RuntimeError("unforeseen"))
        return future

    monkeypatch.setattr(served.room, "run", run)
    with pytest.raises(RuntimeError, match="unforeseen"):
        await served.services.claims.complete_many(served.owner, "work", done)
