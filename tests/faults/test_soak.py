"""A short soak: under mixed load and kills nothing that was accepted is lost, and nothing fails inside."""

from pathlib import Path

import pytest

from tests.faults.soak import soak


@pytest.mark.slow
async def test_nothing_is_lost_under_mixed_load_and_kills(tmp_path: Path) -> None:
    found = await soak(tmp_path, minutes=1.5, kill_every_s=25)
    assert found.kills
    assert found.published
    assert found.asked
    assert (found.lost, found.left, found.server_errors) == (0, 0, [])
