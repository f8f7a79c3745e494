"""Two homes on one machine do not share the folders of their agents."""

from pathlib import Path

from postroom.app import first_run


def test_a_home_of_its_own_keeps_its_agents_in_it(tmp_path: Path) -> None:
    made = first_run.defaults({"POSTROOM_HOME": str(tmp_path / "home"), "PATH": ""})
    assert made["workspace"]["path"] == str(tmp_path / "home" / "workspace")
    assert first_run.defaults({"PATH": ""})["workspace"]["path"] == "~/postroom-workspace"
