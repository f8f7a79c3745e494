"""Pruning, erasing, replaying and back-testing keep what was promised."""

import asyncio
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.erasure.subject import Subject
from postroom.pipeline.errors import OtherLedger
from postroom.pipeline.generator.month import MonthPlan, generate
from postroom.pipeline.jobs.backtest import backtest, guard
from postroom.pipeline.jobs.erase import LakeEraser
from postroom.pipeline.jobs.prune import HOLD, prune
from postroom.pipeline.jobs.replay import MARK, ReplayReport, replayed
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import BRONZE, LEDGER, MESSAGE_LIFE, MESSAGES, TRACES
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.history import Search, search
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from postroom.runtime import open_sync
from tests.pipeline.tiny import put
from tests.spark.lakes import END, copied, copy_of, rows


def counts(source: SqliteSource) -> tuple[int, int]:
    db = apsw.Connection(source.path, flags=apsw.SQLITE_OPEN_READONLY)
    [(archived,)] = db.execute("SELECT count(*) FROM archive")
    [(events,)] = db.execute("SELECT count(*) FROM ledger")
    db.close()
    return archived, events


def test_nothing_is_pruned_that_the_lake_does_not_have(month: SqliteSource, tmp_path: Path) -> None:
    """The lake has come to the middle of the ledger: what was archived later stays."""
    store, lake = copy_of(month, tmp_path), Lake(str(tmp_path / "lake"))
    half = month.snapshot().head // 2
    for table in BRONZE:
        lake.commit(table, [], Positions(half, 10**9))
    archived, events = counts(store)
    done = prune(Path(store.path), lake, ManualClock(END + 10**12), keep_s=0)
    left, kept = counts(store)
    assert 0 < done.messages == archived - left
    assert left > 0
    assert 0 < done.events <= half
    assert kept >= events - half
    db = apsw.Connection(store.path, flags=apsw.SQLITE_OPEN_READONLY)
    assert list(db.execute("SELECT min(archived_seq) > ? FROM archive", (half,))) == [(1,)]
    assert list(db.execute("SELECT seq, hold FROM positions WHERE name = ?", (HOLD,))) == [(half, 1)]
    db.close()
    with open_sync(f"sqlite:///{store.path}", housekeeping=False, clock=ManualClock(END + 10**12)) as room:
        room.publish("shop/orders", {"still": "works"})


def test_nothing_is_pruned_by_the_lake_of_another_store(filled: Lake, tmp_path: Path) -> None:
    """A store that was begun anew, or restored, must not lose what an old lake seems to have."""
    other = tmp_path / "other.db"
    generate(other, MonthPlan(end=END, days=3, per_day=110, seed=8))
    store = open_source(str(other))
    assert store.snapshot().head > filled.positions(LEDGER).ledger
    before = counts(store)
    with pytest.raises(OtherLedger, match="another hash"):
        prune(other, filled, ManualClock(END + 10**12), keep_s=0)
    assert counts(store) == before


def test_what_was_pruned_is_still_found_and_the_file_is_smaller(
    month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path)
    before = Path(store.path).stat().st_size
    found = Search(words=("invoice",), limit=1000)
    with engine(filled) as light:
        ids = {row["id"] for row in search(light, store, found)}
        done = prune(Path(store.path), filled, ManualClock(END + 10**12), keep_s=0)
        assert done.pages > 0
        assert Path(store.path).stat().st_size < before
        assert {row["id"] for row in search(light, store, found)} == ids


def test_erasure_reaches_every_layer_and_every_file(filled: Lake, tmp_path: Path) -> None:
    lake = copied(filled, tmp_path / "lake")
    person = next(row["sender_id"] for row in rows(lake, MESSAGES) if row["sender_id"])
    eraser = LakeEraser(lake, ManualClock())
    ids = eraser.find(Subject(field="sender_id", value=person))
    texts = [row["body"] for row in rows(lake, MESSAGES) if row["id"] in ids]
    assert texts
    expected = asyncio.run(eraser.preview("default", ids))
    assert expected > len(ids)
    assert asyncio.run(eraser.erase("default", ids)) == expected
    assert asyncio.run(eraser.erase("default", ids)) == 0
    assert eraser.find(Subject(field="sender_id", value=person)) == []
    with engine(lake) as light:
        assert (
            light.rows("SELECT count(*) AS n FROM chunks WHERE list_contains(?, message_id)", [ids])[0]["n"]
            == 0
        )
        left = light.rows(
            "SELECT count(*) AS n, count(sender) AS named FROM messages WHERE list_contains(?, id)", [ids]
        )
        assert left == [{"n": len(ids), "named": 0}]
        assert light.rows("SELECT count(*) AS n FROM message_life WHERE list_contains(?, message_id)", [ids])[
            0
        ]["n"]
    for file in Path(str(lake.folder)).rglob("*.parquet"):
        assert person.encode() not in file.read_bytes(), file


def test_a_replay_sends_what_people_wrote_once_and_marked(
    month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path)
    talk = next(row for row in rows(filled, TRACES) if row["handoffs"] and row["channel"])
    wanted = ReplayReport(trace=talk["trace_id"], agent="writer", model="small", usd=0.5)
    with engine(filled) as light:
        commands = replayed(light, wanted, "tester")
    assert len(commands) == 1
    with open_sync(f"sqlite:///{store.path}", housekeeping=False, clock=ManualClock(END)) as room:
        for _ in range(2):
            room.run(c.Unit(commands=tuple(commands), actor="tester"))
        mail = [each for each in room.claim("office/inbox/writer", limit=100) if each.metadata.get(MARK)]
    assert [each.metadata[MARK] for each in mail] == [talk["trace_id"]]
    assert mail[0].channel == "replay"
    assert (mail[0].metadata["model"], mail[0].metadata["budget_usd"]) == ("small", 0.5)
    assert mail[0].correlation_id == f"replay:1:{talk['trace_id']}"


def test_a_rule_is_tried_on_all_of_history(spark: Any, filled: Lake) -> None:
    rule = {
        "name": "refunds",
        "conditions": [{"field": "body.text", "op": "contains", "value": "refund"}],
        "action": {"type": "route", "target_queue_id": "office/inbox/books"},
    }
    verdict = backtest(spark, filled, rule)
    refunds = [
        row
        for row in rows(filled, MESSAGES)
        if row["message_type"] != "order" and "refund" in (row["body"] or "")
    ]
    assert verdict.looked_at == len(rows(filled, MESSAGES))
    assert verdict.matched == len(refunds) > 0
    assert sum(verdict.by_queue.values()) == verdict.matched


def test_a_message_that_ended_twice_is_judged_once(spark: Any, tmp_path: Path) -> None:
    """Whether the lake saw the first end depends only on when it was filled, and must not count."""
    lake = Lake(str(tmp_path / "lake"))
    row = {"scope": "shop", "queue": "orders", "content_type": "application/json", "hop": 0, "created_at": 1}
    put(lake, MESSAGES, {**row, "id": "m", "state": "dead", "attempts": 5, "ended_seq": 5})
    put(
        lake,
        MESSAGES,
        {**row, "id": "m", "state": "completed", "attempts": 1, "ended_seq": 9},
        {**row, "id": "n", "state": "completed", "attempts": 1, "ended_seq": 7},
    )
    rule = {
        "name": "orders",
        "conditions": [{"field": "queue", "op": "eq", "value": "orders"}],
        "action": {"type": "route", "target_queue_id": "shop/other"},
    }
    verdict = backtest(spark, lake, rule)
    assert (verdict.looked_at, verdict.matched, verdict.examples) == (2, 2, ["m", "n"])
    assert verdict.by_outcome == {"completed": 2}


def test_a_guard_counts_messages_of_one_microsecond_in_their_order(spark: Any, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    day = date(2026, 11, 1)
    at = datetime(2026, 11, 1, tzinfo=UTC)
    put(lake, TRACES, {"trace_id": "t", "messages": 3, "open": 0, "failed": 0, "day": day})
    put(
        lake,
        MESSAGE_LIFE,
        *(
            {
                "message_id": name,
                "correlation_id": "t",
                "hop": hop,
                "published_at": at,
                "first_seq": seq,
                "day": day,
            }
            for seq, name, hop in ((1, "c", 0), (2, "b", 1), (3, "a", 2))
        ),
    )
    found = guard(spark, lake, hops=1, messages=2, usd=None)
    assert (found.stopped, found.messages_not_sent) == (1, 1), "the third is over both limits"


def test_a_guard_tells_what_it_would_have_stopped(spark: Any, filled: Lake) -> None:
    talks = rows(filled, TRACES)
    found = guard(spark, filled, hops=1, messages=None, usd=None)
    assert found.conversations == len(talks)
    assert found.stopped == sum(row["depth"] > 1 for row in talks)
    assert guard(spark, filled, hops=100, messages=None, usd=None).stopped == 0
    dear = guard(spark, filled, hops=None, messages=None, usd=0.05)
    assert dear.stopped == sum(float(row["cost_usd"]) > 0.05 for row in talks)


@pytest.mark.parametrize(
    "command", [["status"], ["query", "SELECT count(*) AS n FROM traces"], ["report", "--out", "r.html"]]
)
def test_the_command_line_answers_from_this_lake(
    filled: Lake,
    month: SqliteSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    command: list[str],
) -> None:
    from postroom.terminal.cli.app import run

    monkeypatch.chdir(tmp_path)
    assert run(["pipeline", *command, "--store", month.path, "--lake", filled.location, "--json"]) == 0
    assert capsys.readouterr().out.startswith(("{", "["))
