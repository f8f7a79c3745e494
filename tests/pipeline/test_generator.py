"""A generated month is a store like any other, and the same seed makes the same one."""

from pathlib import Path

import apsw
import pytest

from postroom.errors import InvalidField
from postroom.pipeline.generator.month import MonthPlan, generate
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.verify import verify
from tests.pipeline.conftest import END


def test_its_chain_verifies_and_its_ledger_folds_to_its_messages(month: SqliteSource) -> None:
    file = ReadOnlyFile(Path(month.path))
    try:
        with file.look() as reader:
            verified = verify(reader)
    finally:
        file.close()
    assert verified.events == month.snapshot().head > 1000
    assert verified.messages


def test_it_has_what_the_plots_need(month: SqliteSource) -> None:
    db = apsw.Connection(month.path, flags=apsw.SQLITE_OPEN_READONLY)
    kinds = dict(db.execute("SELECT type, count(*) FROM ledger GROUP BY type"))
    costs = list(db.execute("SELECT sum(data ->> '$.cost_usd') FROM records WHERE kind = 'turn'"))
    notes = list(db.execute("SELECT count(*) FROM archive WHERE message_type = 'office.note'"))
    db.close()
    assert {"message.failed", "message.claimed", "message.completed", "record.turn", "archive.moved"} <= set(
        kinds
    )
    assert costs[0][0] > 0
    assert notes[0][0] > 0


def test_somebody_looks_through_the_dead_letters_of_the_days_before(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    generate(path, MonthPlan(end=END, days=3, per_day=150, seed=3))
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    kinds = dict(db.execute("SELECT type, count(*) FROM ledger GROUP BY type"))
    db.close()
    assert kinds["message.replayed"] > 0


def test_the_same_seed_makes_the_same_month_and_another_does_not(tmp_path: Path) -> None:
    heads = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        generate(tmp_path / name, MonthPlan(end=END, days=0.2, per_day=60, seed=seed))
        heads.append(open_source(str(tmp_path / name)).snapshot().head_hash)
    assert heads[0] == heads[1] != heads[2]


def test_an_existing_store_is_never_written_over(month: SqliteSource) -> None:
    with pytest.raises(InvalidField, match="exists already"):
        generate(Path(month.path), MonthPlan(end=END))
