"""One list of what waits for a person: nothing is missing, blocking things come first, the oldest first."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.services import callers
from postroom.services.errors import OwnerOnly
from postroom.services.needs_you import NeedKind, PersonNeed
from tests.api.house import House, opened

OWNER = callers.owner()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path, works=False) as house:
        yield house


async def needs(house: House) -> list[PersonNeed]:
    return await house.deps.services.needs_you.list_all(OWNER)


async def die(house: House, queue: str, *, kind: str = "crashed", count: int = 1, **options: object) -> None:
    await house.room.create_queue(queue, exist_ok=True)
    await house.room.update_queue(queue, max_retries=0)
    for _ in range(count):
        await house.room.publish(queue, {"text": "x"}, **options)  # type: ignore[arg-type]
    for claimed in await house.room.claim(queue, limit=count):
        await house.room.fail(claimed, f"It was {kind}.", kind=kind)


async def test_reviews_of_every_scope_block_and_the_oldest_comes_first(house: House) -> None:
    services = house.deps.services
    first = await services.questions.ask(OWNER, "Which *name*?", ["a", "b"])
    await house.room.create_scope("shop")
    await house.room.create_queue("shop/review")
    spec = {"title": "Refund?", "sections": [{"type": "decision", "options": ["yes", "no"]}], "timeout_s": 60}
    second = await house.room.publish("shop/review", {}, hitl_spec=spec)
    found = await needs(house)
    assert [need.id for need in found] == [first, second.id]
    assert [need.kind for need in found] == [NeedKind.REVIEW, NeedKind.REVIEW]
    assert found[0].detail == "Which *name*?"
    assert found[1].title == "Refund?"
    assert found[1].due_at
    assert await services.needs_you.count(OWNER) == 2


async def test_dead_letters_of_one_queue_and_cause_are_one_piece_of_news(house: House) -> None:
    await die(house, "orders", count=3)
    await die(house, "orders", kind="refused")
    await die(house, "office/outbox/telegram")
    found = {need.title: need for need in await needs(house)}
    assert set(found) == {
        "3 messages died in default/orders",
        "1 message died in default/orders",
        "1 answer was not delivered on telegram",
    }
    assert not any(need.is_blocking for need in found.values())
    assert len(found["3 messages died in default/orders"].ids) == 3
    assert await house.deps.services.needs_you.count(OWNER) == 0


async def test_an_agent_without_credentials_blocks_once_however_much_died_of_it(house: House) -> None:
    await die(house, "office/inbox/coder", kind="auth", count=2, agent="coder")
    [need] = await needs(house)
    assert need.kind is NeedKind.CREDENTIAL
    assert need.is_blocking
    assert need.agent == "coder"
    assert len(need.ids) == 2


async def test_pauses_and_new_senders_block(house: House) -> None:
    services = house.deps.services
    await services.budgets.pause_all(OWNER)
    pairings = house.deps.control.office.pairings
    await pairings.admit("telegram", "77", "Ann")
    found = {need.kind: need for need in await needs(house)}
    assert set(found) == {NeedKind.PAUSE, NeedKind.SENDER}
    assert found[NeedKind.SENDER].title == "Ann wants to write on telegram"
    await services.pairing.approve(OWNER, found[NeedKind.SENDER].id)
    await services.budgets.resume_all(OWNER)
    assert await needs(house) == []


async def test_only_the_owner_is_told(house: House) -> None:
    with pytest.raises(OwnerOnly):
        await house.deps.services.needs_you.list_all(callers.agent("coder"))
