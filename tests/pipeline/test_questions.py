"""Questions are answered from few files, and the same way whatever else lies in the lake."""

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.jobs.conversations import find_changed
from postroom.pipeline.jobs.maintenance import compact
from postroom.pipeline.jobs.replay import ReplayReport, replayed
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import (
    AGENT_DAY,
    CHANNEL_DAY,
    FAILURE_CAUSES,
    HANDOFF_GRAPH,
    MESSAGE_LIFE,
    MESSAGES,
    QUEUE_HOUR,
    RUNS,
    TURNS,
)
from postroom.pipeline.serving import insights
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.history import Search, search
from postroom.pipeline.serving.insights import Period
from postroom.pipeline.serving.status import last_run
from postroom.pipeline.sources.sqlite import open_source
from postroom.runtime import open_sync
from tests.pipeline.tiny import put

DAY = date(2026, 11, 30)
ALL = Period(DAY - timedelta(days=400), DAY)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def ago(days: int) -> date:
    return DAY - timedelta(days=days)


def life(name: str, day: date, **more: Any) -> dict[str, Any]:
    return {"message_id": name, "day": day, "outcome": "completed", "total_us": 5, "last_seq": 1, **more}


def test_tables_without_rows_answer_and_a_quarantine_that_was_never_needed_is_one(lake: Lake) -> None:
    lake.commit(TURNS, [], Positions(1, 1))
    with engine(lake) as light:
        assert light.table("SELECT * FROM turns_clean").schema.names == TURNS.schema.names
        assert light.rows("SELECT count(*) AS n FROM quarantine") == [{"n": 0}]
        assert "quarantine" in light.tables()


def test_a_question_about_some_days_opens_no_file_of_others(lake: Lake) -> None:
    for back in (0, 3, 29, 30, 90):
        put(lake, MESSAGE_LIFE, life(f"m{back}", ago(back), failures=1))
        put(lake, QUEUE_HOUR, {"day": ago(back), "messages": 1, "completed": 1, "dead": 0, "expired": 0})
    for table, kept in ((MESSAGE_LIFE, ago(29).isoformat()), (QUEUE_HOUR, "2026-11")):
        for file in lake.files(table):
            if (file.cut or "") < kept:
                shutil.copy(__file__, file.uri)  # whoever opens it fails
    with engine(lake) as light:
        at = insights.period(light)
        assert at == Period(ago(29), DAY)
        assert insights.overview(light, at)["messages"] == 3
        assert len(insights.days(light, at)) == 3


def test_the_same_engine_answers_about_other_days_and_about_all(lake: Lake) -> None:
    for back in (0, 40):
        put(lake, MESSAGE_LIFE, life(f"m{back}", ago(back)))
    with engine(lake) as light:
        for since, until, found in ((0, 0, 1), (40, 0, 2), (39, 1, 0), (40, 40, 1), (0, 0, 1)):
            at = Period(ago(since), ago(until))
            assert insights.overview(light, at)["messages"] == found
        assert light.rows("SELECT count(*) AS n FROM message_life") == [{"n": 2}]


def test_the_example_of_a_failure_has_its_own_reason(lake: Lake) -> None:
    """The newest has none; that of an older one would be a lie. And of one day, both are of one message."""
    cause = {"scope": "office", "queue": "inbox/a", "agent": "a", "error_class": "crashed", "failures": 1}
    put(
        lake,
        FAILURE_CAUSES,
        {**cause, "tenant": "t", "day": ago(1), "example_id": "old", "example_reason": "no ink"},
        {**cause, "tenant": "t", "day": ago(0), "example_id": "new"},
        {
            **cause,
            "error_class": "slow",
            "tenant": "a",
            "day": DAY,
            "example_id": "2",
            "example_reason": None,
        },
        {**cause, "error_class": "slow", "tenant": "b", "day": DAY, "example_id": "1", "example_reason": "x"},
    )
    with engine(lake) as light:
        found = {row["error_class"]: row for row in insights.failures(light, ALL)}
    assert (found["crashed"]["example_id"], found["crashed"]["example_reason"]) == ("new", None)
    assert (found["slow"]["example_id"], found["slow"]["example_reason"]) == ("2", None)


def test_days_without_a_length_do_not_make_the_typical_one_shorter(lake: Lake) -> None:
    """Ten messages waited for 100; ten others were never taken up, so nobody knows how long they waited."""
    for back, p50 in ((1, 100.0), (0, None)):
        put(
            lake,
            AGENT_DAY,
            {
                "day": ago(back),
                "tenant": "t",
                "agent": "a",
                "messages": 10,
                "turns": 4,
                "wait_p50_us": p50,
                "turn_p50_us": p50,
            },
        )
        put(
            lake,
            QUEUE_HOUR,
            {"day": ago(back), "tenant": "t", "scope": "s", "queue": "q", "messages": 10, "wait_p50_us": p50},
        )
        put(
            lake,
            CHANNEL_DAY,
            {
                "day": ago(back),
                "tenant": "t",
                "channel": "c",
                "conversations": 10,
                "answered": 1 if p50 else 0,
                "answer_p50_us": p50,
            },
        )
        put(
            lake,
            HANDOFF_GRAPH,
            {
                "day": ago(back),
                "from_agent": "a",
                "to_agent": "b",
                "handoffs": 10,
                "latency_p50_us": p50,
            },
        )
    with engine(lake) as light:
        [agent] = insights.agents(light, ALL)
        [queue] = insights.queues(light, ALL)
        [channel] = insights.channels(light, ALL)
        [edge] = insights.handoffs(light, ALL)
    assert (agent["wait_typical_us"], agent["turn_typical_us"]) == (100, 100)
    assert queue["wait_typical_us"] == 100
    assert channel["answer_typical_us"] == 100
    assert edge["latency_typical_us"] == 100


def test_the_last_run_is_the_last_run_also_when_files_were_put_together(lake: Lake) -> None:
    for number in range(3):
        at = datetime(2026, 11, 30, number, tzinfo=UTC)
        put(
            lake,
            RUNS,
            {"run_id": f"r{number}", "step": "bronze", "started_at": at},
            {"run_id": f"r{number}", "step": "gold", "started_at": at + timedelta(minutes=1)},
        )
    for _ in range(2):
        assert [(row["run_id"], row["step"]) for row in last_run(lake)] == [("r2", "bronze"), ("r2", "gold")]
        compact(lake)


def said(number: int, **more: Any) -> dict[str, Any]:
    return {
        "seq": number,
        "id": f"{(number * 7) % 10}-m{number}",
        "tenant": "t",
        "scope": "office",
        "queue": "inbox/a",
        "state": "completed",
        "content_type": "application/json",
        "message_type": "office.mail",
        "body": f'{{"text":"word {number}"}}',
        "hop": 0,
        "correlation_id": "talk",
        "created_at": 1_794_000_000_000_000,
        "ended_seq": 10 + number,
        **more,
    }


def test_what_was_said_in_one_microsecond_is_sent_again_in_its_order(lake: Lake) -> None:
    for number in (3, 1, 4, 2):
        put(lake, MESSAGES, said(number))
    with engine(lake) as light:
        commands: list[Any] = replayed(light, ReplayReport(trace="talk"), "tester")
    assert [command.messages[0].body["text"] for command in commands] == [f"word {n}" for n in (1, 2, 3, 4)]


def test_of_what_was_said_in_one_microsecond_the_last_is_found_first(lake: Lake) -> None:
    for number in (3, 1, 4, 2):
        put(lake, MESSAGES, said(number))
    with engine(lake) as light:
        found = search(light, None, Search(words=("word",), limit=2))
    assert [row["text"] for row in found] == ["word 4", "word 3"]


def test_what_narrows_a_search_narrows_it_in_the_store_before_its_limit(tmp_path: Path) -> None:
    clock = ManualClock()
    with open_sync(f"sqlite:///{tmp_path}/room.db", clock=clock, housekeeping=False) as room:
        room.create_scope("shop")
        room.create_queue("shop/notes")
        for number, agent in enumerate(("ann", "bob", "bob", "bob")):
            text = {"text": f"word {number}"}
            room.publish("shop/notes", text, agent=agent, channel=f"to-{agent}", sender=f"for-{agent}")
            clock.advance(86_400)
        source = open_source(f"{tmp_path}/room.db")
        for wanted in (
            Search(words=("word",), limit=2, agent="ann"),
            Search(words=("word",), limit=2, channel="to-ann"),
            Search(words=("word",), limit=2, sender="for-ann"),
        ):
            assert [row["text"] for row in search(None, source, wanted)] == ["word 0"], wanted
        day = datetime.fromtimestamp(clock.now() / SECOND, UTC).date()
        found = search(None, source, Search(words=("word",), since=day - timedelta(days=2)))
        assert [row["text"] for row in found] == ["word 3", "word 2"]


def test_a_turn_without_a_conversation_touches_that_of_its_message(lake: Lake) -> None:
    day = date(2026, 11, 1)
    put(
        lake,
        TURNS,
        {"record_id": 4, "message_id": "old", "day": day},
        {"record_id": 5, "message_id": "m", "day": day},
        {"record_id": 6, "message_id": "n", "correlation_id": "talk", "day": day},
        {"record_id": 7, "day": day},
    )
    found = find_changed(lake, Positions(0, 4)).keys
    assert sorted(found.to_pylist()) == ["\x1fm", "\x1ftalk"]
