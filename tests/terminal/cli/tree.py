"""All commands, loaded, as one tree to walk."""

from typer.core import TyperGroup
from typer.main import get_command

from postroom.terminal.cli.app import app
from postroom.terminal.cli.catalog import CommandSummary


def whole_tree() -> TyperGroup:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    loaded = {
        name: each.load() if isinstance(each, CommandSummary) else each
        for name, each in root.commands.items()
    }
    root.commands = loaded
    return root
