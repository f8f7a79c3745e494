"""Gold equals what DuckDB works out for itself, from the ledger and the records alone."""

from typing import Any

import pytest

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import GOLD, MESSAGE_LIFE
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.judge import judge_table, judging
from tests.spark.lakes import rows


@pytest.fixture(scope="module")
def judge(filled: Lake) -> Any:
    with judging(filled) as light:
        yield light


@pytest.mark.parametrize("table", GOLD, ids=lambda table: table.short)
def test_gold_is_what_another_engine_finds(table: Any, judge: Any, filled: Lake) -> None:
    judge_table(judge, filled, table)


def test_every_message_of_the_store_has_a_life_and_every_end_a_row(
    filled: Lake, month: SqliteSource, judge: Any
) -> None:
    states = judge.rows("SELECT state, count(*) AS n FROM message_life GROUP BY 1 ORDER BY 1")
    import apsw

    db = apsw.Connection(month.path, flags=apsw.SQLITE_OPEN_READONLY)
    kept = dict(
        db.execute(
            "SELECT state, count(*) FROM (SELECT state FROM messages UNION ALL SELECT state FROM archive) GROUP BY 1"
        )
    )
    db.close()
    assert {row["state"]: row["n"] for row in states} == kept
    ended = sum(count for state, count in kept.items() if state not in ("pending", "claimed", "delayed"))
    assert judge.rows("SELECT count(DISTINCT id) AS n, count(*) AS all_ FROM messages")[0] == {
        "n": ended,
        "all_": ended,
    }
    assert len(rows(filled, MESSAGE_LIFE)) == sum(kept.values())
