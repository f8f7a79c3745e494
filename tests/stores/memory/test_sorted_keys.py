"""Keys stay in order whatever comes and goes, from whichever end."""

import random

import pytest

from postroom.stores.memory.sorted_keys import SortedKeys


def test_it_agrees_with_a_sorted_list_over_many_changes() -> None:
    rng = random.Random(7)
    keys: SortedKeys[int] = SortedKeys()
    model: set[int] = set()
    for _ in range(5000):
        if model and rng.random() < 0.5:
            gone = min(model) if rng.random() < 0.7 else rng.choice(sorted(model))
            keys.remove(gone)
            model.remove(gone)
        elif (key := rng.randrange(500)) not in model:
            keys.add(key)
            model.add(key)
        expected, at = sorted(model), rng.randrange(500)
        assert list(keys) == expected
        assert len(keys) == len(expected)
        assert keys.first() == (expected[0] if expected else None)
        assert keys.head(3) == expected[:3]
        assert list(keys.after(at)) == [key for key in expected if key > at]
        assert list(keys.backwards(at)) == [key for key in reversed(expected) if key < at]


def test_a_key_that_is_not_there_cannot_be_removed() -> None:
    keys: SortedKeys[int] = SortedKeys()
    keys.add(1)
    keys.remove(1)
    with pytest.raises(KeyError):
        keys.remove(1)


def test_no_keys_are_given_for_a_limit_below_zero() -> None:
    keys: SortedKeys[int] = SortedKeys()
    keys.add(1)
    assert keys.head(-1) == []
