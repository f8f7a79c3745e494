"""`postroom import` on the command line: first a look, then a question, and no harm by kill -9 midway."""

import json
import signal
import subprocess
import time
from pathlib import Path

import apsw
import pytest

from tests.office.imports import installations
from tests.office.imports.installations import NOW, fingerprint
from tests.terminal.cli.runner import Cli, Shell


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workspaces go below the person's own folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))


def test_a_look_changes_nothing_and_a_no_neither(cli: Cli) -> None:
    home = installations.g0(cli.folder)
    before = fingerprint(home)
    plan = cli.json("import", "tinyclaw", ".tinyclaw", "--dry-run")
    assert (plan["source"], plan["found"]["open messages"]) == (str(home), 4)
    shown = cli.ok("import", "tinyclaw", ".tinyclaw", "--dry-run").out
    assert "New here would be @default." in shown
    refused = cli("import", "tinyclaw", ".tinyclaw", stdin=b"n\n")
    assert (refused.code, "Take it over?" in refused.err) == (1, True)
    assert list(cli.json("agent", "list")) == ["assistant"]
    done = cli.json("import", "tinyclaw", ".tinyclaw", "--yes")
    assert done["moved"]["open messages"] == 4
    again = cli.json("import", "tinyclaw", ".tinyclaw", "--yes")
    assert not any(again["moved"].values())
    assert fingerprint(home) == before
    assert (cli.home / "workspace" / "default" / "memory" / "facts.md").exists()


def test_a_wrong_folder_is_told(cli: Cli) -> None:
    for kind in ("tinyagi", "tinyclaw"):
        done = cli("import", kind, "nowhere", "--dry-run")
        assert (done.code, str(cli.folder / "nowhere") in done.err) == (4, True)


@pytest.mark.slow
def test_an_import_that_was_killed_is_finished_by_the_next(shell: Shell) -> None:
    home = installations.head(shell.folder)
    db = apsw.Connection(str(home / "tinyagi.db"))
    db.execute(
        """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
        INSERT INTO agent_messages (agent_id, role, channel, sender, message_id, content, created_at)
        SELECT 'writer', 'user', 'web', 'W', 'm' || i, 'line ' || i, ? + i FROM n""",
        (NOW,),
    )
    db.close()
    before = fingerprint(home)
    store = shell.folder / "home" / "postroom.db"
    for part in (500, 2500):
        process = shell.start("import", "tinyagi", str(home), "--yes", "--json", stdin=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while process.poll() is None and _lines(store) < part and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    came = _lines(store)
    # Of the two lines that were there, one is of a message that still waits, and comes as one.
    assert 0 < came < 6_001, "it was killed midway"
    done = json.loads(shell("import", "tinyagi", str(home), "--yes", "--json").out)
    assert done["moved"]["history"] == 6_001 - came
    assert _lines(store) == 6_001
    assert _count(store, "office.mail") + _count(store, "office.note") == 7
    assert _count(store, "office.past_post") == 3
    again = json.loads(shell("import", "tinyagi", str(home), "--yes", "--json").out)
    assert not any(again["moved"].values()), again["moved"]
    assert len(json.loads(shell("agent", "list", "--json").out)) == 3
    assert shell("ledger", "verify").code == 0
    assert fingerprint(home) == before


def _lines(store: Path) -> int:
    return _count(store, "office.history")


def _count(store: Path, kind: str) -> int:
    if not store.exists():
        return 0
    try:
        db = apsw.Connection(f"file:{store}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error:
        return 0
    try:
        rows = "SELECT message_type FROM messages UNION ALL SELECT message_type FROM archive"
        return db.execute(f"SELECT count(*) FROM ({rows}) WHERE message_type = ?", (kind,)).get
    except apsw.Error:
        return 0
    finally:
        db.close()
