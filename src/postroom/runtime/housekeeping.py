"""The rounds: a thread that runs each housekeeper when its time has come, if this process leads.

Leadership is a lease in the store, so of many processes one does it, and another takes over when that dies.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from postroom.clock import Clock
from postroom.errors import PostroomError, StoreClosed
from postroom.kernel import commands as c
from postroom.kernel.housekeeping.housekeepers import PRUNER, ROSTER, Housekeeper
from postroom.kernel.housekeeping.steps import HousekeepingStep
from postroom.runtime.clock_watch import ClockWatch
from postroom.runtime.leader import Lease

log = logging.getLogger("postroom.housekeeping")

LEADERSHIP = "housekeeping"
LEASE_S = 60.0
WAIT_S = 5.0
REPORT_S = 60.0
STEPS_AT_ONCE = 50


class HousekeepingLoop:
    def __init__(
        self,
        execute: Callable[[c.Command], Any],
        clock: Clock,
        holder: str,
        roster: tuple[Housekeeper, ...] = ROSTER,
        watch: ClockWatch | None = None,
    ) -> None:
        """With a `watch`, nothing is deleted while it says that the clock may be wrong."""
        self._execute = execute
        self._clock = clock
        self._roster = roster
        self._watch = watch
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lease = Lease(LEADERSHIP, holder, clock, LEASE_S)
        self._next: dict[str, float] = {}
        self._unreported: dict[str, tuple[int, int]] = {}
        self._report_at: dict[str, float] = {}

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="postroom-housekeeping", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._stop.wait(self.round()):
            pass
        self._give_up()

    def round(self) -> float:
        """Everything that is due now; the seconds until the next is. One's error never stops the others."""
        try:
            if not self._lead():
                return WAIT_S
        except StoreClosed:
            self._stop.set()
            return 0.0
        except Exception as error:
            log.error("housekeeping waits: %s", error)
            return 1.0
        for housekeeper in self._roster:
            now = time.monotonic()
            if now >= self._next.get(housekeeper.name, 0.0):
                self._next[housekeeper.name] = now + housekeeper.every_s
                if housekeeper.name != PRUNER or self._watch is None or self._watch.may_delete():
                    self.run_one(housekeeper.name)
            if self._stop.is_set():
                return 0.0
        return max(0.01, min(self._next.values()) - time.monotonic())

    def run_one(self, name: str) -> int:
        """Run one housekeeper to the end of its work; how many items it handled."""
        started, begun = self._clock.now(), time.monotonic()
        items, cursor, error = 0, 0, None
        try:
            for _ in range(STEPS_AT_ONCE):
                step: HousekeepingStep = self._execute(c.Housekeep(name=name, cursor=cursor, actor=name))
                items += step.items
                if step.cursor is None or self._stop.is_set():
                    break
                cursor = step.cursor
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
            log.exception("%s failed", name)
        self._report(name, started, time.monotonic() - begun, items, error)
        return items

    def _report(self, name: str, started: int, seconds: float, items: int, error: str | None) -> None:
        """Idle runs are written once a minute, so that an idle room does not keep the disk awake."""
        runs, _ = self._unreported.get(name, (0, 0))
        self._unreported[name] = (runs + 1, started)
        if not items and error is None and time.monotonic() < self._report_at.get(name, 0.0):
            return
        self._report_at[name] = time.monotonic() + REPORT_S
        try:
            self._execute(
                c.ReportRun(
                    name=name,
                    started_at=started,
                    duration_us=round(seconds * 1e6),
                    items=items,
                    runs=self._unreported.pop(name)[0],
                    error=error,
                )
            )
        except Exception as problem:
            log.error("the run of %s could not be recorded: %s", name, problem)

    def _lead(self) -> bool:
        if self._lease.is_due:
            self._lease.record(self._execute(self._lease.request()))
        return self._lease.leads

    def _give_up(self) -> None:
        if not self._lease.leads:
            return
        try:
            self._execute(self._lease.resignation())
        except PostroomError as error:
            log.warning("leadership was not given up: %s", error)
