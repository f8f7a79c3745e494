"""Every command explains itself, and its examples are commands that exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.cli.runner import Cli
from tests.terminal.cli.tree import whole_tree


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        yield from walk(child, (*path, name))


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "command-line.md"
ROOT = whole_tree()
COMMANDS = dict(walk(ROOT))
GROUPS = sorted({path[:1] for path in COMMANDS if len(path) > 1})


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_has_help_with_examples(cli: Cli, path: tuple[str, ...]) -> None:
    done = cli.ok(*path, "--help")
    assert "Usage: postroom " + " ".join(path) in done.out
    assert "Examples" in done.out
    assert re.search(r"--help\s+-h\b", done.out)
    assert not cli.home.exists()


def examples() -> list[str]:
    """Those of the help, and those of the page."""
    lines = {line.strip() for command in COMMANDS.values() for line in (command.epilog or "").splitlines()}
    lines = {line.replace("\\[", "[") for line in lines if "postroom " in line}
    lines |= {line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("postroom ")}
    return sorted(lines)


@pytest.mark.parametrize("line", examples())
def test_an_example_is_made_of_commands_and_options_that_exist(line: str) -> None:
    words = shlex.split(line.partition("   (")[0], comments=True)
    words = words[words.index("postroom") + 1 :]
    words = words[: words.index("|")] if "|" in words else words
    options = {"--store", "--json", "--help"}
    while words and words[0].startswith("--"):
        words = words[2:]
    command: Any = ROOT
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert command is not ROOT or not words
    for parameter in command.params:
        options |= {*parameter.opts, *parameter.secondary_opts}
    assert {word for word in words if word.startswith("-") and word != "-"} <= options


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_a_group_alone_shows_its_commands(cli: Cli, path: tuple[str, ...]) -> None:
    assert "Usage: postroom" in cli.ok(*path).out


def test_every_command_takes_the_store_and_json_before_or_after_its_name(jobs: Cli) -> None:
    other = f"sqlite:///{jobs.folder}/other.db"
    jobs.ok("--store", other, "queue", "create", "elsewhere")
    assert "default/elsewhere" in jobs.ok("queue", "list", "--store", other).out
    assert "default/elsewhere" not in jobs.ok("queue", "list").out
    assert jobs.ok("--json", "queue", "list").json == jobs.ok("queue", "list", "--json").json


def test_versions_are_told(cli: Cli) -> None:
    assert cli.json("version")["postroom"] == cli.ok("--version").out.strip()
