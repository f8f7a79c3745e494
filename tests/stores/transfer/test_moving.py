"""A store that moves to another database is the same store there: nothing is lost, repeated or changed."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import postroom
from postroom import SyncRoom
from postroom.errors import (
    InvalidField,
    StoreDiffers,
    StoreHalfMoved,
    StoreInUse,
    StoreMissing,
    StoreNotEmpty,
    UnknownStore,
)
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.budgets.model import Charge
from postroom.kernel.ports import Transaction
from postroom.runtime import store_move
from postroom.runtime.store_move import describe_store, move_store
from postroom.stores.sql import transfer
from tests.conformance.helpers import events, whole
from tests.conformance.promises import check_promises
from tests.conftest import mariadb_url, postgres_url

PLACES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder / 'moved.db'}",
    "postgres": postgres_url,
    "mariadb": mariadb_url,
}
MESSAGES = 44
EVERY_WAY = [(one, other) for one in PLACES for other in PLACES if one != other]


def fill(room: SyncRoom) -> None:
    """Something of everything: open, done, dead, delayed; subscribers, budgets, documents, positions."""
    room.create_queue("jobs", ordering="priority")
    room.create_queue("news", consumer_mode="broadcast")
    room.subscribe("news", "ann")
    room.publish("news", "hello")
    room.publish_many("jobs", [{"n": n, "text": "a\x00b ünï 🎉"} for n in range(40)])
    room.publish("jobs", "once", key="one")
    room.publish("jobs", "later", delay=3600, labels={"big": 2**60, "half": 0.5})
    for number, message in enumerate(room.claim("jobs", limit=10)):
        if number == 0:
            room.fail(message, "broken", retry=False)
        elif number < 8:
            room.complete(message, {"by": number})
    room.run(c.Reserve(holder="one", charges=(Charge("day", 80, 100),), seconds=60))
    room.run(service_commands.PutServiceDocument(kind="note", key="one", data={"by": "ann"}))
    room.set_position("reader", 3)


def silent(table: str, done: int, total: int) -> None:
    """Nobody looks."""


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], str]:
    """The address of a filled store of this kind."""

    def filled(name: str) -> str:
        url = PLACES[name](tmp_path)
        with postroom.open_sync(url, housekeeping=False) as room:
            fill(room)
            check_promises(room)
        return url

    return filled


@pytest.mark.parametrize(("one", "other"), EVERY_WAY)
def test_a_moved_store_is_the_same_and_goes_on(
    start: Callable[[str], str], tmp_path: Path, one: str, other: str
) -> None:
    source, target = start(one), PLACES[other](tmp_path)
    with postroom.open_sync(source, housekeeping=False) as room:
        before, told = whole(room), events(room)
    moved = {table.name: table.rows for table in move_store(source, target, silent)}
    assert moved["ledger"] == len(told)
    assert moved["messages"] == MESSAGES
    with postroom.open_sync(target, housekeeping=False) as room:
        assert events(room) == told
        assert whole(room) == before
        assert not room.publish("jobs", "once", key="one").created, "keys are known there"
        fresh = room.publish("jobs", "new")
        room.create_queue("more")
        room.run(service_commands.PutServiceDocument(kind="note", key="one", data={"by": "bob"}))
        assert fresh.id in {message.id for message in room.claim("jobs", limit=100)}
        check_promises(room)


@pytest.mark.parametrize("other", PLACES)
def test_a_move_that_was_cut_off_is_no_store_and_goes_on_where_it_was(
    start: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    source = start("postgres" if other == "sqlite" else "sqlite")
    target = PLACES[other](tmp_path)
    monkeypatch.setattr(transfer, "AT_ONCE", 10)

    def cut(table: str, done: int, total: int) -> None:
        if table == "messages" and done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move_store(source, target, cut)
    with pytest.raises(StoreHalfMoved, match="postroom store move again"):
        postroom.open_sync(target).__enter__()
    done: dict[str, int] = {}

    def note(table: str, rows: int, total: int) -> None:
        done.setdefault(table, rows)

    move_store(source, target, note)
    assert done["messages"] == 20, "it went on where it was"
    with postroom.open_sync(target, housekeeping=False) as room:
        check_promises(room)


def test_what_changed_between_two_tries_is_moved_as_it_is_now(
    start: Callable[[str], str], tmp_path: Path
) -> None:
    source, target = start("sqlite"), PLACES["postgres"](tmp_path)

    def cut(table: str, done: int, total: int) -> None:
        if table == "ledger" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move_store(source, target, cut)
    with postroom.open_sync(source, housekeeping=False) as room:
        [message] = room.claim("jobs")
        room.complete(message)
        before = whole(room)
    move_store(source, target, silent)
    with postroom.open_sync(target, housekeeping=False) as room:
        assert whole(room) == before


def test_a_store_that_holds_something_else_is_not_written_over(
    start: Callable[[str], str], tmp_path: Path
) -> None:
    source = start("sqlite")
    target = f"sqlite:///{tmp_path / 'other.db'}"
    with postroom.open_sync(target, housekeeping=False) as room:
        room.create_queue("theirs")
        before = whole(room)
    with pytest.raises(StoreNotEmpty, match="is not empty"):
        move_store(source, target, silent)
    with postroom.open_sync(target, housekeeping=False) as room:
        assert whole(room) == before


def test_half_of_one_store_does_not_become_half_of_another(
    start: Callable[[str], str], tmp_path: Path
) -> None:
    source, target = start("sqlite"), f"sqlite:///{tmp_path / 'target.db'}"

    def cut(table: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move_store(source, target, cut)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with postroom.open_sync(other, housekeeping=False):
        pass
    with pytest.raises(StoreNotEmpty):
        move_store(other, target, silent)


def test_what_arrives_otherwise_than_it_was_sent_is_named(
    start: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = start("sqlite"), f"sqlite:///{tmp_path / 'target.db'}"
    write = store_move.SqliteTables.write

    def falsify(tables: object, table: str, columns: list[str], rows: list[tuple[object, ...]]) -> None:
        if table == "documents":
            rows = [(*row[:4], "{}", *row[5:]) for row in rows]
        write(tables, table, columns, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(store_move.SqliteTables, "write", falsify)
    with pytest.raises(StoreDiffers, match="documents"):
        move_store(source, target, silent)


def test_nobody_writes_into_a_store_while_it_is_moved(start: Callable[[str], str], tmp_path: Path) -> None:
    source = start("sqlite")

    def write(table: str, done: int, total: int) -> None:
        with pytest.raises(StoreInUse):
            postroom.open_sync(source).__enter__()

    move_store(source, f"sqlite:///{tmp_path / 'target.db'}", write)


@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_a_server_is_held_still_while_its_store_is_moved(
    start: Callable[[str], str], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever begins a transaction waits until the move has ended."""
    source = start(name)
    begun, done = threading.Event(), threading.Event()
    with postroom.open_sync(source, housekeeping=False) as room:
        store = room._core.store
        begin = store.begin

        def note() -> Transaction:
            begun.set()
            return begin()

        monkeypatch.setattr(store, "begin", note)
        publisher = threading.Thread(target=lambda: (room.publish("jobs", "late"), done.set()))
        seen: list[bool] = []

        def look(table: str, rows: int, total: int) -> None:
            if not publisher.is_alive() and not done.is_set():
                publisher.start()
                begun.wait(60)
            seen.append(done.is_set())

        move_store(source, f"sqlite:///{tmp_path / 'target.db'}", look)
        publisher.join(60)
        assert not any(seen)
        assert done.is_set()


@pytest.mark.parametrize(
    ("source", "error"), [("sqlite:////nowhere/a.db", StoreMissing), ("memory://", UnknownStore)]
)
def test_an_address_without_a_store_is_named(source: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        move_store(source, f"sqlite:///{tmp_path / 'target.db'}", silent)
    assert not (tmp_path / "target.db").exists()


def test_a_store_does_not_move_to_where_it_is(start: Callable[[str], str]) -> None:
    source = start("sqlite")
    with pytest.raises(InvalidField, match="is where the store is already"):
        move_store(source, source, silent)


@pytest.mark.parametrize("name", PLACES)
def test_a_store_is_described_and_its_password_is_not(start: Callable[[str], str], name: str) -> None:
    url = start(name)
    info = describe_store(url)
    assert info.rows["messages"] == MESSAGES
    assert info.bytes > 0
    assert info.kind.lower().startswith(name)
    if name != "sqlite":
        assert any("power cut" in warning for warning in info.warnings), (
            "the tests' servers do not wait for disks"
        )


def test_a_place_without_a_store_is_not_described(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        describe_store(str(tmp_path / "none.db"))
