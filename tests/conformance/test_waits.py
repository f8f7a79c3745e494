"""A message can wait for others: it is claimable when the last of them has ended well, in the same commit."""

import pytest

from postroom import InvalidField, Message, MessageNotFound, NewMessage, Room, State


async def finish(room: Room, queue: str = "jobs") -> Message:
    [message] = await room.claim(queue)
    await room.complete(message, {"done": message.body})
    return message


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", max_retries=1)
    await room.create_queue("reports")
    return room


async def test_a_message_waits_for_several_and_then_goes_on(jobs: Room) -> None:
    first, second = await jobs.publish_many("jobs", ["a", "b"])
    report = await jobs.publish("reports", "sum", after=[first.id, second.id])
    assert report.state is State.DELAYED
    await finish(jobs)
    assert await jobs.claim("reports") == []
    await finish(jobs)
    [message] = await jobs.claim("reports")
    assert message.id == report.id
    assert message.metadata == {"after": [first.id, second.id]}
    results = [(await jobs.get(each)).result for each in message.metadata["after"]]
    assert results == [{"done": "a"}, {"done": "b"}]


async def test_what_has_ended_well_already_is_not_waited_for(jobs: Room) -> None:
    first = await jobs.publish("jobs", "a")
    await finish(jobs)
    report = await jobs.publish("reports", "sum", after=[first.id, first.id])
    assert report.state is State.PENDING


async def test_when_one_fails_what_waited_for_it_is_a_dead_letter_and_what_waited_for_that_too(
    jobs: Room,
) -> None:
    first, second = await jobs.publish_many("jobs", ["a", "b"])
    report = await jobs.publish("reports", "sum", after=[first.id, second.id])
    mail = await jobs.publish("reports", "mail", after=[report.id])
    [message] = await jobs.claim("jobs")
    await jobs.fail(message, "no")
    dead = await jobs.get(report.id)
    assert (dead.state, dead.failure_kind, dead.queue) == (State.DEAD, "dependency", "_dead_letter")
    assert dead.failure_reason == f"message {first.id}, which it waited for, is dead"
    assert (await jobs.get(mail.id)).state is State.DEAD
    late = await jobs.publish("reports", "late", after=[first.id])
    assert late.state is State.DEAD
    assert (await jobs.get(late.id)).origin_queue == "reports"
    await finish(jobs)
    assert (await jobs.get(report.id)).state is State.DEAD
    assert (await jobs.replay(report.id)) == [report.id]
    assert [each.id for each in await jobs.claim("reports")] == [report.id]


@pytest.mark.parametrize("end", ["fail", "cancel"])
async def test_a_message_may_go_on_however_the_others_ended(jobs: Room, end: str) -> None:
    first = await jobs.publish("jobs", "a")
    report = await jobs.publish("reports", "sum", after=[first.id], after_failed="run")
    if end == "fail":
        [message] = await jobs.claim("jobs")
        await jobs.fail(message, "no")
    else:
        await jobs.cancel(first.id)
    assert (await jobs.get(report.id)).state is State.PENDING


async def test_a_retry_is_no_end(jobs: Room) -> None:
    await jobs.update_queue("jobs", max_retries=2)
    first = await jobs.publish("jobs", "a")
    report = await jobs.publish("reports", "sum", after=[first.id])
    [message] = await jobs.claim("jobs")
    await jobs.fail(message, "no", delay=0)
    assert (await jobs.get(report.id)).state is State.DELAYED
    await finish(jobs)
    assert (await jobs.get(report.id)).state is State.PENDING


async def test_what_was_cancelled_while_it_waited_stays_so(jobs: Room) -> None:
    first = await jobs.publish("jobs", "a")
    report = await jobs.publish("reports", "sum", after=[first.id])
    await jobs.cancel(report.id)
    await finish(jobs)
    assert (await jobs.get(report.id)).state is State.CANCELLED


async def test_all_of_a_unit_end_waits_together(jobs: Room) -> None:
    first, second = await jobs.publish_many("jobs", ["a", "b"])
    report = await jobs.publish("reports", "sum", after=[first.id, second.id])
    claimed = await jobs.claim("jobs", limit=2)
    async with jobs.unit() as unit:
        for message in claimed:
            unit.complete(message)
    assert (await jobs.get(report.id)).state is State.PENDING


async def test_a_unit_that_fails_ends_no_wait(jobs: Room) -> None:
    first = await jobs.publish("jobs", "a")
    report = await jobs.publish("reports", "sum", after=[first.id])
    [message] = await jobs.claim("jobs")

    async def fail_together() -> None:
        async with jobs.unit() as unit:
            unit.complete(message)
            unit.publish("reports", "x", after=["nothing"])

    with pytest.raises(MessageNotFound):
        await fail_together()
    assert (await jobs.get(report.id)).state is State.DELAYED
    await jobs.complete(message)
    assert (await jobs.get(report.id)).state is State.PENDING


async def test_a_broadcast_is_waited_for_until_its_last_delivery(jobs: Room) -> None:
    await jobs.create_queue("news", consumer_mode="broadcast")
    for reader in ("ann", "bob"):
        await jobs.subscribe("news", reader)
    news = await jobs.publish("news", "hello")
    report = await jobs.publish("reports", "all have read it", after=[news.id])
    for reader in ("ann", "bob"):
        assert (await jobs.get(report.id)).state is State.DELAYED
        [message] = await jobs.claim("news", subscription=reader)
        await jobs.complete(message)
    assert (await jobs.get(report.id)).state is State.PENDING
    with pytest.raises(InvalidField, match="broadcast"):
        await jobs.publish("news", "later", after=[report.id])


async def test_many_may_wait_for_one(jobs: Room) -> None:
    first = await jobs.publish("jobs", "a")
    drafts = [NewMessage(body=n, after=[first.id]) for n in range(200)]
    await jobs.publish_many("reports", drafts)
    assert (await jobs.counts("reports")).delayed == 200
    await finish(jobs)
    assert (await jobs.counts("reports")).pending == 200


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"after": "one"}, "after"),
        ({"after": [1]}, "after"),
        ({"after": ["x"] * 1001}, "at most 1000"),
        ({"after": ["x"], "delay": 1}, "exclude"),
        ({"after": ["x"], "after_failed": "pray"}, "after_failed"),
    ],
)
async def test_what_makes_no_sense_is_refused(jobs: Room, options: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidField, match=problem):
        await jobs.publish("reports", 1, **options)  # type: ignore[arg-type]
    with pytest.raises(MessageNotFound):
        await jobs.publish("reports", 1, after=["nobody knows"])
    assert (await jobs.counts("reports")).open == 0
