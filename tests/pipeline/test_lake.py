"""Files and positions of a commit belong together, and a table's parts are replaced whole."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from postroom.pipeline.errors import LakeDamaged, LakeMoved
from postroom.pipeline.jobs.maintenance import compact, vacuum
from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.lake import Lake, LakeFile, Positions
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import ALL, LEDGER, MESSAGES, RECORDS, TRACES
from postroom.pipeline.lake.upsert import Target, find_old, keys_of, parts_of, write_part
from postroom.pipeline.serving.engine import engine
from tests.pipeline.tiny import columns, rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def written(lake: Lake, *ids: int) -> WrittenFile:
    writer = FileWriter(lake.uri(RECORDS), RECORDS.schema, None, RECORDS.tracked, durable=True)
    rows = [{"id": each, "kind": "turn", "data": "{}", "created_at": each * 10} for each in ids]
    writer.write(pa.Table.from_pylist(rows, RECORDS.schema))
    return writer.close()


def ids(lake: Lake) -> list[int]:
    files = lake.files(RECORDS)
    return sorted(
        value
        for file in files
        for batch in read_batches(file.uri)
        for value in batch.column("id").to_pylist()
    )


def test_a_table_that_is_not_there_is_at_the_beginning(lake: Lake) -> None:
    assert lake.open(LEDGER) is None
    assert lake.positions(LEDGER) == Positions(0, 0)
    assert lake.files(LEDGER) == []


def test_files_and_positions_commit_together(lake: Lake) -> None:
    lake.commit(RECORDS, [written(lake, 1, 2)], Positions(7, 2))
    lake.commit(RECORDS, [written(lake, 3)], Positions(9, 3))
    assert ids(lake) == [1, 2, 3]
    assert lake.positions(RECORDS) == Positions(9, 3)
    bounds = sorted((file.low["id"], file.high["id"], file.rows) for file in lake.files(RECORDS))
    assert bounds == [(1, 2, 2), (3, 3, 1)]


def test_a_table_that_has_not_changed_is_not_opened_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1))
    found, opened = lake.snapshot(RECORDS), list[str]()
    monkeypatch.setattr(Lake, "open", lambda _, table: opened.append(table.name))
    assert lake.snapshot(RECORDS) is found
    assert (lake.positions(RECORDS), len(lake.files(RECORDS)), opened) == (Positions(1, 1), 1, [])


def test_what_another_process_commits_or_takes_away_is_seen_at_once(lake: Lake) -> None:
    """However soon after the look before, and within one tick of the clock that folders keep time by."""
    other = Lake(lake.location)
    for number in range(1, 30):
        other.commit(RECORDS, [written(other, number)], Positions(number, number))
        assert lake.positions(RECORDS) == Positions(number, number)
        assert len(lake.files(RECORDS)) == number
    before = lake.snapshot(RECORDS)
    log = Path(lake.uri(RECORDS)) / "_delta_log"
    (log / f"{28:020d}.json").unlink()
    assert lake.positions(RECORDS) == Positions(28, 28)
    assert (before.positions, len(before.files)) == (Positions(29, 29), 29), (
        "what was looked at stays as it was"
    )


def test_a_lease_on_an_object_store_trusts_only_what_nobody_else_can_have_changed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a lease every look is a look; with one, a commit looks all the same."""
    monkeypatch.setattr("postroom.pipeline.lake.lake.local_path", lambda _: None)
    other, opened, open_ = Lake(lake.location), list[str](), Lake.open

    def look(self: Lake, table: Any) -> Any:
        if self is lake:
            opened.append(table.name)
        return open_(self, table)

    monkeypatch.setattr(Lake, "open", look)
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1))
    other.commit(RECORDS, [written(other, 2)], Positions(2, 2))
    assert lake.positions(RECORDS) == Positions(2, 2)

    class Held:
        epoch = 1

        def check(self) -> None: ...
        def report(self, progress: dict[str, Any]) -> None: ...

    lake.lease = Held()
    assert lake.positions(RECORDS) == Positions(2, 2)
    opened.clear()
    assert (lake.positions(RECORDS), opened) == (Positions(2, 2), [])
    other.commit(RECORDS, [written(other, 3)], Positions(3, 3))
    with pytest.raises(LakeMoved):
        lake.commit(RECORDS, [written(lake, 4)], Positions(4, 4), base=Positions(2, 2))


def test_files_without_a_commit_are_seen_by_nobody_and_vacuumed(lake: Lake) -> None:
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1))
    orphan = Path(lake.uri(RECORDS)) / written(lake, 2).path
    assert ids(lake) == [1]
    from datetime import timedelta

    vacuum(lake, keep=timedelta(0))
    assert not orphan.exists()
    assert ids(lake) == [1]


def test_of_two_writers_the_second_is_refused(lake: Lake) -> None:
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1))
    first, stale = lake.must_open(RECORDS), lake.must_open(RECORDS)
    other = Lake(lake.location)
    other.open = lambda table: stale
    lake.commit(RECORDS, [written(lake, 2)], Positions(2, 2))
    with pytest.raises(LakeMoved):
        other.commit(RECORDS, [written(lake, 2)], Positions(2, 2))
    assert ids(lake) == [1, 2]
    assert first.version() == 0


def test_a_damaged_log_is_named(lake: Lake) -> None:
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1))
    log = Path(lake.uri(RECORDS)) / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text("utf-8")[:40])
    with pytest.raises(LakeDamaged, match="bronze/records"):
        lake.positions(RECORDS)


def test_compacting_changes_files_and_neither_rows_nor_positions(lake: Lake) -> None:
    for each in range(1, 6):
        lake.commit(RECORDS, [written(lake, each)], Positions(each, each))
    compact(lake)
    assert len(lake.files(RECORDS)) == 1
    assert ids(lake) == [1, 2, 3, 4, 5]
    assert lake.positions(RECORDS) == Positions(5, 5)
    assert lake.files(RECORDS)[0].high["id"] == 5, "what a file holds is still known without reading it"


def trace(name: str, day: date, messages: int) -> dict[str, Any]:
    return {
        "tenant": "default",
        "trace_id": name,
        "messages": messages,
        "last_seq": 1,
        "day": day,
        "critical_path": [name],
    }


def put(lake: Lake, values: list[dict[str, Any]]) -> list[WrittenFile]:
    by = ("tenant", "trace_id")
    old: dict[str | None, list[LakeFile]] = {}
    for file in lake.files(TRACES):
        old.setdefault(file.cut, []).append(file)
    target = Target(table=TRACES.name, uri=lake.uri(TRACES), old=old)
    files, removed = list[WrittenFile](), list[LakeFile]()
    for day, part in parts_of(columns(TRACES, values), "day"):
        found = find_old(target, day, by, keys_of(part, by))
        files += write_part(target, day, [part, *found.others])
        removed += found.files
    lake.commit(TRACES, files, Positions(1, 1), removed=removed)
    return files


def kept(lake: Lake) -> dict[str, int]:
    return {
        row["trace_id"]: row["messages"]
        for file in lake.files(TRACES)
        for batch in read_batches(file.uri)
        for row in batch.to_pylist()
    }


def test_only_files_with_rows_that_are_replaced_are_written_anew(lake: Lake) -> None:
    one, two = date(2026, 11, 1), date(2026, 11, 2)
    put(lake, [trace("a", one, 1), trace("b", one, 1), trace("c", two, 1)])
    put(lake, [trace("e", one, 1)])
    before = {file.path for file in lake.files(TRACES)}
    files = put(lake, [trace("b", one, 5), trace("d", one, 1)])
    assert [file.cut for file in files] == ["2026-11-01"]
    after = {file.path for file in lake.files(TRACES)}
    assert len(before & after) == 2, "the other day, and the file of this day that has none of them"
    assert kept(lake) == {"a": 1, "b": 5, "c": 1, "d": 1, "e": 1}


def test_rows_of_another_tenant_with_the_same_id_stay(lake: Lake) -> None:
    day = date(2026, 11, 1)
    put(lake, [trace("a", day, 1), trace("a", day, 2) | {"tenant": "acme"}])
    put(lake, [trace("a", day, 7)])
    found = sorted(row["messages"] for row in rows(lake, TRACES))
    assert found == [2, 7]


def test_every_table_says_what_it_is() -> None:
    assert len({table.name for table in ALL}) == len(ALL)
    for table in ALL:
        assert set(table.key) <= set(table.schema.names), table.name
        assert set(table.tracked) <= set(table.schema.names), table.name
        assert table.cut is None or table.cut in table.schema.names, table.name


def test_notes_of_a_commit_can_be_read_in_the_log(lake: Lake) -> None:
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1), about={"run": "r1"})
    lines = (Path(lake.uri(RECORDS)) / "_delta_log" / f"{0:020d}.json").read_text("utf-8").splitlines()
    assert any(json.loads(line).get("commitInfo", {}).get("run") == "r1" for line in lines)


def test_a_column_that_was_declared_since_is_added_and_old_rows_stay(lake: Lake) -> None:
    import msgspec

    fewer = pa.schema([field for field in RECORDS.schema if field.name != "redacted"])
    before = msgspec.structs.replace(RECORDS, schema=fewer)
    writer = FileWriter(lake.uri(before), fewer, None, before.tracked)
    writer.write(pa.Table.from_pylist([{"id": 1, "kind": "turn"}], fewer))
    lake.commit(before, [writer.close()], Positions(1, 1))
    lake.commit(RECORDS, [written(lake, 2)], Positions(2, 2))
    names = [field.name for field in lake.must_open(RECORDS).schema().fields]
    assert set(names) == set(RECORDS.schema.names)
    assert ids(lake) == [1, 2]
    assert lake.positions(RECORDS) == Positions(2, 2)


def test_old_files_answer_for_a_column_that_was_declared_since(lake: Lake) -> None:
    """Also before anything is written again: then no file has the column."""
    import msgspec

    fewer = pa.schema([field for field in RECORDS.schema if field.name != "redacted"])
    before = msgspec.structs.replace(RECORDS, schema=fewer)
    writer = FileWriter(lake.uri(before), fewer, None, before.tracked)
    writer.write(pa.Table.from_pylist([{"id": 1, "kind": "turn"}], fewer))
    lake.commit(before, [writer.close()], Positions(1, 1))
    with engine(lake) as light:
        assert light.rows("SELECT id, redacted FROM records") == [{"id": 1, "redacted": None}]
    lake.commit(RECORDS, [written(lake, 2)], Positions(2, 2))
    with engine(lake) as light:
        assert light.rows("SELECT id, redacted FROM records ORDER BY id") == [
            {"id": 1, "redacted": None},
            {"id": 2, "redacted": None},
        ]


def test_sorting_puts_a_conversation_together_and_changes_no_row(lake: Lake) -> None:
    for number in range(4):
        writer = FileWriter(lake.uri(MESSAGES), MESSAGES.schema, None, MESSAGES.tracked)
        rows = [
            {"seq": n, "id": str(n), "ended_seq": n, "created_at": n, "correlation_id": f"talk {n % 3}"}
            for n in range(number * 6, number * 6 + 6)
        ]
        full = [{name: row.get(name) for name in MESSAGES.schema.names} for row in rows]
        writer.write(pa.Table.from_pylist(full, MESSAGES.schema))
        lake.commit(MESSAGES, [writer.close()], Positions(number + 1, 0))
    done = compact(lake, sort=True)
    assert (done[MESSAGES.name]["files_removed"], done[MESSAGES.name]["files_added"]) == (4, 1)
    [file] = lake.files(MESSAGES)
    talks = [talk for batch in read_batches(file.uri) for talk in batch.column("correlation_id").to_pylist()]
    assert talks == sorted(talks)
    assert len(talks) == 24
    assert (file.low["ended_seq"], file.high["ended_seq"]) == (0, 23)
    assert lake.positions(MESSAGES) == Positions(4, 0)


def test_parts_with_old_files_take_a_column_that_was_declared_since(lake: Lake) -> None:
    import msgspec

    fewer = pa.schema([field for field in TRACES.schema if field.name != "tokens"])
    before = msgspec.structs.replace(TRACES, schema=fewer)
    writer = FileWriter(lake.uri(before), fewer, ("day", "2026-11-01"), before.tracked)
    old = [dict.fromkeys(fewer.names) | {"tenant": "default", "trace_id": each} for each in ("a", "b")]
    writer.write(pa.Table.from_pylist(old, fewer))
    lake.commit(before, [writer.close()], Positions(1, 1))
    put(lake, [trace("b", date(2026, 11, 1), 5)])
    [file] = lake.files(TRACES)
    found = [row for batch in read_batches(file.uri) for row in batch.to_pylist()]
    assert {row["trace_id"]: row["tokens"] for row in found} == {"a": None, "b": None}
