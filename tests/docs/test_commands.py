"""Every command that the pages and the help show exists, with every option it is shown with."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.cli.tree import whole_tree

COMMANDS = whole_tree()
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]
_FENCED = re.compile(r"^```(?:sh|console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What `start` says when it is ready is no command.
_INLINE = re.compile(r"`(postroom (?!ready on)[^`]+)`")
_END = {"|", "||", "&&", ";", "<", ">", ">>"}


def shown(text: str) -> Iterator[str]:
    """Commands in blocks, wherever they stand in a line, and in running text."""
    for block in _FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield from (f"postroom {part}" for part in re.split(r"(?:^|[\s;(])postroom ", line)[1:])
    yield from (" ".join(each.split()) for each in _INLINE.findall(text))


def words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found: list[str] = []
    for word in lexer:
        if word in _END or word == "…":
            break
        found.append(word)
    return found[1:]


def problem(line: str) -> str | None:
    """What of a command line is not there; None when all of it is."""
    at: Any = COMMANDS
    rest = words(line)
    while rest and hasattr(at, "commands") and not rest[0].startswith("-"):
        name = rest.pop(0).rstrip(",")
        if name not in at.commands:
            return f"no command {name!r}"
        at = at.commands[name]
    known = {name for each in at.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    given = [word.partition("=")[0] for word in rest if re.fullmatch(r"-\w|--[a-z][\w-]*(=.*)?", word)]
    return next((f"no option {word}" for word in given if word not in known), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_a_page_exist(page: Path) -> None:
    wrong = {line: told for line in shown(page.read_text("utf-8")) if (told := problem(line))}
    assert wrong == {}


def leaves(at: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(at, "commands"):
        for name, below in at.commands.items():
            yield from leaves(below, (*path, name))
    else:
        yield path, at


def test_examples_in_the_help_exist_and_belong_to_their_command() -> None:
    wrong: dict[str, str] = {}
    for path, each in leaves(COMMANDS):
        epilog = re.sub(r"\[/?bold\]", "", each.epilog or "").replace("\\[", "[")
        examples = [line.strip() for line in epilog.splitlines() if line.strip().startswith("postroom")]
        assert examples, f"{' '.join(path)} has no example"
        wrong |= {line: told for line in examples if (told := problem(line))}
    assert wrong == {}


def test_this_test_would_find_a_mistake() -> None:
    assert problem("postroom pipeline rnu") == "no command 'rnu'"
    assert problem("postroom queue create jobs --odering priority") == "no option --odering"
    assert len([line for page in PAGES for line in shown(page.read_text("utf-8"))]) > 80
