"""The log tells what happens to the mail and why it failed, and never what was said."""

import logging
from pathlib import Path
from typing import Any

import pytest

from postroom.providers.protocol import Cause, ErrorKind, Failed, TurnRequest
from tests.acceptance.office import Puppet, staffed

SECRET = "the cake is in the cellar"


async def test_a_message_can_be_followed_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "postroom.office")
    async with staffed(tmp_path, puppets={"puppet": Puppet(lambda _: SECRET)}, **one()) as desk:
        [receipt] = (await desk.write(f"@one {SECRET}")).receipts
        await desk.replies(1)
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == f"message {receipt.id} of Ann (web) for @one"
    assert told[1] == f"@one begins: message {receipt.id} of Ann (web)"
    assert told[2].startswith(f"@one is done with {receipt.id}: {len(SECRET)} characters, ")
    assert SECRET not in caplog.text


async def test_a_failure_is_in_the_log_with_its_kind_and_detail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "postroom.office")

    def broken(_: TurnRequest) -> list[Failed]:
        problem = Failed(
            kind=ErrorKind.AUTH, message="The key is refused.", detail="HTTP 401", cause=Cause.UNKNOWN
        )
        return [problem]

    async with staffed(tmp_path, puppets={"puppet": Puppet(broken)}, **one()) as desk:
        [receipt] = (await desk.write("@one hello")).receipts
        await desk.replies(1)
    [failed] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        f"@one failed at {receipt.id} by puppet: auth: The key is refused. (HTTP 401)" in failed.getMessage()
    )


def one() -> dict[str, Any]:
    return {"agents": {"one": {"provider": "puppet"}}, "teams": {}}
