"""Runs `postroom` with a recorder inside: which functions of the package are entered, what the store is
asked.

A harness says `begin` and `end` over a socket. Nothing but the command line of the package is used, so
that any commit can be recorded: PYTHONPATH chooses which.
"""

import asyncio
import json
import runpy
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import CodeType, FrameType
from typing import Any

import apsw

_SUBMIT = ThreadPoolExecutor.submit
INLINED = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Recorder:
    def __init__(self, package: str) -> None:
        self._package = package
        self._codes: dict[CodeType, None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before: set[Any] = set()
        self._thread = threading.local()
        self._statements: list[str] = []
        self._commits = 0

    def watch(self) -> None:
        sys.setprofile(self._entered)
        threading.setprofile(self._entered)
        apsw.connection_hooks.append(self._opened)

        def submit(pool: ThreadPoolExecutor, *args: Any, **named: Any) -> Any:
            return self._submit(pool, *args, **named)

        ThreadPoolExecutor.submit = submit

    def _entered(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        if self._loop is None:
            self._loop = asyncio._get_running_loop()
        if self._codes is not None and self._counts():
            self._codes[frame.f_code] = None

    def _counts(self) -> bool:
        """What ran before in the background is woken by a message, but its answer does not wait for it:
        neither for its tasks, nor for what these have done in other threads."""
        if not self._before:
            return True
        if asyncio._get_running_loop() is None:
            return getattr(self._thread, "counts", True)
        return asyncio.current_task() not in self._before

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        counts = self._counts()

        def noted() -> Any:
            self._thread.counts = counts
            return work(*args, **named)

        return _SUBMIT(pool, noted)

    def _opened(self, connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._asked, id=self)
        connection.set_commit_hook(self._committed, id=self)

    def _asked(self, event: dict[str, Any]) -> None:
        if self._codes is not None and not event["trigger"] and self._counts():
            self._statements.append(event["sql"])

    def _committed(self) -> bool:
        if self._codes is not None and self._counts():
            self._commits += 1
        return False

    def begin(self, *, answer: bool) -> None:
        """With `answer`, only what the answer to a request waits for."""
        self._before = asyncio.all_tasks(self._loop) if answer and self._loop else set()
        self._statements, self._commits = [], 0
        self._codes = {}

    def end(self) -> dict[str, Any]:
        codes, self._codes = self._codes or {}, None
        own = [
            (code.co_filename.removeprefix(self._package), code.co_qualname)
            for code in codes
            if code.co_filename.startswith(self._package) and code.co_name not in INLINED
        ]
        return {
            "functions": [f"{file}:{name}" for file, name in dict.fromkeys(own)],
            "files": list(dict.fromkeys(file for file, _ in own)),
            "statements": self._statements,
            "commits": self._commits,
        }


def _obey(recorder: Recorder, port: int) -> None:
    sys.setprofile(None)
    with socket.create_connection(("127.0.0.1", port)) as harness, harness.makefile("rw") as lines:
        for line in lines:
            found: dict[str, Any] = {}
            if line == "end\n":
                found = recorder.end()
            else:
                recorder.begin(answer=line == "begin answer\n")
            lines.write(json.dumps(found) + "\n")
            lines.flush()


def main() -> None:
    port, package = int(sys.argv[1]), sys.argv[2]
    recorder = Recorder(package)
    threading.Thread(target=_obey, args=(recorder, port), daemon=True).start()
    recorder.watch()
    sys.argv = ["postroom", *sys.argv[3:]]
    runpy.run_module("postroom", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
