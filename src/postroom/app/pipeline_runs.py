"""Runs of the pipeline: one at a time, each a process of its own, by schedule or because somebody asked.

A run that fails is told in the log and in the status, and tried again at its next time; the server goes on.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from postroom.app.lake import StoreLake
from postroom.clock import SECOND, Clock, iso
from postroom.errors import PostroomError
from postroom.kernel.schedules.cron import Cron, house_zone
from postroom.pipeline.errors import PipelineBusy
from postroom.runtime import Room
from postroom.settings import Settings
from postroom.settings.sections import seconds_of

log = logging.getLogger("postroom.pipeline")

LOOK_S = 5.0
PATIENCE_S = 10.0
LOG = "pipeline.log"


class LastRun(msgspec.Struct, kw_only=True):
    """How the last run that this server started went. Times in microseconds."""

    started_at: int
    by: str
    pid: int
    ended_at: int | None = None
    ok: bool | None = None
    events: int | None = None
    seconds: float | None = None
    problem: str | None = None
    alerts: list[str] = []
    """Expectations of the lake that are broken, and damage that was repaired."""


class PipelineRuns:
    """What the schedule and the API share. Its methods may be called from any thread."""

    def __init__(
        self,
        lake: StoreLake,
        store: str,
        folder: Path,
        logs: Path,
        clock: Clock,
        settings: Callable[[], Settings],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._lake = lake
        self._store = store
        self._note = folder / "pipeline.json"
        self._answer = folder / "pipeline.out"
        self._log = logs / LOG
        self._clock = clock
        self._settings = settings
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = clock.now()
        self.ended = threading.Event()
        """Set whenever a run of this server has ended."""
        self.last = self._remembered()

    def start(self, by: str, *more: str) -> int:
        """Its process id. Refused while another run works on this lake, whoever started it."""
        from postroom.pipeline.jobs.launch import launch
        from postroom.pipeline.lake.lease import read_holder
        from postroom.pipeline.lake.opening import open_lake
        from postroom.pipeline.sources.server import ServerSource
        from postroom.pipeline.sources.sqlite import open_source

        settings = self._settings().pipeline
        with self._lock:
            if self._process is not None:
                since = iso(self.last.started_at) if self.last else "a moment ago"
                raise PipelineBusy(lake=str(self._lake.folder), pid=self._process.pid, since=since)
            other = read_holder(open_lake(str(self._lake.folder)))
            if other is not None:
                raise PipelineBusy(lake=str(self._lake.folder), pid=other.pid, since=other.since)
            source = open_source(self._store)
            store = source.url if isinstance(source, ServerSource) else source.path
            ages = [word for name, age in settings.keep.items() for word in ("--keep", f"{name}={age}")]
            lineage = ("--lineage", settings.lineage) if settings.lineage else ()
            words = ("--memory", str(settings.memory_mb), *ages, *lineage, *more)
            place = str(self._lake.folder)
            process = launch(
                store, place, self._log, *words, answer=self._answer, environment=self._environment
            )
            self._process = process
            self.last = LastRun(started_at=self._clock.now(), by=by, pid=process.pid)
            self._remember()
        log.info("the pipeline runs (%s, process %d)", by, process.pid)
        limit = settings.limit_minutes * 60
        threading.Thread(target=self._wait, args=(process, limit), daemon=True).start()
        return process.pid

    def _wait(self, process: "subprocess.Popen[bytes]", limit: float) -> None:
        late = False
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            late = True
            self._interrupt(process)
        told = self._told()
        with self._lock:
            last = self.last
            assert last is not None
            last.ended_at = self._clock.now()
            last.ok = process.returncode == 0 and "error" not in told
            last.events, last.seconds = told.get("events"), told.get("seconds")
            last.problem = None if last.ok else _problem(told, process.returncode, late)
            last.alerts = [*told.get("broken", ()), *told.get("repaired", ()), *told.get("notices", ())]
            self._process = None
            self._remember()
        for alert in last.alerts:
            log.warning("the lake: %s", alert)
        if last.ok:
            log.info("the pipeline took in %s events in %.1f s", last.events, last.seconds or 0)
        else:
            log.warning("the pipeline did not come through: %s More in %s", last.problem, self._log)
        self.ended.set()

    def stop(self) -> bool:
        """Interrupt the run of this server, if there is one. What was committed stays."""
        process = self._process
        if process is None:
            return False
        self._interrupt(process)
        return True

    def _interrupt(self, process: "subprocess.Popen[bytes]") -> None:
        """It ends by itself, or is ended with all that it started."""
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def due(self) -> int | None:
        """When the next run begins by itself; None when nobody wants that."""
        settings = self._settings()
        text = settings.pipeline.schedule
        if text is None:
            return None
        after = self.last.started_at if self.last is not None else self._begun
        every = seconds_of(text)
        if every is not None:
            # The first one at once: an empty lake is of no use to anybody.
            return after + every * SECOND if self.last is not None else after
        zone = settings.schedules.zone or house_zone()
        return Cron(text, zone).next(after)

    def state(self) -> dict[str, Any]:
        with self._lock:
            last = msgspec.to_builtins(self.last) if self.last is not None else None
        return {"schedule": self._settings().pipeline.schedule, "next_at": self.due(), "last": last}

    async def keep(self, room: Room) -> None:
        """Start runs when they are due, and tell the room how far the lake has come when one has ended."""
        while True:
            try:
                if self.ended.is_set():
                    self.ended.clear()
                    await self._lake.look(room)
                due = self.due()
                if due is not None and due <= self._clock.now() and self._process is None:
                    await asyncio.to_thread(self.start, "schedule")
            except PipelineBusy:
                pass  # somebody else's run; ours comes after it
            except PostroomError as error:
                self._failed(str(error))
            except Exception:
                log.exception("the schedule of the pipeline")
                self._failed("it could not be started")
            await asyncio.sleep(LOOK_S)

    def _failed(self, problem: str) -> None:
        """It did not even begin; the next time is as far away as after any other run."""
        log.warning("the pipeline was not started: %s", problem)
        now = self._clock.now()
        with self._lock:
            self.last = LastRun(started_at=now, ended_at=now, by="schedule", pid=0, ok=False, problem=problem)
            self._remember()

    def _remember(self) -> None:
        with contextlib.suppress(OSError):
            fresh = self._note.with_suffix(".new")
            fresh.write_bytes(msgspec.json.encode(self.last))
            fresh.replace(self._note)

    def _remembered(self) -> LastRun | None:
        try:
            last = msgspec.json.decode(self._note.read_bytes(), type=LastRun)
        except (OSError, msgspec.MsgspecError):
            return None
        if last.ok is None:
            last.ok, last.problem = False, "the server closed while it ran"
        return last

    def _told(self) -> dict[str, Any]:
        """The summary of the run, or the last line of its log, which says what went wrong."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = self._answer.read_text("utf-8").strip() or _last_line(self._log)
            said = json.loads(text)
            if isinstance(said, dict):
                return said
        return {}


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
        return file.read().decode("utf-8", "replace").strip().splitlines()[-1]


def _problem(told: dict[str, Any], code: int | None, late: bool) -> str:
    if late:
        return "It took longer than pipeline.limit_minutes and was stopped."
    if code == 130:
        return "It was interrupted."
    error = told.get("error")
    text = error.get("message") if isinstance(error, dict) else error
    return str(text) if text else f"It ended with code {code}."
