"""Messages under redelivery, failures of the platform and kill -9: each is handled once and answered once.

What nobody can know (a reply that was under way when the process died) is marked, and not repeated.
"""

from pathlib import Path

import pytest

from tests.channels.chat_platforms import PLATFORMS
from tests.channels.soak import Soak

SEED = 15


async def run_soak(name: str, folder: Path, messages: int, kills: int) -> None:
    soak = Soak(folder, PLATFORMS[name], messages, kills, SEED)
    (await soak.run()).check(soak.may_be_lost)


async def test_each_message_is_handled_and_answered_once_through_kills_and_failures(tmp_path: Path) -> None:
    await run_soak("telegram", tmp_path, 12, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PLATFORMS if name != "telegram"])
async def test_each_message_of_every_platform_is_handled_and_answered_once(name: str, tmp_path: Path) -> None:
    await run_soak(name, tmp_path, 40, 2)
