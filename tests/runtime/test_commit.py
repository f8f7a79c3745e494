"""Group commit: nobody is answered before the commit, only the guilty fail, and a close finishes the work."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from postroom.errors import PostroomError, StoreClosed, StoreFull
from postroom.kernel.commands import Claim, Command, Publish, Unit
from postroom.kernel.engine import AppliedGroup, CommandOutcome, Engine
from postroom.kernel.model import NewMessage
from postroom.kernel.ports import Store, StoreCapabilities, StoreFault
from postroom.runtime import commit as runtime_commit
from postroom.runtime.commit import CommitRequest, Committer, weight
from postroom.runtime.wakeups import Wakeups

WAIT_S = 60.0


class Do(Command, frozen=True):
    """What the fakes below shall do for this command."""

    name: str
    refuse: bool = False
    explode: bool = False
    spoil_commit: bool = False
    gate: Any = None


class Gate:
    """Holds a command up, and tells when it has come so far."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        self.opened.wait(WAIT_S)


class FakeStore:
    """Keeps what was committed."""

    capabilities = StoreCapabilities()

    def __init__(self) -> None:
        self.committed: list[list[str]] = []
        self.rollbacks = 0
        self.closed = False
        self.on_rollback: Callable[[], None] = lambda: None

    def begin(self) -> Any:
        if self.closed:
            raise StoreClosed
        return []

    def commit(self, tx: Any) -> None:
        if "spoiler" in tx:
            raise StoreFull(path="disk")
        self.committed.append(list(tx))

    def rollback(self, tx: Any) -> None:
        self.rollbacks += 1
        self.on_rollback()

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        return StoreFault.FINAL, error


class FakeEngine:
    """What is named "quiet" is nothing for the ledger."""

    def apply(self, tx: list[str], commands: Sequence[Do], answers: object = None) -> AppliedGroup:
        outcomes = []
        for command in commands:
            if command.gate is not None:
                command.gate.pass_through()
            if command.explode:
                raise ZeroDivisionError(command.name)
            if command.refuse:
                outcomes.append(CommandOutcome(error=PostroomError()))
                continue
            tx.append("spoiler" if command.spoil_commit else command.name)
            outcomes.append(CommandOutcome(value=command.name))
        return AppliedGroup(outcomes, {1: len(tx)}, any(name != "quiet" for name in tx))


class Answers:
    """Collects what is handed back, and lets a test wait for it."""

    def __init__(self) -> None:
        self.outcomes: list[CommandOutcome] = []
        self._there = threading.Event()

    def deliver(self, outcomes: list[CommandOutcome]) -> None:
        self.outcomes = outcomes
        self._there.set()

    def values(self) -> list[Any]:
        assert self._there.wait(WAIT_S), "nobody was answered"
        return [outcome.error.__class__ if outcome.error else outcome.value for outcome in self.outcomes]


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@contextmanager
def opened(store: FakeStore, hub: Wakeups | None = None) -> Iterator[Committer]:
    committer = Committer(cast(Store, store), [cast(Engine, FakeEngine())], hub or Wakeups())
    try:
        yield committer
    finally:
        committer.close()


@pytest.fixture
def committer(store: FakeStore) -> Iterator[Committer]:
    with opened(store) as committer:
        yield committer


def hand_in(committer: Committer, *commands: Do) -> Answers:
    answers = Answers()
    committer.submit(CommitRequest(commands, answers.deliver))
    return answers


@contextmanager
def busy(committer: Committer) -> Iterator[None]:
    """While the writer is held up, requests gather into one group."""
    gate = Gate()
    first = hand_in(committer, Do(name="first", gate=gate))
    assert gate.reached.wait(WAIT_S)
    yield
    gate.opened.set()
    first.values()


def test_a_command_is_done_and_its_value_returned(store: FakeStore, committer: Committer) -> None:
    assert committer.execute(Do(name="a")) == "a"
    assert store.committed == [["a"]]


def test_a_refused_command_raises_its_error(store: FakeStore, committer: Committer) -> None:
    with pytest.raises(PostroomError):
        committer.execute(Do(name="a", refuse=True))
    with pytest.raises(ZeroDivisionError):
        committer.execute(Do(name="b", explode=True))
    with pytest.raises(StoreFull):
        committer.execute(Do(name="c", spoil_commit=True))
    assert store.rollbacks == 2
    assert committer.execute(Do(name="d")) == "d", "the writer goes on"


def test_requests_that_wait_together_share_one_transaction(store: FakeStore, committer: Committer) -> None:
    with busy(committer):
        answers = [hand_in(committer, Do(name=f"{n}a"), Do(name=f"{n}b")) for n in range(3)]
    assert [answer.values() for answer in answers] == [["0a", "0b"], ["1a", "1b"], ["2a", "2b"]]
    assert store.committed == [["first"], ["0a", "0b", "1a", "1b", "2a", "2b"]]


def test_a_refused_command_of_a_group_harms_no_other(store: FakeStore, committer: Committer) -> None:
    with busy(committer):
        good = hand_in(committer, Do(name="a"))
        bad = hand_in(committer, Do(name="b", refuse=True), Do(name="c"))
    assert good.values() == ["a"]
    assert bad.values() == [PostroomError, "c"]
    assert store.committed == [["first"], ["a", "c"]]


@pytest.mark.parametrize(
    ("guilty", "error"),
    [({"explode": True}, ZeroDivisionError), ({"spoil_commit": True}, StoreFull)],
    ids=["while it is carried out", "at the commit"],
)
def test_when_a_group_fails_only_the_guilty_one_does(
    store: FakeStore, committer: Committer, guilty: dict[str, Any], error: type[Exception]
) -> None:
    with busy(committer):
        answers = [
            hand_in(committer, Do(name="a")),
            hand_in(committer, Do(name="b"), Do(name="bad", **guilty), Do(name="c")),
            hand_in(committer, Do(name="d")),
        ]
    assert [answer.values() for answer in answers] == [["a"], ["b", error, "c"], ["d"]]
    assert store.committed == [["first"], ["a"], ["b"], ["c"], ["d"]]


def test_a_command_carried_out_here_and_committed_there_is_answered_after_the_commit(
    store: FakeStore, committer: Committer
) -> None:
    answers = Answers()
    assert committer.try_half((Do(name="a"), Do(name="b", refuse=True)), answers.deliver)
    assert answers.values() == ["a", PostroomError]
    assert store.committed == [["a"]]


@pytest.mark.parametrize("guilty", [{"explode": True}, {"spoil_commit": True}], ids=lambda g: next(iter(g)))
def test_when_a_half_fails_only_the_guilty_one_does(
    store: FakeStore, committer: Committer, guilty: dict[str, Any]
) -> None:
    answers = Answers()
    committer.try_half((Do(name="a"), Do(name="bad", **guilty), Do(name="b")), answers.deliver)
    values = answers.values()
    assert (values[0], values[2]) == ("a", "b")
    assert issubclass(values[1], Exception)
    assert committer.execute(Do(name="c")) == "c"
    assert store.committed == [["a"], ["b"], ["c"]]


def test_a_rollback_that_fails_too_still_answers_everybody(store: FakeStore, committer: Committer) -> None:
    def fail() -> None:
        raise StoreFull(path="disk")

    store.on_rollback = fail
    answers = Answers()
    committer.try_half((Do(name="a", spoil_commit=True),), answers.deliver)
    assert answers.values() == [StoreFull]
    with busy(committer):
        bad = hand_in(committer, Do(name="b", spoil_commit=True))
    assert bad.values() == [StoreFull]
    assert committer.execute(Do(name="c")) == "c", "the writer goes on"
    half = Answers()
    committer.try_half((Do(name="d"),), half.deliver)
    assert half.values() == ["d"]


def test_whoever_finds_the_writer_busy_waits_or_is_told(store: FakeStore, committer: Committer) -> None:
    with busy(committer):
        assert committer.try_now((Do(name="a"),)) is None
        assert not committer.try_half((Do(name="a"),), lambda outcomes: None)
        done: list[Any] = []
        caller = threading.Thread(target=lambda: done.append(committer.execute(Do(name="b"))))
        caller.start()
    caller.join(WAIT_S)
    assert done == ["b"]
    assert [name for group in store.committed for name in group] == ["first", "b"]


def test_a_slow_disk_is_waited_for_elsewhere_until_it_is_quick_again(
    store: FakeStore, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever commits in place, an event loop mostly, does nothing else meanwhile."""
    now = 0.0
    takes_s = 0.0
    commit = store.commit

    def commit_slowly(tx: Any) -> None:
        nonlocal now
        now += takes_s
        commit(tx)

    monkeypatch.setattr(runtime_commit.time, "perf_counter", lambda: now)
    monkeypatch.setattr(store, "commit", commit_slowly)
    assert committer.try_now((Do(name="quick"), Do(name="too"))) is not None
    takes_s = 0.1
    assert committer.try_now((Do(name="slow"),)) is not None, "nobody knew yet"
    for name in "abc":
        assert committer.try_now((Do(name=name),)) is None
        elsewhere = Answers()
        assert committer.try_half((Do(name=name),), elsewhere.deliver)
        assert elsewhere.values() == [name]
    takes_s = 0.0
    tries = 0
    while committer.try_now((Do(name="again"),)) is None:
        committer.execute(Do(name="other"))
        tries += 1
        assert tries < 100, "it is never quick again"
    assert tries > 1, "one quick commit does not make a disk a quick one"


class LateLock:
    """A right to write that is free, and that the writer thread gets only when it is let: as when the system
    runs another thread first."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self.granted = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.wanted.set()
        assert self.granted.wait(WAIT_S)
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def acquire(self, *, blocking: bool = True) -> bool:
        return self._lock.acquire(blocking=blocking)

    def release(self) -> None:
        self._lock.release()


def test_nobody_overtakes_those_who_wait(store: FakeStore, committer: Committer) -> None:
    """A caller in a loop would otherwise find the right to write free each time, and the others never."""
    lock: Any = LateLock()
    committer._writing = lock
    waiting = [Answers(), Answers()]
    for name, answers in zip("ab", waiting, strict=True):
        committer.submit(CommitRequest((Do(name=name),), answers.deliver))
        assert lock.wanted.wait(WAIT_S), "the writer has the first in hand; the second waits"
    try:
        assert committer.try_now((Do(name="late"),)) is None
        assert not committer.try_half((Do(name="late"),), lambda outcomes: None)
        done: list[Any] = []
        caller = threading.Thread(target=lambda: done.append(committer.execute(Do(name="late"))))
        caller.start()
        while committer._inbox.qsize() < 2 and not done:  # until it waits with the others, or was let through
            time.sleep(0.001)
    finally:
        lock.granted.set()
    caller.join(WAIT_S)
    assert [answers.values() for answers in waiting] == [["a"], ["b"]]
    assert [name for group in store.committed for name in group] == ["a", "b", "late"]


def test_an_answer_that_cannot_be_handed_back_stops_nobody(
    store: FakeStore, committer: Committer, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(outcomes: list[CommandOutcome]) -> None:
        raise RuntimeError("the loop is gone")

    with busy(committer):
        committer.submit(CommitRequest((Do(name="a"),), gone))
        good = hand_in(committer, Do(name="b"))
    assert good.values() == ["b"]
    assert "could not be handed back" in caplog.text


def test_a_waiter_that_cannot_be_woken_does_not_undo_the_commit(store: FakeStore) -> None:
    class BrokenHub(Wakeups):
        def wake(self, woken: Mapping[int, int]) -> None:
            raise RuntimeError("gone")

    with opened(store, BrokenHub()) as committer:
        assert committer.execute(Do(name="a")) == "a"
    assert store.committed == [["a"]]


def test_waiters_are_woken_only_after_the_commit(store: FakeStore) -> None:
    seen: list[list[list[str]]] = []

    class WatchingHub(Wakeups):
        def wake(self, woken: Mapping[int, int]) -> None:
            seen.append([list(group) for group in store.committed])

    with opened(store, WatchingHub()) as committer:
        committer.execute(Do(name="a"))
        with pytest.raises(ZeroDivisionError):
            committer.execute(Do(name="b", explode=True))
    assert seen == [[["a"]]]


def test_after_the_close_everything_is_refused(store: FakeStore, committer: Committer) -> None:
    committer.close()
    committer.close()
    with pytest.raises(StoreClosed):
        committer.execute(Do(name="a"))
    with pytest.raises(StoreClosed):
        committer.submit(CommitRequest((Do(name="a"),), lambda outcomes: None))
    with pytest.raises(StoreClosed):
        committer.try_now((Do(name="a"),))
    with pytest.raises(StoreClosed):
        committer.try_half((Do(name="a"),), lambda outcomes: None)
    assert store.committed == []


def test_a_close_finishes_what_was_handed_in(store: FakeStore, committer: Committer) -> None:
    gate = Gate()
    first = hand_in(committer, Do(name="first", gate=gate))
    answers = [hand_in(committer, Do(name=f"{n}")) for n in range(20)]
    closing = threading.Thread(target=committer.close)
    closing.start()
    gate.opened.set()
    closing.join(WAIT_S)
    assert not closing.is_alive()
    assert first.values() == ["first"]
    assert [answer.values() for answer in answers] == [[f"{n}"] for n in range(20)]
    assert [name for group in store.committed for name in group] == ["first", *(f"{n}" for n in range(20))]


def test_a_close_finishes_a_half(store: FakeStore, committer: Committer) -> None:
    answers = Answers()
    committer.try_half((Do(name="a"),), answers.deliver)
    committer.close()
    assert answers.values() == ["a"]


def test_callers_that_race_with_the_close_are_answered_one_way_or_the_other(store: FakeStore) -> None:
    outcomes: list[Any] = []

    def call(committer: Committer, name: str) -> None:
        try:
            outcomes.append(committer.execute(Do(name=name)))
        except StoreClosed:
            outcomes.append(None)

    with opened(store) as committer:
        callers = [threading.Thread(target=call, args=(committer, f"{n}")) for n in range(30)]
        for number, caller in enumerate(callers):
            caller.start()
            if number == 15:
                committer.close()
        for caller in callers:
            caller.join(WAIT_S)
    assert len(outcomes) == 30
    kept = [name for group in store.committed for name in group]
    assert sorted(name for name in outcomes if name) == sorted(kept)


def test_the_weight_of_a_group_is_about_how_many_messages_it_touches() -> None:
    batch = Publish(queue="jobs", messages=[NewMessage()] * 7)
    assert weight([batch]) == 7
    assert weight([Claim(queues=("jobs",), limit=5), Do(name="a")]) == 6
    assert weight([Unit(commands=(batch, Do(name="a")))]) >= 2


def test_what_cannot_be_weighed_stops_no_group() -> None:
    broken: list[Any] = [Claim(queues=("jobs",), limit=cast(Any, "5")), Unit(commands=cast(Any, None))]
    assert weight([*broken, Do(name="a")]) == 3


def test_readers_of_the_ledger_are_woken_only_by_what_is_in_it(store: FakeStore) -> None:
    hub = Wakeups()
    woken: list[str] = []
    hub.follow(lambda: woken.append("ledger"))
    hub.follow(lambda: woken.append("commit"), commits=True)
    with opened(store, hub) as committer:
        committer.execute(Do(name="event"))
        assert sorted(woken) == ["commit", "ledger"]
        woken.clear()
        committer.execute(Do(name="quiet"))
        assert woken == ["commit"]
        woken.clear()
        committer.execute(Do(name="event"))
        assert sorted(woken) == ["commit", "ledger"]
