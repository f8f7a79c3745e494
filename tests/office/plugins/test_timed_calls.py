"""Code of others is called with a time limit, outside our loop; whatever it does is only a failed call."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from postroom.office.plugins.timed_calls import CallFailed, TimedCaller


@pytest.fixture
def caller() -> Iterator[TimedCaller]:
    caller = TimedCaller("test")
    yield caller
    caller.close()


async def plus(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


async def test_functions_and_coroutines_give_their_results(caller: TimedCaller) -> None:
    assert await caller.call(lambda a, b: a + b, 1, 2, limit_s=60) == 3
    assert await caller.call(plus, 1, 2, limit_s=60) == 3
    assert await caller.call(lambda a: plus(a, 2), 1, limit_s=60) == 3


async def test_neither_runs_in_our_thread(caller: TimedCaller) -> None:
    async def where() -> int:
        return threading.get_ident()

    ours = threading.get_ident()
    assert await caller.call(threading.get_ident, limit_s=60) != ours
    assert await caller.call(where, limit_s=60) != ours


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), SystemExit(3), KeyboardInterrupt(), StopIteration(1), Unprintable(), RecursionError()],
)
async def test_whatever_is_raised_is_a_failed_call(caller: TimedCaller, error: BaseException) -> None:
    def plain() -> None:
        raise error

    async def coroutine() -> None:
        await asyncio.sleep(0)
        raise error

    for function in (plain, coroutine):
        with pytest.raises(CallFailed):
            await caller.call(function, limit_s=60)
    assert await caller.call(plus, 1, 2, limit_s=60) == 3


async def test_the_words_of_an_exception_are_kept_apart_from_its_place(caller: TimedCaller) -> None:
    def fail() -> None:
        raise ValueError("what the person wrote")

    with pytest.raises(CallFailed, match="what the person wrote") as caught:
        await caller.call(fail, limit_s=60)
    assert caught.value.where.startswith("ValueError in test_timed_calls.py, line ")
    assert "person" not in caught.value.where


async def test_what_hangs_is_given_up_and_stops_nobody(caller: TimedCaller) -> None:
    ended = threading.Event()

    def plain() -> None:
        ended.wait(60)

    async def patient() -> None:
        await asyncio.sleep(600)

    async def stubborn() -> None:
        time.sleep(0.5)  # noqa: ASYNC251

    for function in (plain, patient, stubborn):
        with pytest.raises(CallFailed, match=r"longer than 0\.05 s"):
            await caller.call(function, limit_s=0.05)
    ended.set()
    # Our own loop went on all the while, and so does the plugin's once it is free again.
    assert await caller.call(plus, 1, 2, limit_s=60) == 3


async def test_a_cancellation_is_not_lost_when_the_result_comes_at_the_same_moment(
    caller: TimedCaller,
) -> None:
    for _ in range(200):
        released = threading.Event()
        task = asyncio.create_task(caller.call(released.wait, limit_s=60))
        await asyncio.sleep(0.001)
        released.set()
        time.sleep(0.001)  # noqa: ASYNC251 - the result is there, and our loop has not seen it yet
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()


async def test_a_coroutine_that_is_given_up_is_cancelled(caller: TimedCaller) -> None:
    cancelled = threading.Event()

    async def waiting() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(CallFailed):
        await caller.call(waiting, limit_s=0.05)
    assert await asyncio.to_thread(cancelled.wait, 60)


async def test_many_calls_at_once_do_not_wait_for_each_other(caller: TimedCaller) -> None:
    together = threading.Barrier(8)

    def meet() -> bool:
        together.wait(60)
        return True

    assert await asyncio.gather(*(caller.call(meet, limit_s=60) for _ in range(8))) == [True] * 8


def test_a_loop_ends_although_something_hangs_in_it() -> None:
    caller = TimedCaller("stuck")

    async def ignores_the_end() -> None:
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        with pytest.raises(CallFailed):
            await caller.call(ignores_the_end, limit_s=0.05)

    asyncio.run(main())
    caller.close(patience_s=2)
    caller.close()


def test_a_hanging_call_does_not_keep_the_process_from_ending() -> None:
    import subprocess

    program = (
        "import asyncio, time\n"
        "from postroom.office.plugins.timed_calls import CallFailed, TimedCaller\n"
        "async def main():\n"
        "    try: await TimedCaller('x').call(time.sleep, 600, limit_s=0.05)\n"
        "    except CallFailed: print('given up')\n"
        "asyncio.run(main())\n"
    )
    done: Any = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "given up", done.stderr
    assert done.returncode == 0
