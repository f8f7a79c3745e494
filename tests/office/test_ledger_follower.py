"""The clerk sees every event at least once, and one it cannot take does not stop it."""

import asyncio
from pathlib import Path

import pytest
from tests.acceptance.office import opened, until

import postroom
from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import StoreFailed
from postroom.kernel.ledger import Event
from postroom.office.combined_replies import ReplyCombiner
from postroom.office.ledger_follower import NAME, TRIES, LedgerFollower
from postroom.office.turns.replies import ReplyRules


class Watcher:
    def __init__(self, *, stumbles_at: str = "", away: int = 0) -> None:
        """`away`: so often the store fails at the first event."""
        self.seen: list[int] = []
        self.flushed = 0
        self._stumbles_at = stumbles_at
        self._away = away

    async def see(self, event: Event) -> None:
        if event.type == self._stumbles_at:
            raise RuntimeError("not this one")
        if self._away:
            self._away -= 1
            raise StoreFailed(path="db", reason="the server is away")
        self.seen.append(event.seq)

    async def flush(self) -> None:
        self.flushed = max(self.seen, default=0)


async def position(room: Room) -> int:
    return {found.name: found.seq for found in await room.positions()}.get(NAME, 0)


async def seen_all(room: Room) -> bool:
    return await position(room) >= (await room.head()).seq


async def test_one_event_that_a_duty_cannot_take_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.runtime.leader.PAUSE_S", 0.01)
    async with postroom.open(str(tmp_path / "room.db")) as room, opened(room, tmp_path, start=False):
        stumbling, watcher = Watcher(stumbles_at="queue.created"), Watcher()
        clerk = LedgerFollower(room, ReplyCombiner(room, ReplyRules()), [stumbling], [watcher])
        running = asyncio.create_task(clerk.run())
        await until(lambda: seen_all(room))
        clerk.stop()
        await running
        assert set(watcher.seen) == set(range(1, (await room.head()).seq + 1))


async def test_a_store_that_is_away_is_waited_for_and_no_event_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.runtime.leader.PAUSE_S", 0.01)
    async with postroom.open(str(tmp_path / "room.db")) as room, opened(room, tmp_path, start=False):
        watcher = Watcher(away=5 * TRIES)
        clerk = LedgerFollower(room, ReplyCombiner(room, ReplyRules()), [watcher])
        running = asyncio.create_task(clerk.run())
        await until(lambda: seen_all(room))
        clerk.stop()
        await running
        assert set(watcher.seen) == set(range(1, (await room.head()).seq + 1))


async def test_the_position_is_saved_after_the_work_and_found_again(tmp_path: Path) -> None:
    async with postroom.open(str(tmp_path / "room.db")) as room, opened(room, tmp_path, start=False):
        first = Watcher()
        for watcher in (first, Watcher()):
            clerk = LedgerFollower(room, ReplyCombiner(room, ReplyRules()), [], [watcher])
            running = asyncio.create_task(clerk.run())
            await until(lambda: seen_all(room))
            clerk.stop()
            await running
            assert watcher.flushed >= (await position(room) if watcher is first else 0)
            if watcher is not first:
                assert watcher.seen == [], "nothing is seen twice without a crash"


async def test_of_two_clerks_one_works_and_the_other_takes_over(tmp_path: Path) -> None:
    """The room's clock stands, so that the lead is given up and never lost."""
    store = postroom.open(str(tmp_path / "room.db"), clock=ManualClock())
    async with store as room, opened(room, tmp_path, start=False):
        watchers = [Watcher(), Watcher()]
        clerks = [
            LedgerFollower(room, ReplyCombiner(room, ReplyRules()), [], [each], lease_s=0.5)
            for each in watchers
        ]
        running = [asyncio.create_task(clerk.run()) for clerk in clerks]
        await until(lambda: seen_all(room))
        assert [bool(each.seen) for each in watchers].count(True) == 1
        working = 0 if watchers[0].seen else 1
        clerks[working].stop()
        await running[working]
        await room.create_queue("more")
        await until(lambda: seen_all(room))
        assert (await room.head()).seq in watchers[1 - working].seen
        clerks[1 - working].stop()
        await running[1 - working]


class Clumsy(Watcher):
    """Cannot write down what it has seen, as on a disk that is full."""

    def __init__(self) -> None:
        super().__init__()
        self.full = True

    async def flush(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        await super().flush()


async def test_a_keeper_that_cannot_write_holds_up_nobody_and_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.runtime.leader.PAUSE_S", 0.01)
    monkeypatch.setattr("postroom.office.ledger_follower.EVENTS_TOGETHER", 3)
    async with postroom.open(str(tmp_path / "room.db")) as room, opened(room, tmp_path, start=False):
        clumsy, watcher = Clumsy(), Watcher()
        clerk = LedgerFollower(room, ReplyCombiner(room, ReplyRules()), [watcher], [clumsy])
        running = asyncio.create_task(clerk.run())
        last = (await room.head()).seq
        await until(lambda: last in watcher.seen, within=20)
        assert await position(room) == 0, "what is not written down would be lost by a restart"
        clumsy.full = False
        await until(lambda: seen_all(room))
        clerk.stop()
        await running
        assert clumsy.flushed >= last
        assert watcher.seen[:last] == list(range(1, last + 1)), "nothing was seen again meanwhile"
