"""What every agent is told: how mail works here, and the files a new workspace begins with."""

from pathlib import Path

_TEXTS = Path(__file__).parent

MANUAL = (_TEXTS / "mail.md").read_text("utf-8")
SOUL = (_TEXTS / "soul.md").read_text("utf-8")
HEARTBEAT = (_TEXTS / "heartbeat.md").read_text("utf-8")
CLAUDE = (_TEXTS / "claude.md").read_text("utf-8")

MEMORY_HINT = "Read a file of these when its summary fits what you are doing; keep them true and short."
NO_MEMORY = "Nothing is remembered yet. Write `memory/<subject>.md` with a name and a summary at its top."


def agents_file(agent: str, name: str) -> str:
    """The person's part of a new `AGENTS.md`; the marked sections follow it."""
    title = f"# {name} (@{agent})" if name else f"# @{agent}"
    return f"""\
{title}

Who this agent is, what it is for, and how it should work: write it here. It becomes part of its instructions.
"""
