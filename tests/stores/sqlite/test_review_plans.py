"""Open reviews are found by an index of their own, and the archive is left alone when none can be there."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from postroom.kernel.ports import MessageFilter
from postroom.kernel.states import OPEN, TERMINAL
from postroom.stores.sqlite import SqliteStore, listing

PLACES = listing.ListedPlaces(scopes={("default", "default"): 1}, queues={})
REVIEWS = MessageFilter(scope="default", states=("pending", "claimed"), reviews=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path_factory.mktemp("plans") / "room.db")
    yield store
    store.close()


def _plan(store: SqliteStore, wanted: MessageFilter, after: int | None) -> list[str]:
    clauses = listing.clauses(wanted, PLACES)
    assert clauses is not None
    sql, bindings = listing.statement(wanted, clauses, after, 10, archived=False)
    rows: Any = store._db.execute("EXPLAIN QUERY PLAN " + sql, bindings)
    return [detail for *_, detail in rows]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("after", [None, 7])
def test_reviews_are_found_in_order_by_their_index(
    store: SqliteStore, newest_first: bool, after: int | None
) -> None:
    steps = _plan(store, msgspec.structs.replace(REVIEWS, newest_first=newest_first), after)
    assert re.match(r"(SCAN|SEARCH) c USING INDEX contents_reviews", steps[0]), steps
    assert steps[1:] == ["SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"]


def test_the_archive_holds_only_what_has_ended() -> None:
    assert listing.parts(MessageFilter(states=tuple(OPEN))) == (False,)
    assert listing.parts(MessageFilter()) == (False, True)
    for state in TERMINAL:
        assert listing.parts(MessageFilter(states=("pending", state))) == (False, True)
