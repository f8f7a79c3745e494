"""Help lists commands without importing them; what it says of each is what the command says of itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from postroom.terminal.cli import catalog
from postroom.terminal.cli.catalog import CATALOG, CatalogLine, CommandSummary
from tests.terminal.cli.runner import Shell

FOLDER = Path(catalog.__file__).parent


@pytest.mark.parametrize("line", CATALOG, ids=lambda line: line.name)
def test_a_line_of_the_help_says_what_its_command_says(line: CatalogLine) -> None:
    command = CommandSummary(line).load()
    first = (command.help or "").split("\n\n")[0]
    panel = getattr(command, "rich_help_panel", None)
    assert (command.name, first, command.hidden, panel) == (line.name, line.about, line.hidden, line.panel)


def test_every_module_that_brings_commands_is_in_the_catalog() -> None:
    bring = {
        path.stem
        for path in FOLDER.glob("*.py")
        if any(sign in path.read_text("utf-8") for sign in ("\ndef register(", "\napp = group("))
    }
    assert {line.module for line in CATALOG} == bring


# What takes long to import, and which of it a command may import because it works with it.
HEAVY = {
    "fastapi",
    "starlette",
    "uvicorn",
    "pydantic",
    "importlib.metadata",
    "segno",
    "httpx2",
    "jsonschema",
    "rich",
    "prompt_toolkit",
    "mcp",
}
HEAVY |= {"anthropic", "openai", "pyspark", "pandas", "pyarrow", "duckdb", "deltalake", "celpy"}
OWN = {"postroom.api", "postroom.app.server_process", "postroom.kernel.engine", "postroom.office"}
OWN |= {"postroom.office.office", "postroom.providers.anthropic_api", "postroom.providers.claude"}
NEEDS: dict[tuple[str, ...], set[str]] = {
    ("--version",): {"importlib.metadata"},
    ("--help",): {"rich"},
    ("version", "--json"): {"importlib.metadata"},
    ("queue", "--help"): {"rich", "postroom.kernel.engine"},
    ("queue", "list"): {"rich", "postroom.kernel.engine"},
    ("queue", "list", "--json"): {"postroom.kernel.engine"},
    ("publish", "jobs", "x"): {"rich", "postroom.kernel.engine"},
    ("publish", "jobs", "x", "--json", "--delay", "2s", "--label", "a=b"): {"postroom.kernel.engine"},
    ("claim", "jobs", "--json"): {"postroom.kernel.engine"},
    ("settings", "get", "agents"): {"rich"},
    ("settings", "get", "agents", "--json"): set(),
    ("agent", "list", "--json"): {"postroom.office"},
    ("team", "list", "--json"): {"postroom.office"},
    ("provider", "list", "--json"): {"postroom.office"},
    ("pairing", "pending", "--json"): {"postroom.office", "postroom.kernel.engine"},
    ("schedule", "list"): {"rich", "postroom.office", "postroom.office.office", "postroom.kernel.engine"},
    ("doctor",): {
        *("rich", "postroom.office", "postroom.office.office", "postroom.kernel.engine", "postroom.api")
    },
    ("logs",): {"rich"},
    ("status", "--json"): set(),
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("quick"))
    for words in ("queue create jobs", "settings show"):
        assert shell(*words.split()).code == 0
    return shell


@pytest.mark.parametrize("words", NEEDS, ids=" ".join)
def test_a_command_imports_only_what_it_works_with(shell: Shell, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "postroom", *words],
        cwd=shell.folder,
        env=shell.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 4), done.stderr  # 4: nothing runs that `status` could show
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "postroom.terminal.cli.app" in imported
    found = {name for name in HEAVY | OWN if name in imported}
    assert found <= NEEDS[words]


def test_a_word_that_is_plainly_wrong_is_refused_as_typer_words_it(shell: Shell) -> None:
    done = shell("list", "--limit", "ten")
    assert done.code == 2
    assert "Invalid value for '--limit': Input should be a valid integer" in done.err
