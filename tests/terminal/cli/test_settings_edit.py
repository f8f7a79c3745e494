"""Settings in the person's own editor: saved whole, or refused with what they wrote kept."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminal.cli.runner import Cli

HOME_FILE = "run/settings-edited.json"


ChooseEditor = Callable[[str], None]


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChooseEditor:
    """An editor that does what a line of Python does with the document `d` or the file `f`."""
    program = tmp_path / "editor.py"

    def choose(line: str) -> None:
        program.write_text(
            f"import json, os, sys\nf = sys.argv[1]\nd = json.load(open(f))\n{line}\n"
            "json.dump(d, open(f, 'w'), indent=2) if d is not None else None\n"
        )
        monkeypatch.setenv("EDITOR", f"{sys.executable} {program}")

    monkeypatch.delenv("VISUAL", raising=False)
    return choose


def test_what_is_saved_holds_and_secrets_stay(cli: Cli, editor: ChooseEditor) -> None:
    cli.ok("settings", "set", "models.openai.api_key", "sk-a-secret-of-mine")
    editor("assert os.stat(f).st_mode & 0o777 == 0o600; d['default_agent'] = 'assistant'; del d['teams']")
    assert "saved" in cli.ok("settings", "edit").out
    document = json.loads((cli.home / "settings.json").read_text())
    assert document["models"]["openai"]["api_key"] == "sk-a-secret-of-mine"
    assert document["default_agent"] == "assistant"
    assert "teams" not in document
    assert not (cli.home / HOME_FILE).exists()
    editor("d = None")
    assert "Nothing was changed" in cli.ok("settings", "edit").out


@pytest.mark.parametrize(
    "line",
    ["d['budgets'] = {'daily_usd': 'much'}", "open(f, 'w').write('{'); d = None", "d = []"],
    ids=["not valid", "no JSON", "no object"],
)
def test_what_cannot_be_used_changes_nothing_and_is_kept(cli: Cli, editor: ChooseEditor, line: str) -> None:
    before = cli.json("settings", "show")
    editor(line)
    done = cli("settings", "edit")
    assert done.code == 2
    assert HOME_FILE in done.err
    assert (cli.home / HOME_FILE).exists()
    assert cli.json("settings", "show") == before


def test_an_editor_that_fails_changes_nothing(
    cli: Cli, editor: ChooseEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor("sys.exit(3)")
    assert "ended with 3" in cli("settings", "edit").err
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    assert "no such file" in cli("settings", "edit").err
    assert not (cli.home / HOME_FILE).exists()
