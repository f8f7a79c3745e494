"""What tenants wrote and takes long is tried elsewhere: nobody else waits for it, and it is stopped."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import Room
from postroom.errors import SchemaViolation
from postroom.kernel import engine
from postroom.kernel.costly_checks import ChecksNeeded
from tests.conformance.helpers import bodies, counts
from tests.conformance.test_rules import add_rule, findings, route

HUNDREDS = "a[ab]{999}c"
TEXT = "".join(random.Random(1).choices("ab", k=200_000))


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Room]:
    async with postroom.open(str(tmp_path / "room.db"), housekeeping=False) as room:
        for name in ("orders", "bulk", "other"):
            await room.create_queue(name)
        yield room


@pytest.mark.parametrize(
    "expression",
    [
        " || ".join([f'body.s.matches("{HUNDREDS}")'] * 8),
        " + ".join(["body.s"] * 200) + ' == "x"',
        " || ".join([r'body.s.matches("a[ab]\x7b999\x7dc")'] * 8),
    ],
)
async def test_an_expression_that_takes_too_long_stops_its_rule_and_nothing_else(
    shop: Room, expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_rule(shop, name="slow", source_queue_id="orders", expression=expression, action=route("bulk"))
    asked = asyncio.Event()
    real, loop = shop._core.committer.checks.answer, asyncio.get_running_loop()
    go_on = threading.Event()

    def answer(checks: Any) -> Any:
        loop.call_soon_threadsafe(asked.set)
        assert go_on.wait(60)
        return real(checks)

    monkeypatch.setattr(shop._core.committer.checks, "answer", answer)
    slow = asyncio.ensure_future(shop.publish("orders", {"s": TEXT}))
    await asyncio.wait_for(asked.wait(), 60)
    await asyncio.wait_for(shop.publish("other", 1), 60)
    assert not slow.done(), "others are served while it is tried"
    go_on.set()
    receipt = await slow
    assert (await shop.get(receipt.id)).queue == "orders", "the message stays where it is"
    [(kind, why)] = await findings(shop)
    assert kind == "rule.tripped"
    assert "took" in why
    await shop.publish("orders", {"s": "short"})
    assert await counts(shop, "orders") == {"pending": 2}


async def test_a_costly_rule_that_ends_in_time_acts_as_any_other(shop: Room) -> None:
    condition = [{"field": "body.s", "op": "matches", "value": "b{50}c{3}d"}]
    await add_rule(shop, name="long", source_queue_id="orders", conditions=condition, action=route("bulk"))
    await shop.publish("orders", {"s": "x" * 50_000 + "b" * 50 + "cccd"}, key="k")
    await shop.publish("orders", {"s": "x" * 50_000})
    assert (await counts(shop, "bulk"), await counts(shop, "orders")) == ({"pending": 1}, {"pending": 1})
    assert await findings(shop) == []


async def test_commands_of_one_group_do_not_wait_for_the_checks_of_others(
    shop: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each of the group has its own outcome, in its place."""
    await shop.register_schema("default", "coded", {"properties": {"s": {"pattern": HUNDREDS}}})
    await shop.update_queue("orders", schema="coded")
    asked: list[int] = []
    real = engine.Engine.apply

    def apply(self: engine.Engine, *args: Any) -> Any:
        try:
            return real(self, *args)
        except ChecksNeeded as needed:
            asked.append(len(needed.checks))
            raise

    monkeypatch.setattr(engine.Engine, "apply", apply)
    outcomes = await asyncio.gather(
        shop.publish("orders", {"s": "a" * 1002 + "c" + "x" * 4000}),
        shop.publish("other", 1),
        shop.publish("orders", {"s": "x" * 5000}),
        shop.publish("other", 2),
        return_exceptions=True,
    )
    assert isinstance(outcomes[2], SchemaViolation)
    assert [isinstance(outcome, BaseException) for outcome in outcomes] == [False, False, True, False]
    assert await bodies(shop, "other") == [1, 2]
    assert asked, "it was not tried where all wait"


async def test_a_schema_that_takes_too_long_refuses_the_message(shop: Room) -> None:
    # Several times of what is allowed, also on a quick machine.
    patterns = [{"pattern": f"{HUNDREDS}|{letter}"} for letter in "cdefghij"]
    await shop.register_schema("default", "coded", {"properties": {"s": {"allOf": patterns}}})
    await shop.update_queue("orders", schema="coded")
    with pytest.raises(SchemaViolation, match="too long"):
        await shop.publish("orders", {"s": TEXT})
    assert await counts(shop, "orders") == {}
    await shop.publish("orders", {"s": "a" * 1000 + "c"})


async def test_a_room_that_closes_while_a_check_runs_answers_whoever_waits(shop: Room) -> None:
    await shop.register_schema("default", "coded", {"properties": {"s": {"pattern": HUNDREDS}}})
    await shop.update_queue("orders", schema="coded")
    waiting = [asyncio.ensure_future(shop.publish("orders", {"s": TEXT + str(n)})) for n in range(3)]
    await asyncio.sleep(0)
    await shop.close()
    outcomes = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)
    assert all(isinstance(outcome, Exception) for outcome in outcomes)
