"""Who decides over the processes of `mortal`: each planned kill waits for its moment, then it is a SIGKILL."""

import contextlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark.mortal import FATE

ROOT = Path(__file__).parents[2]
MOST_QUESTIONS = 24
LONGEST_SILENCE_S = 300
MOST_STARTS = 5


@dataclass
class Plan:
    """After so many questions, and so long after the last of them, this kind of process dies."""

    victim: str
    questions: int
    delay_s: float
    own: bool = False
    """Only the questions of the driver itself count: its commits."""
    where: str = ""
    """Only questions that are asked there count."""


@dataclass
class Kill:
    victim: str
    pid: int
    where: str
    delay_s: float


class Fate:
    """Answers on a socket. `driver` and `jvm` are the processes that drive now."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "fate")
        self.plans: list[Plan] = []
        self.kills: list[Kill] = []
        self._wanted = 0
        self.driver = self.jvm = 0
        self._lock = threading.Lock()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.address)
        self._server.listen(64)
        threading.Thread(target=self._listen, daemon=True).start()

    def plan(self, plans: list[Plan]) -> None:
        with self._lock:
            self.plans += plans
            self._wanted += len(plans)

    @property
    def done(self) -> bool:
        return len(self.kills) == self._wanted

    def close(self) -> None:
        self._server.close()
        os.unlink(self.address)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._server.accept()
                threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            pid, _, where = line.recv(200).decode().strip().partition(" ")
            if pid:
                self._decide(int(pid), where)
            line.send(b"1")

    def _decide(self, pid: int, where: str) -> None:
        with self._lock:
            if not self.plans:
                return
            plan = self.plans[0]
            found = self._victim(plan, pid)
            if found is None or plan.where not in where:
                return
            plan.questions -= 1
            if plan.questions > 0:
                return
            self.plans.pop(0)
        if plan.delay_s:
            threading.Timer(plan.delay_s, self._kill, (plan, found, where)).start()
        else:
            self._kill(plan, found, where)

    def _victim(self, plan: Plan, pid: int) -> int | None:
        """None when whoever asks is not one to die by this plan."""
        if plan.victim in ("driver", "jvm"):
            if plan.own and pid != self.driver:
                return None
            return self.driver if plan.victim == "driver" else self.jvm
        if pid == self.driver:
            return None
        if plan.victim == "worker":
            return pid
        daemon = parent(pid)
        if daemon is not None and not self._mortal(daemon) and self._mortal(pid):
            # Spark uses a worker that outlived its daemon, and starts no other daemon while there are such.
            os.kill(pid, signal.SIGKILL)
            return None
        return daemon if plan.victim == "daemon" or daemon is None else parent(daemon)

    def _kill(self, plan: Plan, pid: int, where: str) -> None:
        """A victim that ended by itself in the meantime is replaced by the next of its kind."""
        with self._lock:
            if self._mortal(pid):
                os.kill(pid, signal.SIGKILL)
                self.kills.append(Kill(plan.victim, pid, where, round(plan.delay_s, 3)))
            else:
                self.plans.insert(0, Plan(plan.victim, 1, 0, where=plan.where))

    def _mortal(self, pid: int) -> bool:
        """It is of the driver's own session, and alive: nobody else's process may ever die by this."""
        if any(kill.pid == pid for kill in self.kills):
            return False
        with contextlib.suppress(OSError):
            return os.getsid(pid) == self.driver and state(pid) not in ("Z", "X")
        return False


def parent(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return int(_stat(pid)[1])
    return None


def state(pid: int) -> str:
    return _stat(pid)[0]


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def planned(rng: random.Random, victims: dict[str, int]) -> list[Plan]:
    """In any order, a JVM last; every second one dies while it waits for the answer, the others later.

    Most die soon after the one before, some only after more questions than any one task has: else the same
    task would die again and again, and nothing after it.
    """
    each = [victim for victim, count in victims.items() for _ in range(count)]
    rng.shuffle(each)
    if "jvm" in each:
        each.remove("jvm")
        each.append("jvm")
    return [
        Plan(
            victim,
            1 + min(int(rng.expovariate(1 / 4)), MOST_QUESTIONS - 1),
            rng.choice((0.0, rng.uniform(0.001, 0.25))),
            own=victim in ("driver", "jvm") and rng.random() < 0.6,
        )
        for victim in each
    ]


def planned_by_step(rng: random.Random, steps: dict[str, tuple[str, ...]]) -> list[Plan]:
    """Before and after a commit of every step, by the tables it commits, and in the middle of files.

    In the order of a run, so that the run after a kill comes to the next one by itself.
    """
    plans = [Plan("worker", 1, 0, where="in a file"), Plan("worker", 1, 0.01, where="after a file")]
    for tables in steps.values():
        table = rng.choice(tables)
        plans.append(Plan("driver", 1, 0, own=True, where=f"before the commit of {table}"))
        plans.append(Plan("driver", 1, 0, own=True, where=f"after the commit of {table}"))
    return plans


@dataclass
class Driver:
    """A driver in a process of its own, started again whenever it is gone."""

    fate: Fate
    master: str
    process: "subprocess.Popen[str] | None" = None
    problem: str = ""
    """Why the last run that failed says it did."""

    @property
    def log(self) -> Path:
        """What dying processes say; of interest only when the test fails."""
        return Path(self.fate.address).with_name("driver.log")

    def _alive(self) -> "subprocess.Popen[str]":
        for _ in range(MOST_STARTS):
            if self.process is not None:
                return self.process
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tests.spark.mortal", "drive", self.master],
                    env={**os.environ, "PYTHONPATH": str(ROOT), FATE: self.fate.address},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    cwd=ROOT,
                    start_new_session=True,
                )
            ready = self._read(self.process)
            if ready is None:
                self.bury()
            else:
                self.fate.driver, self.fate.jvm = ready["ready"], ready["jvm"]
        if self.process is None:
            raise AssertionError(f"no driver came up in {MOST_STARTS} attempts:\n{self._last_words()}")
        return self.process

    def run(self, store: str, lake: str) -> bool:
        """Whether a run came through; otherwise something was killed that it needed."""
        process = self._alive()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps([store, lake]) + "\n")
            process.stdin.flush()
        answer = self._read(process)
        if answer is None or not os.path.exists(f"/proc/{self.fate.jvm}/exe"):
            self.bury()
        self.problem = str((answer or {}).get("because", self.problem))
        return answer is not None and "events" in answer

    def _read(self, process: "subprocess.Popen[str]") -> dict[str, Any] | None:
        """Its next word, or None when it is gone."""
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], LONGEST_SILENCE_S)[0]:
            raise AssertionError(f"the driver said nothing for {LONGEST_SILENCE_S} s:\n{self._last_words()}")
        line = process.stdout.readline()
        return json.loads(line) if line else None

    def _last_words(self) -> str:
        return self.log.read_text("utf-8", "replace")[-3000:] if self.log.exists() else ""

    def bury(self) -> None:
        """The end of whatever it left behind."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            self.process.stdout.close()
        self.process = None
