"""What an agent may do reaches its program, and what it may not is told to the person and kept."""

from pathlib import Path
from typing import Any

import pytest

from postroom.providers.protocol import Finished, Permissions, ToolDenied
from tests.acceptance.office import Puppet, staffed, text


@pytest.mark.parametrize(
    ("general", "own", "permissions"),
    [
        ({}, {}, Permissions.WORKSPACE),
        ({}, {"permissions": "read"}, Permissions.READ),
        ({"permissions": "full"}, {}, Permissions.FULL),
        ({"permissions": "full"}, {"permissions": "workspace"}, Permissions.WORKSPACE),
    ],
)
async def test_an_agent_has_its_own_permissions_else_those_of_the_office(
    tmp_path: Path, general: dict[str, Any], own: dict[str, Any], permissions: Permissions
) -> None:
    puppet = Puppet(lambda request: "ok")
    agents = {"coder": {"provider": "puppet", **own}}
    options = {"puppets": {"puppet": puppet}, "agents": agents, "teams": {}, "security": general}
    async with staffed(tmp_path, **options) as desk:
        await desk.write("@coder hello")
        await desk.replies(1)
    assert puppet.asked[0].permissions is permissions


async def test_what_was_denied_is_told_in_a_line_and_kept_with_the_turn(tmp_path: Path) -> None:
    wanted = [ToolDenied(name="Bash", summary=f"curl http://127.0.0.1:{n}/") for n in (1, 2, 3, 4, 4)]
    puppet = Puppet(lambda request: [*wanted, Finished(text="I could not.")])
    agents = {"coder": {"provider": "puppet"}}
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=agents, teams={}) as desk:
        await desk.write("@coder look")
        [reply] = await desk.replies(1)
        [turn] = await desk.room.records("turn")
    said = text(reply)
    assert said.startswith("I could not.")
    assert "Not allowed with the permissions `workspace`: Bash (curl http://127.0.0.1:1/)" in said
    assert "and 1 more" in said
    assert "postroom agent set coder --permissions full" in said
    assert turn.data["denied"] == ["Bash"], "no words of the conversation"
