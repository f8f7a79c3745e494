"""Backoff: doubling from its base up to its cap, give or take a fifth."""

import random

from hypothesis import given
from hypothesis import strategies as st

from postroom.kernel.backoff import JITTER, backoff_s

seconds = st.floats(0, 7 * 24 * 3600)


@given(seconds, seconds, st.integers(-5, 10_000), st.integers())
def test_a_pause_is_within_a_fifth_of_its_nominal_length(
    base: float, cap: float, attempt: int, seed: int
) -> None:
    nominal = min(cap, base * 2.0 ** min(max(attempt, 1) - 1, 62))
    pause = backoff_s(base, cap, attempt, random.Random(seed))
    assert nominal * (1 - JITTER) <= pause <= nominal * (1 + JITTER)


@given(seconds, st.integers(1, 10_000))
def test_a_pause_never_exceeds_the_cap_by_more_than_the_jitter(cap: float, attempt: int) -> None:
    assert backoff_s(24 * 3600, cap, attempt, random.Random(1)) <= cap * (1 + JITTER)


def test_pauses_double_until_the_cap() -> None:
    class Middle(random.Random):
        def uniform(self, a: float, b: float) -> float:
            return (a + b) / 2

    pauses = [backoff_s(1, 300, attempt, Middle()) for attempt in range(1, 12)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_pauses_of_the_same_attempt_differ() -> None:
    rng = random.Random(1)
    assert len({backoff_s(10, 300, 1, rng) for _ in range(50)}) == 50


def test_the_same_seed_gives_the_same_pauses() -> None:
    first, second = random.Random(7), random.Random(7)
    assert [backoff_s(1, 9, n, first) for n in range(9)] == [backoff_s(1, 9, n, second) for n in range(9)]
