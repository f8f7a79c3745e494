"""What an agent remembers: the files of its `memory/` that say what they are about, as a short list."""

import re
from pathlib import Path

import msgspec

from postroom.office.turns.sections import harmless

FOLDER = "memory"
FRONT_BYTES = 4096
MOST_FILES = 1000
DEEPEST = 8

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^([A-Za-z_-]+)[ \t]*:[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)


class Note(msgspec.Struct, frozen=True):
    """One file of the memory; without a name and a summary it is kept, but not listed in the index."""

    path: Path
    name: str = ""
    summary: str = ""

    @property
    def listed(self) -> bool:
        return bool(self.name and self.summary)


def front_matter(text: str) -> dict[str, str]:
    """The fields at the top of a file, between two lines of `---`; quotes around a value do not count."""
    front = _FRONT.match(text)
    if front is None:
        return {}
    return {key.lower(): _unquoted(value) for key, value in _FIELD.findall(front[1])}


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def notes(workspace: Path) -> list[Note]:
    """Every `.md` below `memory/`, in the order of the index. Links are not followed."""
    folder = workspace / FOLDER
    found: list[Note] = []
    if not folder.is_symlink():
        _walk(folder, workspace, 0, found)
    return found


def _walk(folder: Path, workspace: Path, depth: int, found: list[Note]) -> None:
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError:
        return
    shown = [entry for entry in entries if not entry.name.startswith(".") and not entry.is_symlink()]
    for entry in shown:
        if entry.suffix == ".md" and entry.is_file() and len(found) < MOST_FILES:
            found.append(_note(entry, workspace))
    for entry in shown:
        if entry.is_dir() and depth < DEEPEST and len(found) < MOST_FILES:
            _walk(entry, workspace, depth + 1, found)


def _note(path: Path, workspace: Path) -> Note:
    try:
        with path.open("rb") as file:
            text = file.read(FRONT_BYTES).decode(errors="replace")
    except OSError:
        text = ""
    fields = front_matter(text)
    return Note(
        path.relative_to(workspace),
        harmless(fields.get("name", ""), 80),
        harmless(fields.get("summary", "")),
    )


def index(found: list[Note]) -> str:
    """One line for each note that says what it is about, indented below its folders."""
    lines: list[str] = []
    open_folders: tuple[str, ...] = ()
    for note in found:
        if not note.listed:
            continue
        folders = note.path.parts[1:-1]
        common = 0
        while common < min(len(folders), len(open_folders)) and folders[common] == open_folders[common]:
            common += 1
        for level in range(common, len(folders)):
            lines.append(f"{'  ' * level}- **[{harmless(folders[level])}/]**")
        open_folders = folders
        where = harmless(str(note.path), 300)
        lines.append(f"{'  ' * len(folders)}- **{note.name}** — {note.summary}  `{where}`")
    return "\n".join(lines)
