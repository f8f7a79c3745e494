"""The skills that come with the room, in each agent's workspace: kept up to date until somebody changes them.

The last line of such a file holds the hash of the rest. Where it does not fit, the file is not ours any more.
"""

import hashlib
import re
from pathlib import Path

from postroom.errors import NotFound, PostroomError
from postroom.office.workspaces import SKILLS, Workspace

BUNDLED = Path(__file__).parent / "manual" / "skills"
FILE = "SKILL.md"

_SEAL = re.compile(r"<!-- postroom sha256:([0-9a-f]{64}) -->\n?\Z")


def bundled() -> dict[str, str]:
    """Their texts by name."""
    return {folder.parent.name: folder.read_text("utf-8") for folder in sorted(BUNDLED.glob(f"*/{FILE}"))}


def refresh(workspace: Workspace) -> list[str]:
    """Writes those that are missing or out of date. Returns what could not be done, in sentences."""
    problems: list[str] = []
    for name, text in bundled().items():
        place = f"{SKILLS}/{name}/{FILE}"
        try:
            if _may_replace(workspace, place, text):
                workspace.write(place, sealed(text), sync=False)
        except PostroomError as error:
            problems.append(str(error))
    return problems


def sealed(text: str) -> str:
    text = text.rstrip() + "\n\n"
    return f"{text}<!-- postroom sha256:{_hash(text)} -->\n"


def untouched(text: str) -> bool:
    """Whether a file is as we wrote it, now or in an earlier version."""
    seal = _SEAL.search(text)
    return seal is not None and seal[1] == _hash(text[: seal.start()])


def _may_replace(workspace: Workspace, place: str, text: str) -> bool:
    try:
        found = workspace.read(place).decode(errors="replace")
    except NotFound:
        return True
    return untouched(found) and found != sealed(text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
