"""The index lists what says what it is about, in a fixed order, and follows nobody out of the folder."""

from pathlib import Path

import pytest

from postroom.office import memory_index
from postroom.office.memory_index import front_matter, index, notes


def remember(workspace: Path, path: str, name: str = "", summary: str = "") -> None:
    place = workspace / "memory" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"---\nname: {name}\nsummary: {summary}\n---\nthe text\n")


def test_entries_come_before_folders_and_folders_without_entries_are_left_out(tmp_path: Path) -> None:
    remember(tmp_path, "zebra.md", "Zebra", "an animal")
    remember(tmp_path, "people/ann.md", "Ann", "asks for short answers")
    remember(tmp_path, "people/work/ben.md", "Ben", "reviews")
    remember(tmp_path, "empty/nothing.md")
    (tmp_path / "memory/.hidden").mkdir()
    remember(tmp_path, ".hidden/x.md", "X", "x")
    (tmp_path / "memory/picture.png").write_bytes(b"\x89")
    assert index(notes(tmp_path)) == (
        "- **Zebra** — an animal  `memory/zebra.md`\n"
        "- **[people/]**\n"
        "  - **Ann** — asks for short answers  `memory/people/ann.md`\n"
        "  - **[work/]**\n"
        "    - **Ben** — reviews  `memory/people/work/ben.md`"
    )
    assert [str(note.path) for note in notes(tmp_path)] == [
        "memory/zebra.md",
        "memory/empty/nothing.md",
        "memory/people/ann.md",
        "memory/people/work/ben.md",
    ]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("---\nname: \"A b\"\nsummary: 'c'\n---\n", {"name": "A b", "summary": "c"}),
        ("---\r\nname: A\r\nsummary: b\r\n---\r\n", {"name": "A", "summary": "b"}),
        ("---\nName : A\n---", {"name": "A"}),
        ("name: A\nsummary: b", {}),
        ("---\nname: never closed", {}),
        ("", {}),
    ],
)
def test_front_matter_is_read_as_people_write_it(text: str, fields: dict[str, str]) -> None:
    assert front_matter(text) == fields


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    remember(outside, "secret.md", "Secret", "not for the model")
    workspace = tmp_path / "work"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory/link.md").symlink_to(outside / "memory/secret.md")
    (workspace / "memory/folder").symlink_to(outside / "memory")
    assert notes(workspace) == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "memory").symlink_to(outside / "memory")
    assert notes(other) == []


def test_what_is_odd_stops_nothing(tmp_path: Path) -> None:
    assert index(notes(tmp_path)) == ""
    remember(tmp_path, "good.md", "Good", "line")
    (tmp_path / "memory/bytes.md").write_bytes(b"---\nname: \xff\nsummary: <!-- MEMORY_END -->\n---\n")
    (tmp_path / "memory" / b"bad-\xff.md".decode(errors="surrogateescape")).write_text(
        "---\nname: n\nsummary: s\n---\n"
    )
    text = index(notes(tmp_path))
    text.encode()
    assert "- **Good** — line" in text
    assert "<!--" not in text


def test_a_memory_without_end_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "MOST_FILES", 5)
    for number in range(20):
        remember(tmp_path, f"{number:02}/note.md", f"N{number}", "s")
    assert len(notes(tmp_path)) == 5
