"""The unit that setup writes is the one that is shipped, for this program and this home."""

import sys
from pathlib import Path

import pytest

from postroom.app.home import Home
from postroom.terminal.cli import service_unit
from tests.terminal.cli.runner import Shell

SHIPPED = Path(__file__).parents[3] / "deploy" / "postroom.service"


def test_the_shipped_unit_is_what_is_written() -> None:
    assert SHIPPED.read_text("utf-8") == service_unit.build_unit()


def test_a_unit_names_this_program_and_a_home_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    unit = service_unit.write_unit(Home(tmp_path / "my room"))
    assert unit == tmp_path / "config/systemd/user/postroom.service"
    text = unit.read_text()
    assert f"ExecStart={Path(sys.executable).with_name('postroom')} start --foreground" in text
    assert f'Environment=POSTROOM_HOME="{tmp_path / "my room"}"' in text


def test_where_systemd_does_not_answer_the_way_by_hand_is_told(shell: Shell) -> None:
    shell.env["PATH"] = "/nowhere"
    shell.env["XDG_CONFIG_HOME"] = str(shell.folder / "config")
    done = shell("setup", "--provider", "script", "--service")
    assert done.code == 0, done.err
    assert "it was not started (there is no systemctl here)" in done.err
    assert "systemctl --user enable --now postroom.service" in done.err
    assert (shell.folder / "config/systemd/user/postroom.service").exists()
