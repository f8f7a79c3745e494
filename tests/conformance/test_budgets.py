"""Accounts: what is reserved cannot be spent twice, what is settled counts once, whatever happens between."""

import asyncio
import contextlib
import random
from typing import Any

import pytest
from tests.conformance.helpers import LONE_SURROGATE, events, one, refused, unchanged, until_waiting
from tests.conftest import OpenRoom

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import (
    AccountFrozen,
    AlreadyFrozen,
    AlreadySettled,
    ClaimLost,
    InvalidField,
    LimitReached,
)
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Budget, Charge
from postroom.kernel.housekeeping.housekeepers import PRUNER, Retention

DOLLAR = 1_000_000


async def _reserve(
    room: Room, holder: str, amount: int, *, seconds: float = 60, limit: int | None = None, **more: int
) -> None:
    charges = [Charge("day", amount, limit), *(Charge(name, each) for name, each in more.items())]
    await room.run(c.Reserve(holder=holder, charges=tuple(charges), seconds=seconds))


async def _settle(room: Room, holder: str, amount: int, **more: int) -> bool:
    charges = [Charge("day", amount), *(Charge(name, each) for name, each in more.items())]
    return await room.run(c.Settle(holder=holder, charges=tuple(charges)))


async def _day(room: Room) -> tuple[int, int]:
    account = (await room.accounts("day"))["day"]
    return account.spent, account.reserved


def _told(room: Room) -> list[str]:
    return [event.type for event in events(room) if event.type.startswith("account")]


async def test_what_was_spent_takes_the_place_of_what_was_reserved(room: Room) -> None:
    await _reserve(room, "turn 1", 5 * DOLLAR)
    assert await _day(room) == (0, 5 * DOLLAR)
    assert await _settle(room, "turn 1", 2 * DOLLAR)
    assert await _day(room) == (2 * DOLLAR, 0)
    assert _told(room) == ["account.reserved", "account.settled"]


async def test_a_reservation_beyond_the_limit_is_refused_with_the_figures(room: Room) -> None:
    await _reserve(room, "one", 4, limit=10)
    await _settle(room, "one", 4)
    await _reserve(room, "two", 5, limit=10)
    async with refused(room, LimitReached, '"day"', "of 10, 4 are spent", "5 are reserved") as caught:
        await _reserve(room, "three", 2, limit=10)
    assert {key: caught.value.data[key] for key in ("account", "amount", "limit", "spent", "reserved")} == {
        "account": "day",
        "amount": 2,
        "limit": 10,
        "spent": 4,
        "reserved": 5,
    }
    await _reserve(room, "three", 1, limit=10)


async def test_of_several_accounts_all_are_reserved_or_none(room: Room) -> None:
    await room.run(c.SetLimit(account="team", limit=3))
    async with refused(room, LimitReached, '"team"'):
        await _reserve(room, "one", 1, agent=1, team=4)
    assert await _day(room) == (0, 0)
    await _reserve(room, "one", 1, agent=1, team=3)
    accounts = await room.accounts("day", "agent", "team", "nothing")
    assert {name: account.reserved for name, account in accounts.items()} == {
        "day": 1,
        "agent": 1,
        "team": 3,
        "nothing": 0,
    }


async def test_of_many_who_want_the_last_dollar_one_gets_it(room: Room) -> None:
    outcomes = await asyncio.gather(
        *(_reserve(room, f"turn {n}", DOLLAR, limit=DOLLAR) for n in range(20)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes].count(LimitReached) == 19
    assert await _day(room) == (0, DOLLAR)


async def test_settled_once_it_is_settled(room: Room) -> None:
    await _reserve(room, "turn", 5)
    assert await _settle(room, "turn", 3)
    async with unchanged(room):
        assert not await _settle(room, "turn", 3)
        assert not await _settle(room, "turn", 9, agent=1)
    async with refused(room, AlreadySettled, '"turn"'):
        await _reserve(room, "turn", 1)


async def test_what_is_reserved_and_not_settled_is_released(room: Room) -> None:
    await _reserve(room, "turn", 5, agent=7)
    await _settle(room, "turn", 3)
    agent = (await room.accounts("agent"))["agent"]
    assert (agent.spent, agent.reserved) == (0, 0)


async def test_a_release_gives_back_and_says_so_once(room: Room) -> None:
    await _reserve(room, "turn", 5)
    assert await room.run(c.ReleaseReservation(holder="turn"))
    assert await _day(room) == (0, 0)
    async with unchanged(room):
        assert not await room.run(c.ReleaseReservation(holder="turn"))


async def test_a_reservation_of_the_dead_stops_counting_and_the_late_truth_still_counts(
    room: Room, clock: ManualClock
) -> None:
    await _reserve(room, "dead", 9, limit=10, seconds=60)
    with pytest.raises(LimitReached):
        await _reserve(room, "next", 5, limit=10)
    clock.advance(60)
    assert await _day(room) == (0, 0)
    await _reserve(room, "next", 5, limit=10)
    assert await _settle(room, "dead", 8), "it was not dead"
    assert await _day(room) == (8, 5)
    assert not await _settle(room, "dead", 8)


async def test_a_settlement_counts_without_a_reservation_and_beyond_the_limit(room: Room) -> None:
    await room.run(c.SetLimit(account="day", limit=5))
    assert await _settle(room, "released before", 8)
    assert await _day(room) == (8, 0)
    async with refused(room, LimitReached):
        await _reserve(room, "next", 0)


async def test_reserving_again_takes_the_place_of_the_first_time(room: Room, clock: ManualClock) -> None:
    await _reserve(room, "turn", 8, limit=10, seconds=60, agent=1)
    clock.advance(50)
    await _reserve(room, "turn", 9, limit=10, seconds=60)
    clock.advance(50)
    assert await _day(room) == (0, 9)
    assert (await room.accounts("agent"))["agent"].reserved == 0
    async with refused(room, LimitReached):
        await _reserve(room, "turn", 11, limit=10)
    assert await _day(room) == (0, 9), "a refused renewal leaves the old one"


async def test_of_work_of_which_there_is_one_at_a_time_the_newest_reservation_counts(room: Room) -> None:
    charge = Charge("day", 8, 10)

    async def begin(holder: str) -> None:
        await room.run(c.Reserve(holder=holder, charges=(charge,), seconds=60, supersedes="lane/coder/"))

    await begin("lane/coder/1")
    with pytest.raises(LimitReached):
        await _reserve(room, "lane/coder", 8, limit=10)
    with pytest.raises(LimitReached):
        await _reserve(room, "lane/coder-2/1", 8, limit=10)
    await begin("lane/coder/2")
    await begin("lane/coder/2")
    assert await _day(room) == (0, 8)
    assert await _settle(room, "lane/coder/1", 3), "it was not dead"
    assert await _day(room) == (3, 8)
    async with refused(room, LimitReached):
        await begin("lane/coder/3")
    assert await _day(room) == (3, 8)


async def test_a_limit_of_its_own_goes_before_the_one_a_reservation_brings(room: Room) -> None:
    await room.run(c.SetLimit(account="day", limit=20))
    await _reserve(room, "one", 15, limit=10)
    await room.run(c.SetLimit(account="day", limit=None))
    async with refused(room, LimitReached, "of 10"):
        await _reserve(room, "two", 1, limit=10)
    async with unchanged(room):
        await room.run(c.SetLimit(account="day", limit=None))


async def test_nothing_goes_when_the_limit_is_zero_but_what_is_free(room: Room) -> None:
    await _reserve(room, "free", 0, limit=0)
    async with refused(room, LimitReached):
        await _reserve(room, "dear", 1, limit=0)


async def test_the_peak_is_the_largest_recent_amount_and_fades(room: Room) -> None:
    for number, amount in enumerate((100, 5, 0, 5)):
        await _settle(room, f"turn {number}", amount)
    assert (await room.accounts("day"))["day"].peak == 81


async def test_accounts_of_tenants_are_apart(room: Room) -> None:
    await _reserve(room, "turn", 5)
    await room.run(c.Settle(holder="turn", charges=(Charge("day", 3),), tenant="other"))
    assert await _day(room) == (0, 5)


async def test_accounts_are_listed_by_name(room: Room) -> None:
    for name in ("talk/b", "talk/a", "talk", "tall", "agent"):
        await room.run(c.SetLimit(account=name, limit=1))
    await room.run(c.Freeze(account="talk/b", reason="loop"))
    assert [found.name for found in await room.list_accounts("talk/")] == ["talk/a", "talk/b"]
    assert [found.name for found in await room.list_accounts("talk/", frozen=True)] == ["talk/b"]
    assert [found.name for found in await room.list_accounts("", after="talk", limit=2)] == [
        "talk/a",
        "talk/b",
    ]


async def test_an_outcome_and_its_cost_commit_together_or_not_at_all(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    job = await one(room, "jobs")
    await _reserve(room, "turn", 5)
    settle = c.Settle(holder="turn", charges=(Charge("day", 3),))
    complete = c.Complete(message_id=job.id, token="another")
    async with refused(room, ClaimLost):
        await room.run(c.Unit(commands=(settle, complete)))
    assert await _day(room) == (0, 5)
    assert job.claim_token is not None
    complete = c.Complete(message_id=job.id, token=job.claim_token)
    await room.run(c.Unit(commands=(settle, complete)))
    assert await _day(room) == (3, 0)


@pytest.mark.needs("reopen")
async def test_reservations_and_settlements_outlive_the_process(open_room: OpenRoom) -> None:
    async with open_room() as room:
        await _reserve(room, "one", 4, limit=10)
        await _reserve(room, "two", 3, limit=10)
        await _settle(room, "two", 2)
        await room.run(c.Freeze(account="talk", reason="loop"))
    async with open_room() as room:
        assert await _day(room) == (2, 4)
        assert not await _settle(room, "two", 2)
        assert (await room.accounts("talk"))["talk"].frozen == "loop"
        async with refused(room, LimitReached):
            await _reserve(room, "three", 5, limit=10)


# frozen accounts, and mail that waits for them


async def test_a_frozen_account_takes_no_reservation_but_settles(room: Room) -> None:
    await _reserve(room, "running", 5)
    await room.run(c.Freeze(account="day", reason="pause"))
    async with refused(room, AccountFrozen, '"day"', "(pause)"):
        await _reserve(room, "next", 0)
    assert await _settle(room, "running", 5)
    await room.run(c.Thaw(account="day"))
    await _reserve(room, "next", 1)


async def test_of_many_who_freeze_one_does(room: Room) -> None:
    outcomes = await asyncio.gather(
        *(room.run(c.Freeze(account="talk", reason=f"reason {n}")) for n in range(10)),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes].count(AlreadyFrozen) == 9
    assert _told(room) == ["account.frozen"]
    await room.run(c.Freeze(account="talk", reason="stopped", replace=True))
    async with refused(room, AlreadyFrozen, "(stopped)"):
        await room.run(c.Freeze(account="talk", reason="stopped", replace=True))


async def test_thawing_what_is_not_frozen_changes_nothing(room: Room) -> None:
    async with unchanged(room):
        assert await room.run(c.Thaw(account="talk")) == 0


async def _hold(room: Room, account: str = "talk", **until: Any) -> str:
    message = await one(room, "jobs")
    assert message.claim_token is not None
    held = {"message_id": message.id, "token": message.claim_token, **(until or {"seconds": 3600})}
    await room.run(c.Hold(account=account, **held))
    return message.id


async def test_held_mail_waits_without_using_an_attempt_and_goes_on_in_its_place(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs")
    await room.publish_many("jobs", [1, 2])
    await room.run(c.Freeze(account="talk", reason="loop"))
    first, second = await _hold(room), await _hold(room)
    clock.advance(60)
    await room.publish("jobs", 3)
    assert (await room.get(first)).state is State.DELAYED
    assert await room.run(c.Thaw(account="talk")) == 2
    messages = await room.claim("jobs", limit=None)
    assert [message.body for message in messages] == [1, 2, 3]
    assert [message.attempts for message in messages] == [1, 1, 1]
    assert [message.id for message in messages[:2]] == [first, second]


async def test_mail_held_too_late_is_given_back(room: Room) -> None:
    """Between the refusal and the hold, somebody thawed the account: nobody else would wake it."""
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    message = await _hold(room)
    assert (await room.get(message)).state is State.PENDING
    assert (await one(room, "jobs")).attempts == 1


async def test_a_hold_ends_with_its_time(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    await room.run(c.Freeze(account="talk", reason="loop"))
    await _hold(room, seconds=60)
    clock.advance(60)
    message = await one(room, "jobs")
    assert await room.run(c.Thaw(account="talk")) == 0, "it is at work, and stays there"
    await room.complete(message)


async def test_only_the_latest_hold_of_a_message_counts(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    for account in ("one", "two"):
        await room.run(c.Freeze(account=account, reason="loop"))
    await _hold(room, "one")
    await room.run(c.Thaw(account="one"))
    await room.run(c.Freeze(account="one", reason="again"))
    message = await _hold(room, "two")
    assert await room.run(c.Thaw(account="one")) == 0
    assert (await room.get(message)).state is State.DELAYED
    assert await room.run(c.Thaw(account="two")) == 1


@pytest.mark.usefixtures("only_wakeups")
async def test_a_thaw_wakes_whoever_waits_for_mail(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    await room.run(c.Freeze(account="talk", reason="loop"))
    await _hold(room)
    waiting = asyncio.create_task(room.claim("jobs", wait=3600))
    await until_waiting(room)
    await room.run(c.Thaw(account="talk"))
    async with asyncio.timeout(60):
        assert len(await waiting) == 1


async def test_held_mail_can_be_cancelled_and_is_not_woken_then(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    await room.run(c.Freeze(account="talk", reason="loop"))
    message = await _hold(room)
    await room.cancel(message)
    assert await room.run(c.Thaw(account="talk")) == 0
    assert (await room.get(message)).state is State.CANCELLED


async def test_a_conversation_ends_whole_but_for_what_is_kept(room: Room) -> None:
    await room.create_queue("default/inbox/a")
    await room.create_queue("default/outbox/web")
    await room.create_queue("news", consumer_mode="broadcast")
    await room.subscribe("news", "ann")
    begin = await room.publish("default/inbox/a", "begin")
    ids = [
        (await room.publish("default/inbox/a", "held", correlation_id=begin.id)).id,
        (await room.publish("default/inbox/a", "later", correlation_id=begin.id, delay=60)).id,
        (await room.publish("news", "all", correlation_id=begin.id)).id,
    ]
    claimed = await one(room, "default/inbox/a")
    reply = await room.publish("default/outbox/web", "answer", correlation_id=begin.id)
    other = await room.publish("default/inbox/a", "another conversation")
    ended = await room.run(c.CancelConversation(correlation_id=begin.id, reason="stopped", keep=("outbox/",)))
    assert ended == 4
    for message_id in (begin.id, *ids):
        assert (await room.get(message_id)).state is State.CANCELLED
    assert {(await room.get(kept.id)).state for kept in (reply, other)} == {State.PENDING}
    with pytest.raises(ClaimLost):
        await room.complete(claimed)
    async with unchanged(room):
        assert await room.run(c.CancelConversation(correlation_id=begin.id, keep=("outbox/",))) == 0


# what is refused


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (c.Reserve(holder="", charges=(Charge("day", 1),), seconds=1), "holder"),
        (c.Reserve(holder="h", charges=(), seconds=1), "charges"),
        (c.Reserve(holder="h", charges=(Charge("day", -1),), seconds=1), "amount"),
        (c.Reserve(holder="h", charges=(Charge("day", 1.5),), seconds=1), "amount"),  # type: ignore[arg-type]
        (c.Reserve(holder="h", charges=(Charge("day", True),), seconds=1), "amount"),
        (c.Reserve(holder="h", charges=(Charge("day", 2**60),), seconds=1), "amount"),
        (c.Reserve(holder="h", charges=(Charge("day", 1, -1),), seconds=1), "limit"),
        (c.Reserve(holder="h", charges=(Charge("", 1),), seconds=1), "account"),
        (c.Reserve(holder="h", charges=(Charge(LONE_SURROGATE, 1),), seconds=1), "account"),
        (c.Reserve(holder="h", charges=(Charge("day", 1), Charge("day", 1)), seconds=1), "charges"),
        (c.Reserve(holder="h", charges=(Charge("day", 1),), seconds=0), "seconds"),
        (c.Settle(holder=" ", charges=()), "holder"),
        (c.Settle(holder="h", charges=(Charge("day", -1),)), "amount"),
        (c.SetLimit(account="day", limit=-1), "limit"),
        (c.Freeze(account="day", reason=""), "reason"),
        (c.Thaw(account=""), "account"),
        (c.ReleaseReservation(holder="h", correlation_id=LONE_SURROGATE), "correlation_id"),
        (c.CancelConversation(correlation_id=""), "correlation_id"),
    ],
)
async def test_what_makes_no_sense_is_refused(room: Room, command: c.Command, field: str) -> None:
    async with refused(room, InvalidField, field):
        await room.run(command)


async def test_a_hold_needs_the_claim(room: Room) -> None:
    await room.create_queue("jobs")
    receipt = await room.publish("jobs", 1)
    await one(room, "jobs")
    await room.run(c.Freeze(account="talk", reason="loop"))
    async with refused(room, ClaimLost):
        await room.run(c.Hold(message_id=receipt.id, token="not mine", account="talk", seconds=60))


# what is kept, and for how long


async def test_what_is_old_is_forgotten_and_the_ledger_says_so(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=Retention(settled_s=100, accounts_s=1000)) as room:
        await _reserve(room, "dead", 1, seconds=10)
        await _settle(room, "done", 1, agent=1)
        await room.run(c.Freeze(account="talk", reason="loop"))
        clock.advance(200)
        await room.housekeep(PRUNER)
        assert await _settle(room, "done", 1), "after so long nobody retries"
        clock.advance(1001)
        await _settle(room, "fresh", 1)
        await room.housekeep(PRUNER)
        assert [found.name for found in await room.list_accounts()] == ["day", "talk"]
        assert _told(room)[-1] == "accounts.pruned"


async def test_a_random_walk_keeps_within_the_limit_and_folds(room: Room, clock: ManualClock) -> None:
    """Whatever is reserved, settled, released or forgotten: as long as nobody spends more than was
    reserved, the limit holds."""
    rng = random.Random(7)
    held: dict[str, tuple[int, int]] = {}
    for step in range(300):
        deed = rng.randrange(5)
        if deed <= 1:
            amount = rng.randrange(30)
            with contextlib.suppress(LimitReached):
                await _reserve(room, f"turn {step}", amount, limit=500, seconds=1000)
                held[f"turn {step}"] = (amount, clock.now())
        elif held:
            holder = rng.choice(sorted(held))
            amount, _ = held.pop(holder)
            if deed == 4:
                await room.run(c.ReleaseReservation(holder=holder))
            else:
                await _settle(room, holder, rng.randrange(amount + 1))
        clock.advance(0.5)
        spent, reserved = await _day(room)
        assert spent + reserved <= 500
        assert reserved == sum(amount for amount, _ in held.values())
    assert (await room.accounts("day"))["day"] != Budget(name="day")
