"""Altered, removed and moved events are found while the ledger is taken in."""

from pathlib import Path

import apsw
import pytest

from postroom.kernel.ledger import GENESIS
from postroom.pipeline.bronze.chain import ChainCheck
from postroom.pipeline.bronze.packed import Packed
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from postroom.runtime import open_sync


@pytest.fixture
def store(tmp_path: Path) -> SqliteSource:
    with open_sync(
        f"sqlite:///{tmp_path}/room.db", actor='Zoë "the\u0001\u007f\t" 🚀\\', housekeeping=False
    ) as room:
        room.create_queue("jobs")
        for text in ("plain", 'quo"te', "line\nfeed", "\u2028", "\x00\x1f", "é🚀"):
            room.publish("jobs", text, correlation_id=text)
    return open_source(f"{tmp_path}/room.db")


def walk(source: SqliteSource, after: int = 0, up_to: int | None = None) -> ChainCheck:
    last = source.snapshot().head if up_to is None else up_to
    check = ChainCheck(after, source.hash_of(after))
    for batch in source.packed(after, last):
        check.add(Packed(batch))
    check.end(last)
    return check


def change(source: SqliteSource, sql: str) -> None:
    db = apsw.Connection(source.path)
    db.execute(sql)
    db.close()


def test_a_whole_ledger_has_no_breaks_whatever_characters_it_holds(store: SqliteSource) -> None:
    assert walk(store).breaks == []
    assert walk(store, after=4).breaks == []
    assert store.hash_of(0) == GENESIS


@pytest.mark.parametrize("column", ["data", "actor", "time", "type", "correlation_id", "hash"])
def test_any_altered_column_is_found(store: SqliteSource, column: str) -> None:
    value = {"time": "time + 1", "hash": "zeroblob(32)", "data": "json_set(data, '$.x', 1)"}.get(
        column, "'other'"
    )
    change(store, f"UPDATE ledger SET {column} = {value} WHERE seq = 5")
    assert 5 in [each.seq for each in walk(store).breaks]


def test_missing_events_are_found_in_the_middle_and_at_the_end(store: SqliteSource) -> None:
    last = store.snapshot().head
    change(store, f"DELETE FROM ledger WHERE seq IN (4, {last})")
    told = {each.seq: each.problem for each in walk(store, up_to=last).breaks}
    assert told == {5: "events 4 to 4 are missing", last: f"events {last} to {last} are missing"}


def test_the_quick_way_only_accuses_and_the_kernel_judges(store: SqliteSource) -> None:
    """Some texts can be written in two ways; such events must not be called broken."""

    class Otherwise(Packed):
        def chained(self, previous: bytes) -> tuple[bytes, list[int]]:
            text, ends = super().chained(previous)
            moved = [end + text[:end].count(b"[") for end in ends]
            return text.replace(b"[", b"[ "), moved

    check = ChainCheck(0, GENESIS)
    for batch in store.packed(0, store.snapshot().head):
        check.add(Otherwise(batch))
    assert check.breaks == []


def test_quotes_and_strokes_in_texts_need_no_second_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking the kernel event by event costs many times as much as the check of a whole batch."""
    with open_sync(f"sqlite:///{tmp_path}/room.db", actor="me", housekeeping=False) as room:
        room.create_queue("jobs")
        for talk in ('he said "no"', "C:\\new", '\\"'):
            room.publish("jobs", "x", correlation_id=talk)
        room.publish("jobs", "of no conversation")
    monkeypatch.setattr("postroom.pipeline.bronze.chain._fits", lambda *_: pytest.fail("asked the kernel"))
    assert walk(open_source(f"{tmp_path}/room.db")).breaks == []


def test_words_that_would_read_as_another_event_are_not_taken_for_it(tmp_path: Path) -> None:
    """Texts of two columns that, set side by side without care, look like those that were written."""
    with open_sync(f"sqlite:///{tmp_path}/room.db", actor="me", housekeeping=False) as room:
        room.create_queue("jobs")
        room.publish("jobs", "x", correlation_id='a","b', causation_id="c")
    store = open_source(f"{tmp_path}/room.db")
    assert walk(store).breaks == []
    shifted = r"""correlation_id = 'a\', causation_id = 'b","c'"""
    change(store, f"UPDATE ledger SET {shifted} WHERE correlation_id IS NOT NULL")
    assert len(walk(store).breaks) == 1


def test_events_are_opened_as_they_were_packed(store: SqliteSource) -> None:
    last = store.snapshot().head
    [plain], [packed] = list(store.ledger(0, last)), list(store.packed(0, last))
    assert Packed(packed).opened().to_pylist() == plain.to_pylist()
