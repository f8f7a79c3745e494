"""How long a failed message waits before its next attempt."""

import random

JITTER = 0.2


def backoff_s(base_s: float, cap_s: float, attempt: int, rng: random.Random) -> float:
    """`min(cap, base * 2^(attempt-1))`, give or take a fifth, so that failures do not come back together."""
    exponent = min(max(attempt, 1) - 1, 62)
    return min(cap_s, base_s * 2.0**exponent) * rng.uniform(1 - JITTER, 1 + JITTER)
