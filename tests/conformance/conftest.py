"""Fixtures of the behaviour that all stores share."""

import pytest

from postroom.room import rooms, sync


@pytest.fixture
def only_wakeups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits is woken, or waits for an hour: nobody looks again by himself."""
    for module in (rooms, sync):
        monkeypatch.setattr(module, "POLL_S", 3600.0)
