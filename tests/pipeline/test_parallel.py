"""Steps run side by side, and when one fails the others are not waited for in vain."""

import signal
import threading
from typing import Any

import pytest

from postroom.pipeline.jobs.parallel import AT_ONCE, interruptible, together


class Spark:
    """As much of a session as is needed to hear that its jobs are cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self._sc: Any = self

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        self.cancelled.set()


def test_steps_run_at_the_same_time_and_all_have_ended_after_the_block() -> None:
    meeting, met = threading.Barrier(3), []

    def step(name: str) -> None:
        meeting.wait(10)
        met.append(name)

    with together(Spark()) as begin:  # pyright: ignore[reportArgumentType]
        for name in ("a", "b", "c"):
            begin(step, name)
    assert sorted(met) == ["a", "b", "c"]


def test_when_a_step_fails_the_jobs_of_the_others_are_cancelled_and_its_error_is_told() -> None:
    spark = Spark()

    def broken() -> None:
        raise ValueError("no ink")

    def long() -> None:
        assert spark.cancelled.wait(10)
        raise RuntimeError("the job was cancelled")

    def work() -> None:
        with together(spark) as begin:  # pyright: ignore[reportArgumentType]
            begin(long)
            begin(broken)

    with pytest.raises(ValueError, match="no ink"):
        work()


def test_an_interrupt_cancels_what_runs() -> None:
    spark = Spark()

    def work() -> None:
        with together(spark) as begin:  # pyright: ignore[reportArgumentType]
            begin(spark.cancelled.wait, 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert spark.cancelled.is_set()


def test_a_step_that_begins_its_next_job_after_an_interrupt_is_cancelled_too() -> None:
    class Late(Spark):
        """Its first cancelling meets no job, as between two jobs of a step."""

        def __init__(self) -> None:
            super().__init__()
            self.asked = threading.Semaphore(0)

        def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
            self.asked.release()

    spark = Late()

    def step() -> None:
        for _ in range(3):
            assert spark.asked.acquire(timeout=30)

    def work() -> None:
        with together(spark) as begin:  # pyright: ignore[reportArgumentType]
            begin(step).add_done_callback(lambda _: None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()


def test_steps_that_had_not_begun_when_another_failed_are_not_waited_for() -> None:
    spark = Spark()

    def work() -> None:
        with together(spark) as begin:  # pyright: ignore[reportArgumentType]
            for _ in range(AT_ONCE):
                begin(spark.cancelled.wait, 60)
            begin(pytest.fail, "it was called off before its turn")
            raise ValueError("no ink")

    with pytest.raises(ValueError, match="no ink"):
        work()


def test_an_interrupt_reaches_work_in_another_thread_and_its_jobs() -> None:
    spark, told = Spark(), threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def work() -> str:
        signal.pthread_kill(main, signal.SIGINT)
        assert told.wait(30)
        assert spark.cancelled.wait(30)
        return "what nobody waits for any more"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(spark, work, told.set)  # pyright: ignore[reportArgumentType]
    finally:
        signal.signal(signal.SIGINT, before)
