"""Calling code of others: with a time limit, and never in the office's own event loop.

Plain functions run in a thread of their own, coroutines in a loop that belongs to the plugin. One that hangs
costs a thread, which ends with the process; it cannot hold up anybody else.
"""

import asyncio
import concurrent.futures
import contextlib
import inspect
import os
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

Result = concurrent.futures.Future[Any]


class CallFailed(Exception):
    """What went wrong in a call, in words; nothing of the exception itself goes further. `where` says it
    without the exception's own words, which may be those of a person, and so it can be logged."""

    def __init__(self, words: str, where: str | None = None) -> None:
        super().__init__(words)
        self.where = where or words


class TimedCaller:
    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., Any], *args: Any, limit_s: float) -> Any:
        """The function's result, or `CallFailed`. A function that takes too long goes on without us."""
        result: Result = concurrent.futures.Future()
        if inspect.iscoroutinefunction(function):
            self._begin(function, args, result)
        else:
            thread = threading.Thread(
                target=self._work, args=(function, args, result), name=f"plugin-{self._name}", daemon=True
            )
            thread.start()
        try:
            # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the result.
            async with asyncio.timeout(limit_s):
                return await asyncio.wrap_future(result)
        except TimeoutError:
            raise CallFailed(f"it took longer than {limit_s:g} s") from None

    def _work(self, function: Callable[..., Any], args: tuple[Any, ...], result: Result) -> None:
        try:
            value = function(*args)
        except BaseException as error:  # also an attempt to exit: it ends the call, not the office
            _fail(result, error)
            return
        if inspect.isawaitable(value):
            self._begin(_waiting, (value,), result)
        else:
            _succeed(result, value)

    def _begin(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...], result: Result) -> None:
        async def run() -> None:
            try:
                value = await function(*args)
            except BaseException as error:
                _fail(result, error)
            else:
                _succeed(result, value)

        loop = self._own_loop()

        def start() -> None:
            task = loop.create_task(run())

            def end(_: Result) -> None:
                with contextlib.suppress(RuntimeError):  # the loop is closed, and the task with it
                    loop.call_soon_threadsafe(task.cancel)

            result.add_done_callback(end)

        loop.call_soon_threadsafe(start)

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name=f"plugin-{self._name}-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self, patience_s: float = 1.0) -> None:
        """Ends the plugin's loop; one that does not listen is left to end with the process."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(patience_s)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        if tasks := asyncio.all_tasks(loop):
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.wait(tasks, timeout=0.5))
    finally:
        loop.close()


async def _waiting(value: Awaitable[Any]) -> Any:
    return await value


def _succeed(result: Result, value: Any) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):  # nobody waits any more
        result.set_result(value)


def _fail(result: Result, error: BaseException) -> None:
    where, words = _where(error), _words(error)
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        result.set_exception(CallFailed(f"{where}: {words}" if words else where, where))


def _where(error: BaseException) -> str:
    """The kind of the error and the line of the plugin it comes from."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{kind} in {os.path.basename(error.filename)}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename[:1] != "<"]
    return f"{kind} in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else kind


def _words(error: BaseException) -> str:
    try:
        return str(error).strip()[:500]
    except Exception:  # an exception that cannot even be printed
        return ""
