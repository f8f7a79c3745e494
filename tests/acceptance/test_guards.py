"""A guard that trips pauses the conversation, asks the person once, and loses nothing."""

from pathlib import Path

import pytest

from postroom import Message, State
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.office.guards import budgets as accounts
from postroom.office.guards import pauses
from postroom.office.guards.budgets import OFFICE, messages
from postroom.office.guards.pauses import NotPaused
from postroom.providers.protocol import (
    ErrorKind,
    Failed,
    Finished,
    SessionStarted,
    TurnRequest,
    TurnStream,
    Usage,
)
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.office import text
from tests.office.guards.house import PING_PONG, Guarded, guarded, talk_of

FREE_OF_LOOPS = {"hops": 900, "cycles": 900, "repeats": 900, "messages": 900}
RICH = {"conversation_usd": None, "agent_daily_usd": None, "team_daily_usd": None, "daily_usd": None}


async def _paused(desk: Guarded, held: int = 1) -> tuple[str, Message]:
    """Once a conversation is paused: its id, and the one notice of it."""
    waiting = await desk.held(held)
    [notice] = await desk.notices()
    return talk_of(waiting[0]), notice


async def test_the_message_cap_pauses_and_continue_gives_as_many_again(tmp_path: Path) -> None:
    guards = {**FREE_OF_LOOPS, "messages": 6}
    async with guarded(tmp_path, *PING_PONG, guards=guards, budgets=RICH) as desk:
        await desk.write("@lead go", platform_id="1")
        talk, notice = await _paused(desk)
        assert text(notice).splitlines() == [
            "I have paused this conversation: it has reached its limit of 6 messages.",
            "So far 6 messages were worked on, for $0.06. What is not done waits, and nothing is lost.",
            "Answer /continue web:1 to let it go on, or /stop web:1 to end it.",
        ]
        [waiting] = [m for m in await desk.mail() if m.state is State.DELAYED]
        assert waiting.attempts == 0, "no attempt was used up"
        assert await pauses.resume(desk.room, talk) == 1
        await desk.until(lambda found: sum(m.message_type == "office.notice" for m in found) == 2)
        await desk.held(1)
        assert desk.paid.turns == 12
        assert await desk.spent(talk) == 120_000
        assert (await desk.account(messages(talk))).spent == 12


async def test_the_cost_cap_pauses_before_it_is_passed(tmp_path: Path) -> None:
    budgets = {**RICH, "conversation_usd": 0.25, "reserve_usd": 0.1, "warn_at": 1}
    async with guarded(tmp_path, *PING_PONG, guards=FREE_OF_LOOPS, budgets=budgets, price=0.1) as desk:
        await desk.write("@lead go")
        talk, notice = await _paused(desk)
        assert await desk.spent(talk) == 200_000
        assert "may cost $0.10, which its limit of $0.25 does not allow" in text(notice)
        assert "for $0.20" in text(notice)
        assert "/raise 0.50" in text(notice)
        await pauses.raise_limit(desk.room, talk, usd=0.45)
        await desk.until(lambda found: sum(m.message_type == "office.notice" for m in found) == 2)
        assert await desk.spent(talk) == 400_000


async def test_agents_that_hand_the_same_back_and_forth_are_paused(tmp_path: Path) -> None:
    says = "Please look at the failing login test again and tell me what you find there."
    rules = [
        ScriptRule(agent="lead", reply="Hm.", hand_off={"coder": says}),
        ScriptRule(
            agent="coder",
            reply="Hm.",
            hand_off={"lead": "I looked at it again, and it is as it was before, sorry."},
        ),
    ]
    async with guarded(tmp_path, *rules, guards={"hops": 900, "cycles": 900}) as desk:
        await desk.write("@lead go")
        talk, notice = await _paused(desk)
        assert "@lead has written nearly the same to @coder 4 times." in text(notice)
        before = desk.paid.turns
        await pauses.resume(desk.room, talk)
        await desk.until(lambda found: sum(m.message_type == "office.notice" for m in found) == 2)
        assert desk.paid.turns > before + 3, "after a person has looked, the count begins anew"


async def test_a_cycle_with_ever_new_words_is_paused(tmp_path: Path) -> None:
    async with guarded(tmp_path, *PING_PONG, guards={"hops": 900}) as desk:
        await desk.write("@lead go")
        _, notice = await _paused(desk)
        assert "@lead has written to @coder 5 times without a word from you." in text(notice)


async def test_short_agreement_back_and_forth_is_no_loop(tmp_path: Path) -> None:
    rules = [
        ScriptRule(agent="lead", match="enough", reply="Good."),
        ScriptRule(agent="lead", reply="Go on?", hand_off={"coder": "ok"}),
        ScriptRule(agent="coder", match="", reply="Yes.", hand_off={"lead": "yes"}),
    ]
    async with guarded(tmp_path, *rules, guards={"hops": 6, "cycles": 6, "repeats": 1}) as desk:
        await desk.write("@lead go")
        _, notice = await _paused(desk)
        assert "handed on 7 times in a row" in text(notice), "only the number of hops ended it"


async def test_a_person_who_asks_the_same_again_and_again_is_answered(tmp_path: Path) -> None:
    rules = [
        ScriptRule(
            agent="lead",
            reply="I ask.",
            hand_off={"coder": "What is the status of the release, please tell me all of it?"},
        ),
        ScriptRule(agent="coder", reply="It is nearly done."),
    ]
    async with guarded(tmp_path, *rules, guards={"repeats": 1, "cycles": 1}) as desk:
        for _ in range(6):
            await desk.write("@lead What is the status of the release, please tell me all of it?")
            await desk.quiet()
        assert await desk.notices() == []
        assert all(m.state is State.COMPLETED for m in await desk.mail())


async def test_a_storm_of_a_thousand_messages_ends_paused_with_one_notice(tmp_path: Path) -> None:
    """Each answer makes two more: without guards this never ends."""
    rules = [
        ScriptRule(agent="lead", reply="More!", hand_off={"coder": "more $turn", "reviewer": "more $turn"}),
        ScriptRule(agent="coder", reply="More!", hand_off={"lead": "more $turn", "reviewer": "more $turn"}),
        ScriptRule(agent="reviewer", reply="More!", hand_off={"lead": "more $turn", "coder": "more $turn"}),
    ]
    async with guarded(tmp_path, *rules, budgets={"conversation_usd": 1}, price=0.02) as desk:
        await desk.write("@lead go", platform_id="storm")
        flood = [
            NewMessage(
                body={"text": f"[Message from teammate @lead]:\nstorm {n}", "team": "dev"},
                message_type="office.note",
                channel="web",
                sender="Ann",
                sender_id="ann",
                from_agent="lead",
                agent="coder",
                correlation_id="web:storm",
                hop=1,
            )
            for n in range(1000)
        ]
        await desk.room.run(c.Publish(queue="office/inbox/coder", messages=flood))
        found = await desk.until(
            lambda found: (
                not any(m.state in (State.PENDING, State.CLAIMED) for m in found if "outbox" not in m.queue)
            ),
            within=200,
        )
        notices = [m for m in found if m.message_type == "office.notice"]
        assert len(notices) == 1
        waiting = [m for m in found if m.state is State.DELAYED]
        served = [m for m in found if m.state is State.COMPLETED and "outbox" not in m.queue]
        assert len(served) <= 50
        assert len(waiting) + len(served) >= 1001, "nothing is lost"
        assert {m.attempts for m in waiting} == {0}
        assert await desk.spent("web:storm") == desk.paid.turns * 20_000 <= 1_000_000
        assert await pauses.stop(desk.room, "web:storm") == len(waiting)
        ended = [m for m in await desk.mail() if m.state not in (State.COMPLETED, State.CANCELLED)]
        assert ended == []


async def test_stop_ends_every_open_message_also_the_one_at_work(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="lead", reply="slow", seconds=1000, hand_off={"coder": "go"})]
    async with guarded(tmp_path, *rules, pace=1.0) as desk:
        await desk.write("@lead go", platform_id="7")
        await desk.until(lambda found: any(m.state is State.CLAIMED for m in found))
        await desk.until(lambda _: desk.paid.turns == 1)
        assert await pauses.stop(desk.room, "web:7") == 1
        desk.office.look_up()
        await desk.until(lambda found: all(m.state is State.CANCELLED for m in found))
        await desk.office.stop(grace=60)
        assert await desk.spent("web:7") == 500_000, "what was broken off is charged as it was estimated"
        name = accounts.conversation("web:7")
        closed = (await desk.room.accounts(name))[name]
        assert (closed.frozen, closed.final) == ("stopped", True), (
            "nobody is asked, so it is forgotten in time"
        )
        with pytest.raises(NotPaused):
            await pauses.raise_limit(desk.room, "web:7", usd=100)
        assert await pauses.resume(desk.room, "web:7") == 0, "only a person opens it again"
        opened = (await desk.room.accounts(name))[name]
        assert (opened.frozen, opened.final) == (None, False)
        with pytest.raises(NotPaused):
            await pauses.resume(desk.room, "web:7")


async def test_a_person_answers_in_the_chat(tmp_path: Path) -> None:
    async with guarded(tmp_path, *PING_PONG, guards={**FREE_OF_LOOPS, "messages": 3}) as desk:
        assert (await desk.write("/continue")).notice == "Nothing of yours is paused."
        await desk.write("@lead one", platform_id="11")
        await desk.held(1)
        assert (await desk.write("/continue", sender_id="bob")).notice == "Nothing of yours is paused."
        taken = await desk.write("/continue")
        assert taken.notice == "It goes on. 1 message is taken up again."
        assert taken.receipts == ()
        await desk.until(lambda found: sum(m.message_type == "office.notice" for m in found) == 2)
        await desk.held(1)
        await desk.write("@lead two", platform_id="22")
        await desk.held(2)
        which = (await desk.write("/stop")).notice
        assert which is not None
        assert which.startswith("Which one do you mean?")
        assert "web:11: @" in which
        assert "web:22: @" in which
        assert (await desk.write("/stop web:22")).notice == "Stopped. 1 message is cancelled."
        assert (await desk.write("/raise 5")).notice == "The limit is $5.00 now. 1 message is taken up again."
        assert "By how much" in ((await desk.write("/raise much")).notice or "")
        assert len((await desk.write("/stop doing that, @coder")).receipts) == 1, "that is for an agent"


async def test_everything_pauses_and_goes_on(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="lead", reply="done", seconds=0.3), ScriptRule(agent="coder", reply="done")]
    async with guarded(tmp_path, *rules, pace=1.0) as desk:
        await desk.write("@lead first")
        await desk.until(lambda _: desk.paid.turns == 1)
        assert await pauses.pause_all(desk.room)
        assert not await pauses.pause_all(desk.room)
        assert await pauses.paused(desk.room)
        taken = [await desk.write(f"@coder {n}", sender_id=f"p{n}") for n in range(5)]
        assert all(receipt.created for each in taken for receipt in each.receipts)
        found = await desk.held(5)
        assert {m.attempts for m in found} == {0}
        assert desk.paid.turns == 1, "the turn that was under way ended, and none began"
        assert [text(m) for m in await desk.replies(1)] == ["done\n\n- [lead]"]
        assert await desk.notices() == []
        assert await pauses.resume_all(desk.room) == 5
        await desk.quiet()
        assert desk.paid.turns == 6
        assert not await pauses.paused(desk.room)
        assert await pauses.resume_all(desk.room) == 0


async def test_a_failed_turn_that_used_tokens_is_paid_once_per_try(tmp_path: Path) -> None:
    """The provider reports its usage before it fails."""
    async with guarded(tmp_path) as desk:
        tries = 0

        async def run(request: TurnRequest) -> TurnStream:
            nonlocal tries
            tries += 1
            yield SessionStarted(session_id="s", provider="paid")
            yield Usage(provider="paid", model="m", input_tokens=10, cost_usd=0.03)
            if tries < 3:
                yield Failed(kind=ErrorKind.CRASHED, message="It broke.")
            else:
                yield Finished(text="at last")

        desk.paid.run = run
        await desk.write("@lead go", platform_id="1")
        await desk.quiet()
        assert tries == 3
        assert await desk.spent("web:1") == 90_000
        assert (await desk.account(messages("web:1"))).spent == 1
        office = await desk.account(OFFICE)
        assert (office.spent, office.reserved) == (90_000, 0)


async def test_a_turn_of_unknown_price_is_counted_in_tokens_at_the_price_that_stands_in(
    tmp_path: Path,
) -> None:
    budgets = {"unpriced_usd_per_mtok": 1000}
    async with guarded(tmp_path, ScriptRule(reply="x" * 396), price=None, budgets=budgets) as desk:
        await desk.write("@lead " + "y" * 396, platform_id="1")
        await desk.quiet()
        [turn] = await desk.room.records("turn")
        assert turn.data["cost_usd"] is None
        usage = turn.data["usage"][0]
        tokens = usage["input_tokens"] + usage["output_tokens"]
        assert await desk.spent("web:1") == tokens * 1000
        counted = {a.name.rpartition("/")[0]: a.spent for a in await desk.room.list_accounts("unpriced/")}
        assert counted == {"unpriced/tokens": tokens, "unpriced/turns": 1}


@pytest.mark.parametrize("kind", ["agent", "team", "office"])
async def test_a_budget_of_the_day_stops_everybody_and_each_hears_of_it_once(
    tmp_path: Path, kind: str
) -> None:
    field = {"agent": "agent_daily_usd", "team": "team_daily_usd", "office": "daily_usd"}[kind]
    budgets = {**RICH, field: 0.25, "reserve_usd": 0.1}
    clock = ManualClock()
    async with guarded(tmp_path, ScriptRule(reply="ok"), price=0.1, budgets=budgets, clock=clock) as desk:
        for n in range(6):
            await desk.write(f"@dev {n}", sender="Ann", sender_id="ann")
            await desk.until(
                lambda found: (
                    not any(
                        m.state in (State.PENDING, State.CLAIMED) for m in found if "outbox" not in m.queue
                    )
                )
            )
        await desk.write("@dev mine too", sender="Bob", sender_id="bob")
        waiting = await desk.held(5)
        assert desk.paid.turns == 2
        notices = await desk.notices()
        stopped = [m for m in notices if "used up its budget" in text(m)]
        assert sorted(m.sender_id or "" for m in stopped) == ["ann", "bob"]
        assert "$0.20 of $0.25" in text(stopped[0])
        assert {m.attempts for m in waiting} == {0}
        budgets_now = await pauses.budgets(desk.room, desk.office.guards, clock.now())
        [frozen] = [budget for budget in budgets_now if budget.frozen]
        assert f"raise {frozen.account} AMOUNT" in text(stopped[0])
        assert await pauses.raise_budget(desk.room, frozen.account, 10) == 5
        await desk.quiet()
        assert frozen.account.startswith(
            {"agent": "agent/lead/", "team": "team/dev/", "office": "day/"}[kind]
        )


async def test_a_warning_comes_once_before_the_budget_ends(tmp_path: Path) -> None:
    budgets = {**RICH, "daily_usd": 1.0, "reserve_usd": 0.1}
    async with guarded(
        tmp_path, ScriptRule(reply="ok"), price=0.45, budgets=budgets, clock=ManualClock()
    ) as desk:
        for n in range(2):
            await desk.write(f"@lead {n}")
            await desk.quiet()
        await desk.until(lambda found: any(m.message_type == "office.notice" for m in found))
        [told] = await desk.notices()
        assert text(told) == "$0.90 of the budget for today, $1.00, are spent."
