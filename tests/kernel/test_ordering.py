"""The sort key: lowest first, so that the order of keys is the order of claiming."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.kernel.model import Ordering, Tier
from postroom.kernel.ordering import LAST, TIER_RANK, sort_key

moments = st.integers(1, 2**56)
scores = st.integers(0, 1000)
tiers = st.sampled_from([tier.value for tier in Tier])


def key(
    ordering: Ordering, at: int = 5, tier: str = "normal", score: int = 500, deadline: int | None = None
) -> int:
    return sort_key(ordering, entered_at=at, tier=tier, score=score, deadline=deadline)


@pytest.mark.parametrize(
    ("tier", "score", "wanted"),
    [("high", 250, -3250), ("critical", 0, -4000), ("normal", 1000, -3000), ("background", 0, 0)],
)
def test_the_worked_values_of_the_reference(tier: str, score: int, wanted: int) -> None:
    assert key(Ordering.PRIORITY, tier=tier, score=score) == wanted


def test_every_tier_has_a_rank_and_they_are_in_order() -> None:
    assert set(TIER_RANK) == {tier.value for tier in Tier}
    assert sorted(TIER_RANK, key=TIER_RANK.__getitem__, reverse=True) == [
        "critical",
        "high",
        "normal",
        "low",
        "background",
    ]


@given(moments, moments, tiers, scores)
def test_fifo_looks_only_at_the_time_of_entry(one: int, other: int, tier: str, score: int) -> None:
    first = key(Ordering.FIFO, at=one, tier=tier, score=score, deadline=other)
    assert (first < key(Ordering.FIFO, at=other)) is (one < other)


@given(tiers, scores, tiers, scores, moments)
def test_priority_is_rank_times_a_thousand_plus_score(
    tier: str, score: int, other_tier: str, other_score: int, at: int
) -> None:
    rank, other_rank = TIER_RANK[tier] * 1000 + score, TIER_RANK[other_tier] * 1000 + other_score
    first = key(Ordering.PRIORITY, at=at, tier=tier, score=score)
    second = key(Ordering.PRIORITY, tier=other_tier, score=other_score)
    assert (first < second) is (rank > other_rank)
    assert (first == second) is (rank == other_rank)


@given(moments, st.one_of(st.none(), moments))
def test_deadline_is_earliest_first_and_none_last(one: int, other: int | None) -> None:
    first, second = key(Ordering.DEADLINE, deadline=one), key(Ordering.DEADLINE, deadline=other)
    assert (first < second) is (other is None or one < other)


@given(st.sampled_from(Ordering), moments, tiers, scores, st.one_of(st.none(), moments))
def test_every_key_fits_a_signed_column_of_64_bits(
    ordering: Ordering, at: int, tier: str, score: int, deadline: int | None
) -> None:
    assert -(2**63) <= key(ordering, at, tier, score, deadline) <= LAST < 2**63
