"""Folders of turns that a crash left behind are removed; those in use never are."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from postroom.providers.turn_folders import PREFIX, sweep_turn_folders, turn_folder


def test_what_was_left_is_swept_and_what_is_used_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "from postroom.providers.turn_folders import turn_folder\nimport os\n"
    code += "with turn_folder() as folder:\n (folder / 'secret.json').write_text('x')\n os._exit(9)"
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 9
    [left] = tmp_path.glob(f"{PREFIX}*")
    other = tmp_path / "postroom-other"
    other.mkdir()
    with turn_folder() as used:
        assert sweep_turn_folders() == 1
        assert not left.exists()
        assert used.exists()
    assert sorted(tmp_path.iterdir()) == [other]
