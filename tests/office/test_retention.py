"""Every kind of record that the office and its doors write has a rule; none takes what is still needed."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.clock import ManualClock
from postroom.kernel.housekeeping.housekeepers import ARCHIVER, PRUNER
from postroom.office.guards import holds
from postroom.office.retention import record_rules, retention
from postroom.office.sessions import ProviderSession, Sessions
from postroom.settings.model import parse
from postroom.settings.sections import RetentionSettings as Wanted

SOURCE = Path(postroom.__file__).parent
DAY_S = 24 * 3600
# Written by people who generate a month of mail to try the pipeline with.
NOT_OURS = ("pipeline",)


def _kinds() -> Iterator[tuple[str, str]]:
    """Kinds of all records and documents with a history that the source writes, as far as it can be read."""
    for file in SOURCE.rglob("*.py"):
        where = file.relative_to(SOURCE)
        if where.parts[0] in NOT_OURS:
            continue
        for call in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            given = {word.arg: word.value for word in call.keywords}
            history = given.get("history")
            if isinstance(history, ast.Constant) and history.value is False:
                continue
            if call.func.attr in ("AddRecord", "PutDocument") and "kind" in given:
                kind = given["kind"]
                if isinstance(kind, ast.Constant):
                    yield str(kind.value), str(where)
                elif isinstance(kind, ast.Name) and kind.id.isupper():
                    module = importlib.import_module("postroom." + ".".join(where.with_suffix("").parts))
                    yield getattr(module, kind.id), str(where)


def test_every_kind_of_record_has_a_rule() -> None:
    ruled = {rule.kind for rule in record_rules(Wanted())}
    written = dict(_kinds())
    assert len(written) > 12, "the source could not be read"
    missing = {kind: where for kind, where in written.items() if kind not in ruled}
    assert not missing


def test_every_rule_has_a_bound_unless_somebody_lifts_it() -> None:
    assert all(rule.keep_s is not None for rule in record_rules(Wanted()))
    kept = retention(Wanted(records_days=None, messages_days=None, ledger_days=None), lake=True)
    assert (kept.archive_s, kept.ledger_s, kept.rule_of("turn").keep_s) == (None, None, None)


def test_without_a_lake_history_goes_only_where_somebody_said_so() -> None:
    kept = retention(Wanted(), lake=False)
    assert (kept.archive_s, kept.ledger_s, kept.records_s, kept.rule_of("turn").keep_s) == (None,) * 4
    assert retention(Wanted(), lake=True).archive_s == 365 * DAY_S
    asked = retention(parse({"retention": {"messages_days": 10}}).retention, lake=False)
    assert (asked.archive_s, asked.ledger_s) == (10 * DAY_S, None)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_a_session_is_taken_up_again_after_its_earlier_states_are_gone(clock: ManualClock) -> None:
    async with postroom.open(
        "memory://", clock=clock, housekeeping=False, retention=retention(Wanted(), lake=True)
    ) as room:
        sessions = Sessions(room, {})
        for number in range(3):
            _, remember = sessions.renewed(ProviderSession(key="coder"), f"part {number}", lost=False)
            await room.run(remember)
            clock.advance(3600)
        await room.run(sessions.reset("writer"))
        clock.advance(30 * DAY_S)
        await room.housekeep(PRUNER)
        assert [record.data["carried"] for record in await room.records("session")] == ["part 2"]
        assert await room.records("session.reset"), "a session that it ended must not be taken up again"


async def test_why_a_conversation_is_paused_stays_known(clock: ManualClock) -> None:
    async with postroom.open(
        "memory://", clock=clock, housekeeping=False, retention=retention(Wanted(), lake=True)
    ) as room:
        from postroom.kernel import commands as c
        from postroom.office.guards import pauses
        from postroom.office.guards.budgets import conversation

        for talk in ("paused", "stopped"):
            await room.run(c.Freeze(account=conversation(talk), reason="hops"))
            data = {"event": "tripped", "talk": talk, "channel": "web", "person": "ann"}
            await room.run(c.AddRecord(kind=holds.KIND, key=conversation(talk), data=data))
        await pauses.stop(room, "stopped")
        clock.advance(1000 * DAY_S)
        for _ in range(3):
            await room.housekeep(ARCHIVER)
            await room.housekeep(PRUNER)
        [left] = await pauses.paused_conversations(room)
        assert (left.conversation, left.person) == ("paused", "ann")
        accounts = await room.list_accounts()
        assert [account.name for account in accounts] == [conversation("paused")]
