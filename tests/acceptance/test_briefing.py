"""Before each turn an agent's workspace is in order, and it is told who it is and whom it works with."""

from pathlib import Path

from postroom import State
from tests.acceptance.office import Puppet, staffed, text


async def test_the_agent_is_told_by_files_settings_and_team_anew_in_each_turn(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "done")
    agents = {"lead": {"provider": "puppet", "system_prompt": "Be brief."}, "coder": {"name": "Code Bot"}}
    teams = {"dev": {"agents": ["lead", "coder"], "leader_agent": "lead"}}
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=agents, teams=teams) as desk:
        await desk.write("@lead one")
        await desk.replies(1)
        root = tmp_path / "work/lead"
        (root / "AGENTS.md").write_text("I lead.")
        (root / "memory/a.md").write_text("---\nname: Apples\nsummary: are red\n---\n")
        await desk.write("@lead two")
        await desk.replies(2)
    first, second = (request.system_prompt for request in puppet.asked)
    assert "`@coder` — **Code Bot**" in first
    assert first.endswith("Be brief.")
    assert second.endswith("I lead.\n\nBe brief.")
    assert "**Apples** — are red" in second
    assert puppet.asked[0].workspace == root
    assert (root / "SOUL.md").exists()


async def test_a_workspace_that_leads_elsewhere_is_refused_and_the_sender_is_told(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "done")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/lead").symlink_to(tmp_path / "elsewhere")
    agents = {"lead": {"provider": "puppet"}}
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=agents, teams={}) as desk:
        taken = await desk.write("@lead hello")
        [reply] = await desk.replies(1)
        assert "a link leads out of" in text(reply)
        assert (await desk.room.get(taken.receipts[0].id)).state is State.DEAD
    assert puppet.asked == []
    assert list((tmp_path / "elsewhere").iterdir()) == []
