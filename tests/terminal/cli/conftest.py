from pathlib import Path

import apsw
import pytest

from tests.terminal.cli.runner import Cli, Shell, Tamper


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POSTROOM_STORE", raising=False)
    cli = Cli(tmp_path, monkeypatch, capsys)
    monkeypatch.setenv("POSTROOM_HOME", str(cli.home))
    return cli


@pytest.fixture
def jobs(cli: Cli) -> Cli:
    """With a queue `jobs`."""
    cli.ok("queue", "create", "jobs")
    return cli


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def tamper(tmp_path: Path) -> Tamper:
    """Change the store's file behind Postroom's back."""

    def change(sql: str) -> None:
        db = apsw.Connection(str(tmp_path / "home" / "postroom.db"))
        try:
            db.execute(sql)
        finally:
            db.close()

    return change
