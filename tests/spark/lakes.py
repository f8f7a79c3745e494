"""Stores and lakes for tests: filled, copied, changed and compared. A filled lake is copied, not filled again."""

import shutil
from pathlib import Path
from typing import Any

import apsw

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.jobs.bronze import take_in
from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.crew import Crew
from postroom.pipeline.jobs.progress import silent
from postroom.pipeline.jobs.run import Options, Summary, run
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import ALL, EXPECTATIONS, MESSAGE_LIFE, MESSAGES, QUARANTINE, RUNS, Table
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from postroom.runtime import open_sync

END = 1_794_700_800 * 10**6
COMPARED = tuple(table for table in ALL if table not in (RUNS, QUARANTINE, EXPECTATIONS))


def fill(spark: Any, lake: Lake, source: SqliteSource, **options: Any) -> Summary:
    """By Spark, however little there is to do, unless another number of rows is said to be few."""
    return run(spark, lake, source, ManualClock(), Options(**{"few": 0, **options}))


def fill_bronze(spark: Any, lake: Lake, source: SqliteSource) -> None:
    """The first step of a run alone, for what concerns no other."""
    clock = ManualClock()
    head = source.snapshot()
    at = Context(Crew(spark, 0), lake, source, clock, silent, RunLog(lake, clock))
    take_in(at, Positions(head.head, head.records))


def rows(lake: Lake, table: Table) -> list[dict[str, Any]]:
    """All rows of a table, in the order of its key, with the part of the file names that is a column."""
    found = []
    for file in lake.files(table):
        for batch in read_batches(file.uri):
            for row in batch.to_pylist():
                if table.cut:
                    row[table.cut] = file.cut
                found.append(row)
    return sorted(found, key=lambda row: tuple(str(row[name]) for name in table.key))


def same(one: Lake, other: Lake, tables: tuple[Table, ...] = COMPARED) -> None:
    """Row for row."""
    for table in tables:
        found = rows(one, table)
        assert found, f"{table.name} is empty"
        assert found == rows(other, table), table.name


def same_later(one: Lake, other: Lake) -> None:
    """The same after several runs as after one, row for row.

    The store tells of a message only how it ended last; a lake that saw it end before has kept that too.
    """
    assert same_but_revived(one, other) == 2, "dead letters that came back to life"


def same_but_revived(one: Lake, other: Lake) -> int:
    """Row for row, but for messages that ended, were seen so by one of them, and came back to life; how many
    these are."""
    same(one, other, tuple(table for table in COMPARED if table is not MESSAGES))
    last = {row["message_id"]: row["last_seq"] for row in rows(one, MESSAGE_LIFE)}
    ended = rows(one, MESSAGES)
    assert [row for row in ended if row["ended_seq"] == last[row["id"]]] == rows(other, MESSAGES)
    return len(ended) - len(rows(other, MESSAGES))


def copied(lake: Lake, target: Path, *, without: tuple[Table, ...] = ()) -> Lake:
    """A lake of its own with the same tables, or without some of them, which the next run then makes anew."""
    shutil.copytree(str(lake.folder), target)
    for table in without:
        shutil.rmtree(target / table.name)
    return Lake(str(target))


def copy_of(month: SqliteSource, folder: Path) -> SqliteSource:
    """The month in a file of its own, to be changed."""
    folder.mkdir(exist_ok=True)
    target = folder / "copy.db"
    source = apsw.Connection(month.path, flags=apsw.SQLITE_OPEN_READONLY)
    copy = apsw.Connection(str(target))
    with copy.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    copy.close()
    return open_source(str(target))


def leave_open(store: SqliteSource) -> None:
    """On the last day: orders that died, that was called off, that somebody holds, that nobody has taken."""
    clock = ManualClock(END - 600 * SECOND)
    with open_sync(f"sqlite:///{store.path}", clock=clock, housekeeping=False, actor="before") as room:
        for number in range(6):
            room.publish("shop/orders", {"order": f"left {number}"}, type="order", correlation_id="left over")
        for message in room.claim("shop/orders", limit=3):
            clock.advance(1)
            room.fail(message, "no paper", kind="crashed", retry=False)
        [held] = room.claim("shop/orders", limit=1)
        room.cancel(held.id)
        room.claim("shop/orders", limit=1, lease=600)


def happen(store: SqliteSource) -> None:
    """New mail, hand-offs in old conversations, and ends and returns of messages from days ago."""
    clock = ManualClock(END + 3600 * SECOND)
    with open_sync(f"sqlite:///{store.path}", clock=clock, housekeeping=False, actor="later") as room:
        old = room.messages(limit=1000).messages
        for letter in [each for each in old if each.state == "dead" and not each.archived][:2]:
            room.replay(letter.id)
        root = next(each for each in old if each.correlation_id and each.hop == 0)
        room.publish(
            "office/inbox/writer",
            {"text": "one more thing about the invoice"},
            type="office.note",
            correlation_id=root.correlation_id or root.id,
            causation_id=root.id,
            agent="writer",
        )
        for number in range(20):
            room.publish("shop/orders", {"order": number}, type="order")
        clock.advance(5)
        for message in room.claim("shop/orders", limit=15):
            clock.advance(1)
            room.complete(message)
        for message in room.claim("office/inbox/writer", limit=5):
            room.fail(message, "no ink", kind="crashed")
