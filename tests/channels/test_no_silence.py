"""Whatever happens to an office, who wrote gets a reply, a failure, or a word that it waits and for what."""

from pathlib import Path

import pytest

from tests.channels.histories import History


@pytest.mark.parametrize("seed", [1])
async def test_nobody_who_wrote_is_left_in_silence(seed: int, tmp_path: Path) -> None:
    await History(tmp_path, seed).play()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
async def test_nobody_is_left_in_silence_through_more_histories(seed: int, tmp_path: Path) -> None:
    await History(tmp_path, seed).play()
