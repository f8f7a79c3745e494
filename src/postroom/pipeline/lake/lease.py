"""Who may change a lake: one process at a time, by a lease whose number (the epoch) rises with every holder.

Every commit carries its holder's epoch, and a table refuses a lower one than it has seen. So a process that
lost its lease while it slept can no longer commit files that somebody else may have deleted meanwhile.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from postroom.clock import Clock

if TYPE_CHECKING:
    from postroom.pipeline.lake.lake import Lake


class LeaseHolder(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Who holds a lake, since when, and what it last reported of its work."""

    pid: int
    since: str
    epoch: int
    progress: dict[str, Any] | None = None


class LakeLease(Protocol):
    epoch: int

    def check(self) -> None:
        """Raise `LeaseLost` when another process has taken the lake over."""

    def report(self, progress: dict[str, Any]) -> None:
        """Let other processes see how far the work has come. Failing to do so must not end the work."""


@contextlib.contextmanager
def hold_lease(lake: "Lake", clock: Clock) -> Iterator[LakeLease]:
    """Hold the lake while the block runs; all its commits then carry the lease. `PipelineBusy` when another
    does."""
    with _taken(lake, clock) as lease:
        before, lake.lease = lake.lease, lease
        try:
            yield lease
        finally:
            lake.lease = before


def _taken(lake: "Lake", clock: Clock) -> contextlib.AbstractContextManager[LakeLease]:
    highest: Callable[[], int] = lake.highest_epoch
    if lake.folder is not None:
        from postroom.pipeline.lake.folder_lease import hold_folder

        return hold_folder(lake.location, lake.folder, clock, highest)
    from postroom.pipeline.lake.object_lease import hold_objects

    return hold_objects(lake.location, clock, highest)


def read_holder(lake: "Lake") -> LeaseHolder | None:
    """Who works on the lake now; None when nobody does."""
    if lake.folder is not None:
        from postroom.pipeline.lake.folder_lease import read_folder_holder

        return read_folder_holder(lake.folder)
    from postroom.pipeline.lake.object_lease import read_object_holder

    return read_object_holder(lake.location)
