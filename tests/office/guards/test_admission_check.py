"""The gate: midnight, changed settings, rooms, strange names, and work that is broken off."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.acceptance.office import text
from tests.office.guards.house import PING_PONG, guarded, office_of

import postroom
from postroom import State
from postroom.clock import SECOND, ManualClock, from_datetime
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Charge
from postroom.kernel.model import NewMessage
from postroom.office.guards import budgets as accounts
from postroom.office.guards import pauses
from postroom.office.guards.admission_check import AdmissionCheck
from postroom.office.guards.budgets import BudgetGuard
from postroom.office.guards.pauses import LimitTooLow, NotPaused
from postroom.office.intake.intake import Incoming
from postroom.office.lanes.batches import Batch
from postroom.providers.protocol import Finished, SessionStarted, TurnRequest, TurnStream
from postroom.providers.script_rules import ScriptRule

RICH = {"conversation_usd": None, "agent_daily_usd": None, "team_daily_usd": None, "daily_usd": None}


def _evening() -> ManualClock:
    return ManualClock(from_datetime(datetime(2026, 11, 16, 23, 59, 0, tzinfo=UTC)))


async def test_what_waits_for_a_budget_goes_on_by_itself_after_midnight(tmp_path: Path) -> None:
    clock = _evening()
    budgets = {**RICH, "daily_usd": 0.1, "reserve_usd": 0.1, "warn_at": 1}
    async with guarded(tmp_path, ScriptRule(reply="ok"), price=0.1, budgets=budgets, clock=clock) as desk:
        await desk.write("@lead one")
        await desk.until(lambda found: any(m.message_type == "office.reply" for m in found))
        await desk.write("@lead two")
        [waiting] = await desk.held(1)
        [notice] = [m for m in await desk.notices() if "used up" in text(m)]
        assert "goes on by itself at 2026-11-17T00:00:00.000Z (midnight, UTC)" in text(notice)
        assert waiting.visible_at == clock.now() + 60_000_000
        clock.advance(61)
        await desk.room.housekeep("visibility_timeout_enforcer")
        await desk.quiet()
        assert (await desk.account("day/2026-11-16")).spent == 100_000
        assert (await desk.account("day/2026-11-17")).spent == 100_000


class Striking(ManualClock):
    """It strikes midnight between two looks at it."""

    def __init__(self, looks: int) -> None:
        super().__init__(_evening().now())
        self._looks = looks

    def now(self) -> int:
        self._looks -= 1
        if self._looks == 0:
            self.advance(61)
        return super().now()


@pytest.mark.parametrize("looks", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("frozen", [True, False])
async def test_what_is_refused_at_midnight_waits_for_no_second_day(
    tmp_path: Path, looks: int, frozen: bool
) -> None:
    """The budget of a day that is over must not hold anything until the next one is over too."""
    day = accounts.whole_day("2026-11-16")
    async with postroom.open(str(tmp_path / "room.db"), clock=_evening()) as room:
        office, _ = office_of(room, tmp_path, budgets={**RICH, "daily_usd": 1})
        await office.furnish()
        await room.run(c.Settle(holder="earlier", charges=(Charge(day, 1_000_000),)))
        if frozen:
            await room.run(c.Freeze(account=day, reason=BudgetGuard.BUDGET.value))
        await office.take_in(Incoming(channel="web", sender="Ann", text="@lead go"))
        [mail] = await room.claim("office/inbox/lead")
        async with AdmissionCheck(room, office.guards, Striking(looks)).admit(Batch(mail), "lead") as visit:
            assert visit is None or looks <= 2, "a new day has a new budget"
        waiting = await room.get(mail.id)
        if visit is None:
            assert waiting.visible_at is not None
            assert waiting.visible_at <= _evening().now() + 62 * SECOND


async def test_a_limit_for_good_is_looked_at_again_every_day(tmp_path: Path) -> None:
    clock, budgets = _evening(), {**RICH, "reserve_usd": 0.1}
    async with guarded(tmp_path, ScriptRule(reply="ok"), price=0.1, budgets=budgets, clock=clock) as desk:
        await pauses.raise_budget(desk.room, "agent/lead", 0.1)
        await desk.write("@lead one")
        await desk.replies(1)
        await desk.write("@lead two")
        [waiting] = await desk.held(1)
        assert waiting.visible_at == clock.now() + 60 * SECOND


async def test_a_turn_over_midnight_is_paid_on_the_day_it_began(tmp_path: Path) -> None:
    clock = _evening()
    rule, limits = ScriptRule(reply="ok", seconds=0.5), {"lease_s": 3600}
    async with guarded(tmp_path, rule, pace=1.0, price=0.1, clock=clock, limits=limits) as desk:
        await desk.write("@lead one")
        await desk.until(lambda _: desk.paid.turns == 1)
        clock.advance(61)
        await desk.quiet()
        assert (await desk.account("day/2026-11-16")).spent == 100_000
        assert (await desk.account("day/2026-11-17")).spent == 0


async def test_a_budget_raised_in_the_settings_lets_the_mail_go_on_at_the_next_start(tmp_path: Path) -> None:
    low = {**RICH, "agent_daily_usd": 0.1, "reserve_usd": 0.1}
    paid = {"price": 0.1, "clock": ManualClock()}
    async with guarded(tmp_path, ScriptRule(reply="ok"), budgets=low, **paid) as desk:
        for n in range(2):
            await desk.write(f"@lead {n}")
            await desk.until(lambda _, n=n: desk.paid.turns == 1)
        await desk.held(1)
    async with guarded(tmp_path, ScriptRule(reply="ok"), budgets=low, **paid) as desk:
        await desk.held(1)
        assert desk.paid.turns == 0, "nothing was changed, so it waits"
    async with guarded(
        tmp_path, ScriptRule(reply="ok"), budgets={**low, "agent_daily_usd": 5}, **paid
    ) as desk:
        await desk.quiet()
        assert desk.paid.turns == 1


async def test_zero_dollars_forbid_what_costs_and_allow_what_is_free(tmp_path: Path) -> None:
    zero = {"daily_usd": 0}
    async with guarded(tmp_path / "free", ScriptRule(reply="ok"), provider="script", budgets=zero) as desk:
        await desk.write("@lead hello")
        await desk.quiet()
    for number, reserve in enumerate((1, 0)):
        budgets = {**zero, "reserve_usd": reserve}
        async with guarded(tmp_path / f"paid{number}", ScriptRule(reply="ok"), budgets=budgets) as desk:
            await desk.write("@lead hello")
            await desk.held(1)
            assert desk.paid.turns == 0


async def test_a_loop_in_a_room_is_told_to_the_person_who_began_it(tmp_path: Path) -> None:
    """Mail of a room has no channel that anybody reads."""
    rules = [
        ScriptRule(agent="lead", match="Chat room", reply="[#dev: $turn lead has something new to say]"),
        ScriptRule(agent="coder", match="Chat room", reply="[#dev: $turn coder has something new to say]"),
        ScriptRule(agent="reviewer", match="Chat room", reply="I only listen."),
        ScriptRule(agent="lead", reply="Hello. [#dev: good morning]"),
    ]
    async with guarded(tmp_path, *rules, guards={"hops": 5}) as desk:
        await desk.write("@lead go")
        await desk.until(lambda found: any(m.message_type == "office.notice" for m in found))
        await desk.until(
            lambda found: not any(m.state in (State.PENDING, State.CLAIMED) for m in found if m.subscription)
        )
        [notice] = await desk.notices()
        assert (notice.channel, notice.sender_id) == ("web", "ann")
        [paused] = await pauses.paused_conversations(desk.room)
        assert (paused.channel, paused.person) == ("web", "ann")
        assert await pauses.stop(desk.room, paused.conversation) > 0
        await desk.until(lambda found: all(m.state is not State.DELAYED for m in found))


async def test_mail_of_a_paused_conversation_does_not_stop_other_mail(
    tmp_path: Path,
) -> None:
    rules = [
        ScriptRule(agent="lead", match="go on", reply="Hm.", hand_off={"coder": "x $turn"}),
        ScriptRule(reply="ok"),
    ]
    async with guarded(tmp_path, *rules, guards={"messages": 1}) as desk:
        await desk.write("@lead go on", platform_id="1")
        await desk.held(1)
        await desk.write("@coder something else", platform_id="2")
        await desk.held(1)
        done = [m for m in await desk.mail() if m.correlation_id == "web:2"]
        assert [m.state for m in done] == [State.COMPLETED]


async def test_what_rides_along_from_a_paused_conversation_waits_without_the_rest(
    tmp_path: Path,
) -> None:
    async with guarded(
        tmp_path, ScriptRule(reply="ok", seconds=0.3), pace=1.0, guards={"messages": 2}
    ) as desk:
        await desk.write("@lead busy", platform_id="0")
        await desk.until(lambda _: desk.paid.turns == 1)
        flood = [
            NewMessage(
                body={"text": f"note {n}", "team": "dev"},
                channel="web",
                sender="Ann",
                sender_id="ann",
                from_agent="coder",
                agent="lead",
                correlation_id="web:1",
                hop=1,
            )
            for n in range(3)
        ]
        await desk.room.run(c.Publish(queue="office/inbox/lead", messages=flood))
        await desk.write("@lead a question of my own", platform_id="2")
        waiting = await desk.held(3)
        assert {m.correlation_id for m in waiting} == {"web:1"}
        [own] = [m for m in await desk.mail() if m.correlation_id == "web:2"]
        assert (own.state, own.attempts) == (State.COMPLETED, 1)


async def test_mail_that_was_stopped_while_the_agent_was_busy_never_begins(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with guarded(tmp_path) as desk:
        busy, bob = asyncio.Event(), asyncio.Event()

        async def run(request: TurnRequest) -> TurnStream:
            desk.paid.turns += 1
            await (busy if desk.paid.turns == 1 else bob).wait()
            yield SessionStarted(session_id="s", provider="paid")
            yield Finished(text="ok")

        desk.paid.run = run
        await desk.write("@lead busy", platform_id="0")
        await desk.until(lambda _: desk.paid.turns == 1)
        await desk.write("@lead mine", sender_id="bob", platform_id="1")
        await desk.write("@lead and mine", sender_id="cy", platform_id="2")
        busy.set()
        await desk.until(lambda _: desk.paid.turns == 2)
        [waiting] = [m for m in await desk.mail() if m.state is State.PENDING]
        assert await pauses.stop(desk.room, waiting.correlation_id or "") == 1
        bob.set()
        await desk.quiet()
        assert (await desk.room.get(waiting.id)).state is State.CANCELLED
        assert desk.paid.turns == 2
        assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_conversations_with_names_of_any_length_are_guarded(tmp_path: Path) -> None:
    talk = "x" * 500
    async with guarded(tmp_path, *PING_PONG, guards={"messages": 1}) as desk:
        first = NewMessage(
            body={"text": "go"},
            channel="web",
            sender="Ann",
            sender_id="ann",
            agent="lead",
            correlation_id=talk,
        )
        await desk.room.run(c.Publish(queue="office/inbox/lead", messages=[first]))
        await desk.held(1)
        [paused] = await pauses.paused_conversations(desk.room)
        assert paused.conversation == talk
        assert await pauses.resume(desk.room, talk) == 1
        await desk.until(lambda found: sum(m.message_type == "office.notice" for m in found) == 2)
        assert await pauses.stop(desk.room, talk) == 1


async def test_a_stop_of_the_office_in_the_middle_of_a_turn_settles_the_estimate(tmp_path: Path) -> None:
    async with guarded(tmp_path, ScriptRule(reply="ok", seconds=600), pace=1.0) as desk:
        await desk.write("@lead go", platform_id="1")
        await desk.until(lambda _: desk.paid.turns == 1)
        await desk.office.stop(grace=0.05)
        account = await desk.account(accounts.conversation("web:1"))
        assert (account.spent, account.reserved) == (500_000, 0)
        [mail] = await desk.mail()
        assert (mail.state, mail.attempts) == (State.PENDING, 0)


@pytest.mark.parametrize(
    ("rule", "guards", "words"),
    [
        (ScriptRule(reply="ok", hang=True), {"idle_timeout_s": 0.1}, "gave no sign of life for 0.1 s"),
        (ScriptRule(reply="ok", seconds=600), {"turn_timeout_s": 0.1}, "was stopped after 0.1 s"),
        (ScriptRule(reply="x" * 2000), {"output_bytes": 1000}, "wrote more than one turn may write"),
    ],
)
async def test_a_turn_that_reaches_its_limits_is_stopped_and_the_person_is_told(
    tmp_path: Path, rule: ScriptRule, guards: dict[str, float], words: str
) -> None:
    async with guarded(tmp_path, rule, pace=1.0, guards={**guards, "attempts": 1}) as desk:
        await desk.write("@lead go", platform_id="1")
        found = await desk.until(lambda found: any(m.message_type == "office.failure" for m in found))
        [told] = [m for m in found if m.message_type == "office.failure"]
        assert words in text(told)
        [mail] = await desk.mail()
        assert mail.state is State.DEAD
        assert await desk.spent("web:1") == 500_000, "nobody knows what it has used, so the estimate counts"


async def test_every_limit_of_a_turn_has_a_default_and_reaches_the_provider(tmp_path: Path) -> None:
    async with guarded(tmp_path, budgets={"turn_usd": 2}) as desk:
        for lane in desk.office._lanes:
            limits = lane._runner._worker.limits
            assert (limits.wall_clock, limits.idle, limits.output_bytes) == (1800, 600, 64 * 1024 * 1024)
            assert (limits.grace, limits.budget_usd) == (30, 2)


async def test_decisions_about_what_is_not_paused_are_refused(tmp_path: Path) -> None:
    async with guarded(tmp_path, ScriptRule(reply="ok"), price=1) as desk:
        with pytest.raises(NotPaused, match="Nothing was changed"):
            await pauses.resume(desk.room, "web:none")
        await desk.write("@lead go", platform_id="1")
        await desk.quiet()
        with pytest.raises(LimitTooLow, match=r"\$1.00 are spent already"):
            await pauses.raise_limit(desk.room, "web:1", usd=0.5)
        with pytest.raises(InvalidField):
            await pauses.raise_limit(desk.room, "web:1")
        with pytest.raises(InvalidField):
            await pauses.raise_budget(desk.room, "day/2026-11-16", -1)
        assert await pauses.raise_limit(desk.room, "web:1", usd=50, messages=100, hops=20) == 0
        assert await pauses.stop(desk.room, "web:1") == 0
        assert await pauses.stop(desk.room, "web:1") == 0


async def test_two_who_continue_at_once_wake_the_mail_once(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="lead", reply="Hm.", hand_off={"coder": "go"}), ScriptRule(reply="done")]
    async with guarded(tmp_path, *rules, guards={"messages": 1}) as desk:
        await desk.write("@lead go", platform_id="1")
        await desk.held(1)
        woken = await asyncio.gather(
            pauses.resume(desk.room, "web:1"), pauses.resume(desk.room, "web:1"), return_exceptions=True
        )
        assert sorted(str(each) for each in woken if isinstance(each, int))[-1] == "1"
        await desk.quiet()
        assert desk.paid.turns == 2


async def test_an_office_without_settings_has_all_guards(tmp_path: Path) -> None:
    async with guarded(tmp_path) as desk:
        made, _ = office_of(desk.room, tmp_path, provider="paid")
        rules = made.guards
        assert (rules.hops, rules.messages, rules.repeats, rules.cycles) == (10, 50, 3, 4)
        assert (rules.conversation, rules.daily) == (10_000_000, 100_000_000)
        assert rules.terms("lead").daily == 25_000_000
        assert rules.teams == {"dev": 50_000_000}


async def test_of_lanes_that_trip_over_one_budget_at_once_each_tells_its_person(tmp_path: Path) -> None:
    day = accounts.whole_day("2026-11-16")
    people = {"lead": "ann", "coder": "bob", "reviewer": "cy"}
    async with postroom.open(str(tmp_path / "room.db"), clock=_evening()) as room:
        office, _ = office_of(room, tmp_path, budgets={**RICH, "daily_usd": 1})
        await office.furnish()
        await room.run(c.Settle(holder="earlier", charges=(Charge(day, 1_000_000),)))
        for agent, person in people.items():
            mail = Incoming(channel="web", sender=person, sender_id=person, text=f"@{agent} go")
            await office.take_in(mail)
        gate = AdmissionCheck(room, office.guards, _evening())

        async def knock(agent: str) -> None:
            [mail] = await room.claim(f"office/inbox/{agent}")
            async with gate.admit(Batch(mail), agent) as visit:
                assert visit is None

        await asyncio.gather(*(knock(agent) for agent in people))
        told = (await room.messages(queue="office/outbox/web")).messages
        assert sorted(each.sender_id or "" for each in told) == ["ann", "bob", "cy"]
