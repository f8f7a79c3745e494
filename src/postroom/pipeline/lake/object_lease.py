"""The lease of a lake on an object store: one small object, changed only by conditional writes.

It is renewed while its holder lives and lapses when that stops; age is told by the clock of the store alone.
A holder that is known to be dead, because it ran on this machine, is followed at once.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore, from_url

from postroom.clock import Clock, iso
from postroom.pipeline.errors import LakeNotReached, LeaseLost, PipelineBusy
from postroom.pipeline.lake.lease import LeaseHolder

log = logging.getLogger("postroom.pipeline.lease")

LEASE = ".run.lease"
PROBE = ".run.clock"
LEASE_S = 60.0
LEASE_VARIABLE = "POSTROOM_LAKE_LEASE_S"


class LeaseObject(LeaseHolder, kw_only=True):
    """What the object says. `ended` means that its holder gave it back.

    `renewals` makes every version another text: stores tell versions apart by a hash of what they hold.
    """

    host: str = ""
    born: str = ""
    ended: bool = False
    renewals: int = 0
    lease_s: float = LEASE_S


class Found(msgspec.Struct, frozen=True):
    """The object as it was read: what it says, its version for conditional writes, and when it was
    written."""

    lease: LeaseObject
    tag: str | None
    written_s: float


class ObjectLease:
    """Renews itself in a thread of its own until it is given back."""

    def __init__(self, store: ObjectStore, location: str, lease: LeaseObject, tag: str | None) -> None:
        self.epoch = lease.epoch
        self._store = store
        self._location = location
        self._lease = lease
        self._tag = tag
        self._until = time.monotonic() + lease.lease_s
        self._lost = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lake-lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        # Also when this process was stopped for so long that its thread could not notice.
        if self._lost or time.monotonic() > self._until:
            raise LeaseLost(lake=self._location, seconds=round(self._lease.lease_s))

    def report(self, progress: dict[str, Any]) -> None:
        """Told with the next renewal."""
        self._lease.progress = progress

    def _keep(self) -> None:
        while not self._end.wait(self._lease.lease_s / 4):
            if not self._renew():
                return

    def _renew(self) -> bool:
        began = time.monotonic()
        try:
            self._write()
        except PreconditionError:
            self._lost = True
            log.warning("the lake %s was taken over by another process", self._location)
            return False
        except (BaseError, OSError) as error:
            log.warning(
                "the lease of the lake %s could not be renewed, trying again: %s", self._location, error
            )
            return True
        self._until = began + self._lease.lease_s
        return True

    def _write(self) -> None:
        self._lease.renewals += 1
        self._tag = write_lease(self._store, self._lease, self._tag)

    def give_back(self) -> None:
        self._end.set()
        self._thread.join(self._lease.lease_s)
        if self._lost:
            return
        self._lease.ended, self._lease.progress = True, None
        # Else it lapses by itself.
        with contextlib.suppress(BaseError, OSError):
            self._write()


@contextlib.contextmanager
def hold_objects(location: str, clock: Clock, highest: Callable[[], int]) -> Iterator[ObjectLease]:
    store = _open(location)
    try:
        found = read_lease(store)
        if found is not None and _alive(store, found):
            raise _busy(location, found.lease)
        epoch = 1 + (found.lease.epoch if found is not None else highest())
        seconds = float(os.environ.get(LEASE_VARIABLE) or LEASE_S)
        mine = LeaseObject(
            pid=os.getpid(), since=iso(clock.now()), epoch=epoch, host=_host(), born=_born(os.getpid()),
            lease_s=seconds,
        )  # fmt: skip
        tag = write_lease(store, mine, found.tag if found is not None else None)
    except (AlreadyExistsError, PreconditionError):
        other = read_lease(store)
        raise _busy(location, other.lease if other else None) from None
    except (BaseError, OSError) as error:
        raise LakeNotReached(lake=location, reason=_line(error)) from error
    lease = ObjectLease(store, location, mine, tag)
    try:
        yield lease
    finally:
        lease.give_back()


def read_object_holder(location: str) -> LeaseHolder | None:
    try:
        store = _open(location)
        found = read_lease(store)
        return found.lease if found is not None and _alive(store, found) else None
    except (BaseError, OSError) as error:
        raise LakeNotReached(lake=location, reason=_line(error)) from error


def read_lease(store: ObjectStore) -> Found | None:
    try:
        answer = obstore.get(store, LEASE)
        text = bytes(answer.bytes())
    except FileNotFoundError:
        return None
    lease = msgspec.json.decode(text, type=LeaseObject)
    return Found(lease, answer.meta["e_tag"], answer.meta["last_modified"].timestamp())


def write_lease(store: ObjectStore, lease: LeaseObject, tag: str | None) -> str | None:
    """Only over the version that was read, or where there was none; the tag of the new version."""
    mode: Any = "create" if tag is None else {"e_tag": tag}
    return obstore.put(store, LEASE, msgspec.json.encode(lease), mode=mode)["e_tag"]


def _alive(store: ObjectStore, found: Found) -> bool:
    lease = found.lease
    if lease.ended:
        return False
    if lease.host == _host() and lease.born != _born(lease.pid):
        return False
    return _now(store) - found.written_s <= lease.lease_s


def _now(store: ObjectStore) -> float:
    """The time by the clock that also dates the lease."""
    obstore.put(store, PROBE, b"")
    return obstore.head(store, PROBE)["last_modified"].timestamp()


def _busy(location: str, lease: LeaseObject | None) -> PipelineBusy:
    pid, since = (lease.pid, lease.since) if lease else ("unknown", "a moment ago")
    return PipelineBusy(lake=location, pid=pid, since=since)


def _open(location: str) -> ObjectStore:
    try:
        # Shorter than a lease: a holder that hangs here must learn in time that it lost the lake.
        return from_url(
            location.replace("s3a://", "s3://"),
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=15)},
        )
    except (BaseError, ValueError) as error:
        raise LakeNotReached(lake=location, reason=_line(error)) from error


def _host() -> str:
    """This boot of this machine, as this container sees its processes; where that cannot be told, its
    name."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {os.getpid()}"


def _born(pid: int) -> str:
    """When a process began, so that a number that is given again is not taken for it. Empty when there is
    none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _line(error: Exception) -> str:
    return " ".join(str(error).partition("Debug source")[0].split())[:300]
