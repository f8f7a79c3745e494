"""Asking a person at the keyboard for something; where nobody sits, the command says which option to use."""

import getpass
import sys
from collections.abc import Sequence

from postroom.terminal.cli.errors import Unclear


def somebody() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def text(question: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
    """Asked on stderr, so that the answer of the command stays alone on stdout."""
    _check(question)
    hint = f" ({', '.join(choices)})" if choices else ""
    hint += f" [{default}]" if default else ""
    while True:
        print(f"{question}{hint}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        answer = line.strip() or default
        if answer is not None:
            return answer
        print("Please write something.", file=sys.stderr)


def secret(question: str) -> str:
    """It does not show while it is typed."""
    _check(question)
    try:
        return getpass.getpass(f"{question}: ", stream=sys.stderr).strip()
    except EOFError:
        raise KeyboardInterrupt from None


def yes(question: str, *, default: bool = False) -> bool:
    answer = text(question, "y" if default else "n", ("y", "n")).lower()
    return answer in ("y", "yes")


def _check(question: str) -> None:
    if not somebody():
        raise Unclear(f"{question}: nobody is there to answer; give it as an option, see --help")
