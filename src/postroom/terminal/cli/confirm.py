"""Asking a person before something is done that is hard to undo."""

import sys
from typing import Annotated

from postroom.terminal.cli.errors import NotConfirmed
from postroom.terminal.cli.options import flag

Yes = Annotated[bool, flag("Do not ask.", "--yes", "-y")]


def confirm(question: str) -> None:
    """Asked on stderr, so that the answer of the command stays alone on stdout."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmed
