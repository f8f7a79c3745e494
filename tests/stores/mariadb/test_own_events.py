"""Whoever else commits is seen, whatever this process commits and notes in the same moment."""

from postroom.stores.mariadb.wakeups import OwnEvents


def test_only_numbers_of_ones_own_are_ones_own() -> None:
    own = OwnEvents()
    own.note(3, 2)
    assert own.count(1, 3) == 2
    own.note(9, 1)
    assert own.count(3, 8) == 0, "it is not seen yet"
    assert own.count(8, 9) == 1


def test_a_commit_that_is_noted_late_does_not_hide_one_of_another() -> None:
    """Its event was seen before it was noted. When it is, the next event is another's."""
    own = OwnEvents()
    assert own.count(4, 5) == 0
    own.note(5, 1)
    assert own.count(5, 6) == 0
