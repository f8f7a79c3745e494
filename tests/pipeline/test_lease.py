"""One process at a time changes a lake, on whatever store it lies; one that overslept can do no more harm."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from obstore.store import from_url

from postroom.clock import ManualClock, SystemClock
from postroom.pipeline.errors import LakeMoved, LakeNotReached, LeaseLost, PipelineBusy
from postroom.pipeline.jobs.erase import LakeEraser
from postroom.pipeline.jobs.maintenance import compact, vacuum
from postroom.pipeline.lake import object_lease
from postroom.pipeline.lake.files import object_store as connected
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.lease import hold_lease, read_holder
from postroom.pipeline.lake.tables import RECORDS
from tests.object_store import object_store
from tests.pipeline.test_lake import ids, written

HOLD = """
import sys, time
from postroom.clock import SystemClock
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.lease import hold_lease
with hold_lease(Lake(sys.argv[1]), SystemClock()) as lease:
    lease.report({"step": "bronze", "done": 1})
    print(lease.epoch, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    connected.cache_clear()
    with object_store() as url:
        yield url
    connected.cache_clear()


@pytest.fixture(params=["folder", "objects"])
def lake(request: pytest.FixtureRequest, bucket: str, tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake") if request.param == "folder" else f"{bucket}/{tmp_path.name}")


@pytest.fixture
def remote(bucket: str, tmp_path: Path) -> Lake:
    return Lake(f"{bucket}/{tmp_path.name}")


def until(done: object) -> None:
    end = time.monotonic() + 60
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_second_process_is_told_who_holds_the_lake(lake: Lake) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, lake.location], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        epoch = int(process.stdout.readline())
        with pytest.raises(PipelineBusy, match=f"pid {process.pid}"), hold_lease(lake, SystemClock()):
            pass
        holder = read_holder(lake)
        assert holder is not None
        assert (holder.pid, holder.epoch) == (process.pid, epoch)
        # Killed without a word: on this machine that is known, and nobody has to wait for the lease to lapse.
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert read_holder(lake) is None
        with hold_lease(lake, SystemClock()) as lease:
            assert lease.epoch == epoch + 1
    finally:
        process.kill()
        process.communicate()


def test_a_lease_that_was_given_back_is_free_at_once(lake: Lake) -> None:
    for expected in (1, 2, 3):
        with hold_lease(lake, ManualClock()) as lease:
            assert lease.epoch == expected
            assert read_holder(lake) is not None
            with pytest.raises(PipelineBusy), hold_lease(Lake(lake.location), ManualClock()):
                pass
        assert read_holder(lake) is None


def test_every_commit_carries_the_epoch_of_its_lease(lake: Lake) -> None:
    with hold_lease(lake, ManualClock()) as lease:
        lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1), base=Positions())
        lake.commit(RECORDS, [written(lake, 2)], Positions(2, 2), base=Positions(1, 1))
        assert lake.snapshot(RECORDS).epoch == lease.epoch == 1
    with hold_lease(lake, ManualClock()) as lease:
        compact(lake)
        assert lake.snapshot(RECORDS).epoch == lease.epoch == 2


def test_a_lake_that_was_moved_goes_on_counting_epochs(lake: Lake) -> None:
    """The file or object that counts them may not have come along."""
    with hold_lease(lake, ManualClock()), hold_other(lake, 41):
        lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1))
    forget_lease(lake)
    with hold_lease(lake, ManualClock()) as lease:
        assert lease.epoch == 42


class hold_other:  # noqa: N801 - a context manager
    """The lease of a lake with another number."""

    def __init__(self, lake: Lake, epoch: int) -> None:
        self._lease = lake.lease
        self._epoch = epoch

    def __enter__(self) -> None:
        assert self._lease is not None
        self._own, self._lease.epoch = self._lease.epoch, self._epoch

    def __exit__(self, *_: object) -> None:
        assert self._lease is not None
        self._lease.epoch = self._own


def forget_lease(lake: Lake) -> None:
    if lake.folder is not None:
        (Path(lake.folder) / ".run.lock").unlink()
    else:
        import obstore

        obstore.delete(from_url(lake.location), object_lease.LEASE)


def test_a_commit_from_another_position_is_refused(lake: Lake) -> None:
    """Whatever the lease says: rows that were read from a position that has moved are there already."""
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1), base=Positions())
    with pytest.raises(LakeMoved, match="it was at event 0 and is at 1"):
        lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1), base=Positions())
    with pytest.raises(LakeMoved, match="it was at record 0 and is at 1"):
        lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1), base=Positions(1, 0))
    assert ids(lake) == [1]


def test_files_that_are_gone_cannot_be_replaced(lake: Lake) -> None:
    for each in (1, 2):
        lake.commit(RECORDS, [written(lake, each)], Positions(each, each))
    seen = lake.files(RECORDS)
    compact(Lake(lake.location))
    with pytest.raises(LakeMoved, match="2 of its files were replaced"):
        lake.commit(RECORDS, [written(lake, 1, 2)], None, removed=seen)
    assert ids(lake) == [1, 2]


def test_two_that_begin_a_table_at_the_same_moment_make_it_once(lake: Lake) -> None:
    other = Lake(lake.location)
    other.open = lambda table: None
    lake.commit(RECORDS, [written(lake, 1)], Positions(1, 1), base=Positions())
    with pytest.raises(LakeMoved):
        other.commit(RECORDS, [written(lake, 1)], Positions(1, 1), base=Positions())
    assert ids(lake) == [1]


def lapse(lake: Lake) -> None:
    """As if the holder could not renew for longer than the lease lasts: another host sees only the age."""
    store = from_url(lake.location)
    found = object_lease.read_lease(store)
    assert found is not None
    old = msgspec.structs.replace(found.lease, host="another machine", lease_s=-5.0)
    object_lease.write_lease(store, old, found.tag)


def test_who_overslept_its_lease_commits_nothing_more(remote: Lake) -> None:
    """Not even when it does not know: the tables remember who came after it."""
    first, second = Lake(remote.location), Lake(remote.location)
    with hold_lease(first, ManualClock()) as lease:
        first.commit(RECORDS, [written(first, 1)], Positions(1, 1))
        half = written(first, 2)
        lapse(first)
        with hold_lease(second, ManualClock()):
            vacuum(second, keep=timedelta(0))
            second.commit(RECORDS, [written(second, 3)], None)
        with pytest.raises(LakeMoved, match="another process works on the lake now"):
            first.commit(RECORDS, [half], Positions(2, 2), base=Positions(1, 1))
        until(lambda: lost(lease))
        with pytest.raises(LeaseLost):
            first.commit(RECORDS, [half], Positions(2, 2), base=Positions(1, 1))
    assert ids(remote) == [1, 3]


def lost(lease: object) -> bool:
    lease._renew()  # type: ignore[attr-defined]
    return lease._lost  # type: ignore[attr-defined]


@pytest.mark.parametrize("upkeep", ["vacuum", "erase"])
def test_files_of_a_run_that_lost_the_lake_are_deleted_only_when_it_can_no_longer_commit_them(
    remote: Lake, upkeep: str
) -> None:
    run, other = Lake(remote.location), Lake(remote.location)
    run.commit(RECORDS, [written(run, 1)], Positions(1, 1))
    with hold_lease(run, ManualClock()):
        half = written(run, 2)
        lapse(run)
        if upkeep == "vacuum":
            with hold_lease(other, ManualClock()):
                vacuum(other, keep=timedelta(0))
        else:
            LakeEraser(other, ManualClock()).carry_out(["nobody"])
        with pytest.raises(LakeMoved):
            run.commit(RECORDS, [half], Positions(2, 2), base=Positions(1, 1))
    assert ids(remote) == [1]


def test_a_lease_is_renewed_while_its_holder_lives(remote: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_lease.LEASE_VARIABLE, "3")
    store = from_url(remote.location)
    with hold_lease(remote, SystemClock()) as lease:
        seen = {tag(store)}
        lease.report({"step": "gold", "done": 3})
        until(lambda: seen.add(tag(store)) or len(seen) > 3)
        holder = read_holder(remote)
        assert holder is not None
        assert holder.progress == {"step": "gold", "done": 3}
        lease.check()


def tag(store: object) -> object:
    found = object_lease.read_lease(store)  # type: ignore[arg-type]
    return found and found.tag


@pytest.mark.parametrize("location", ["s3://nowhere/lake", "gopher://nowhere/lake"])
def test_a_store_that_does_not_answer_is_named(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with pytest.raises(LakeNotReached, match=location), hold_lease(Lake(location), ManualClock()):
        pass
