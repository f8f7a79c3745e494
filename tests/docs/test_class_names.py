"""One class name stands for one thing in the whole tree, so that a search for it finds one definition."""

import ast
from collections import defaultdict
from pathlib import Path

import postroom

SOURCES = Path(postroom.__file__).parent

# Public names on both sides, each right where it is.
SHARED = {
    # The client's models mirror what the wire says of the kernel's.
    "Key": {"client/model.py", "kernel/access/keys.py"},
    "Message": {"client/model.py", "kernel/model.py"},
    "Page": {"client/model.py", "runtime/queries.py"},
    "Queue": {"client/model.py", "kernel/model.py"},
    "Rule": {"client/model.py", "kernel/rules/rule.py"},
    "Scope": {"client/model.py", "kernel/model.py"},
    # What a worker's handler answers, and the command that is made of it.
    "Snooze": {"kernel/commands.py", "runtime/workers.py"},
    # For who writes a channel, a button; for who asks a provider, which one.
    "Choice": {"channels/model.py", "providers/registry.py"},
}


def find_classes() -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(file.relative_to(SOURCES).as_posix())
    return found


def test_a_class_name_stands_for_one_thing() -> None:
    found = find_classes()
    assert len(found) > 1000, "the sources were not found"
    assert {name: files for name, files in found.items() if len(files) > 1} == SHARED
