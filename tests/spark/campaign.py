"""Runs that are killed and begun again, with processes of their own, beside whatever else is tested."""

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from postroom.pipeline.generator.month import MonthPlan as Month
from postroom.pipeline.generator.month import generate
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from tests.spark.fate import Driver, Fate, Plan, planned
from tests.spark.lakes import END, happen

SEED = "POSTROOM_TEST_SEED"
"""Set it to what a failure told, to kill in the same order at the same questions."""

Deaths = tuple[tuple[str, dict[str, int]], ...]
"""Where the drivers run, one after the other, and how many of each kind die there."""

HOME, CLUSTER = "local[2,3]", "local-cluster[1,1,512]"
THIRTY: Deaths = (
    (HOME, {"worker": 23, "daemon": 2, "driver": 1, "jvm": 1}),
    (CLUSTER, {"executor": 3}),
)
MANY: Deaths = (
    (HOME, {"worker": 20, "daemon": 4, "jvm": 8, "driver": 8}),
    ("local[2]", {"worker": 10, "jvm": 5, "driver": 5}),
    ("local-cluster[2,1,512]", {"executor": 8}),
)


class Campaign:
    """Begins at once. Mail comes in all the time, until every planned death was died and a run came through."""

    def __init__(
        self,
        folder: Path,
        deaths: Deaths,
        lake: str = "",
        plans: Callable[..., list[Plan]] = planned,
        store: SqliteSource | None = None,
    ) -> None:
        self.seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
        self.deaths = deaths
        if store is None:
            generate(folder / "room.db", Month(end=END, days=0.5, per_day=60, seed=5))
        self.store = store or open_source(str(folder / "room.db"))
        self.lake = Lake(lake or str(folder / "lake"))
        self._plans = plans
        self.fate = Fate(folder)
        self._driver: Driver | None = None
        self._over = False
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    @property
    def told(self) -> str:
        return f"{SEED}={self.seed}: {self.fate.kills}"

    def wait(self, limit_s: float) -> None:
        self._thread.join(limit_s)
        assert not self._thread.is_alive(), f"after {limit_s} s: {self.told}"
        if self._failed is not None:
            self._failed.add_note(self.told)
            raise self._failed

    def end(self) -> None:
        """Also when nobody has waited for it."""
        self._over = True
        driver = self._driver
        if driver is not None and driver.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.process.pid, signal.SIGKILL)
        self._thread.join(60)
        self.fate.close()

    def _go(self) -> None:
        rng = random.Random(self.seed)
        try:
            for master, victims in self.deaths:
                self.fate.plan(self._plans(rng, victims))
                self._driver = Driver(self.fate, master)
                self._suffer(self._driver, to_the_end=master == self.deaths[-1][0])
        except BaseException as error:
            self._failed = error

    def _suffer(self, driver: Driver, *, to_the_end: bool) -> None:
        """Runs until all have died who should; to the end is until a run has come through after that."""
        fate = self.fate
        deaths, most = len(fate.plans), 3 * len(fate.plans) + 20
        try:
            for _ in range(most):
                if self._over:
                    return
                through = driver.run(self.store.path, self.lake.location)
                if fate.done and (through or not to_the_end):
                    return
                if through:
                    happen(self.store)
        finally:
            driver.bury()
        raise AssertionError(
            f"{deaths} deaths and a run that comes through took over {most} runs: {driver.problem}"
        )
