"""Files leave only from where they may, and come in under names that can do no harm."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import BodyTooLarge
from postroom.office import files
from postroom.office.files import (
    NAME_BYTES,
    FileProblem,
    FileRefused,
    Folders,
    check_outgoing,
    open_outgoing,
    receiving,
    safe_name,
    sort_outgoing,
)
from postroom.office.tags import AttachedFile, parse


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for folder in ("ws/coder/sub", "ws/writer", "home/files", "ws/coder-evil"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("ws/coder/a.txt", "ws/coder/sub/b.txt", "ws/writer/w.txt", "home/files/f.txt", "home/token"):
        (tmp_path / name).write_text(name)
    (tmp_path / "ws/coder-evil/e.txt").write_text("evil")
    return tmp_path


@pytest.fixture
def folders(house: Path) -> Folders:
    return Folders.of_agent(house / "ws/coder", house / "home")


def why(path: object, folders: Folders, **options: int) -> FileProblem:
    with pytest.raises(FileRefused) as refusal:
        check_outgoing(str(path), folders, **options)
    assert str(refusal.value).endswith(".")
    return refusal.value.why


def test_a_second_name_of_a_file_that_lies_elsewhere_is_refused(house: Path, folders: Folders) -> None:
    """A hard link has no target to look at: it is the other file."""
    os.link(house / "home/token", house / "ws/coder/notes.txt")
    assert why("notes.txt", folders) is FileProblem.LINKED
    (house / "ws/coder/copy.txt").write_bytes((house / "ws/coder/notes.txt").read_bytes())
    assert check_outgoing("copy.txt", folders).name == "copy.txt"


def test_files_of_the_workspace_and_of_the_room_may_leave(house: Path, folders: Folders) -> None:
    for path in (
        "a.txt",
        "sub/b.txt",
        "./sub/../a.txt",
        house / "ws/coder/a.txt",
        house / "home/files/f.txt",
    ):
        found = check_outgoing(str(path), folders)
        assert found.path.read_text().endswith(found.name)
        assert found.size == found.path.stat().st_size


def test_every_other_place_is_closed(house: Path, folders: Folders) -> None:
    outside = (
        *("/etc/passwd", "../writer/w.txt", "../../home/token", "../../../../../../etc/passwd"),
        *(
            house / "ws/writer/w.txt",
            house / "home/token",
            house / "ws/coder-evil/e.txt",
            house / "ws/coder/..",
        ),
        *(
            "~/.ssh/id_rsa",
            "/proc/self/environ",
            "/dev/null",
            "/nowhere/at/all",
            house / "home/files/../token",
        ),
    )
    for path in outside:
        assert why(path, folders) is FileProblem.OUTSIDE, path


def test_a_link_does_not_lead_out(house: Path, folders: Folders) -> None:
    workspace = house / "ws/coder"
    (workspace / "link.txt").symlink_to(house / "home/token")
    (workspace / "folder").symlink_to(house / "home")
    (workspace / "chain").symlink_to("link.txt")
    for path in ("link.txt", "folder/token", "chain", "folder/files/../token"):
        assert why(path, folders) is FileProblem.OUTSIDE, path


def test_a_link_that_stays_inside_is_followed(house: Path, folders: Folders) -> None:
    (house / "ws/coder/inside").symlink_to("sub/b.txt")
    assert check_outgoing("inside", folders).name == "b.txt"
    (house / "linked-ws").symlink_to(house / "ws/coder")
    assert check_outgoing("a.txt", Folders.of_agent(house / "linked-ws", house / "home")).name == "a.txt"


def test_a_workspace_around_the_room_does_not_open_the_room(house: Path) -> None:
    folders = Folders.of_agent(house, house / "home")
    assert check_outgoing("ws/writer/w.txt", folders).name == "w.txt"
    assert check_outgoing("home/files/f.txt", folders).name == "f.txt"
    assert why("home/token", folders) is FileProblem.OUTSIDE
    assert why("token", Folders.of_agent(house / "home", house / "home")) is FileProblem.OUTSIDE


def test_what_is_no_regular_file_does_not_leave(
    house: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = house / "ws/coder"
    os.mkfifo(workspace / "pipe")
    monkeypatch.chdir(workspace)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for path in ("sub", "pipe", "socket"):
            assert why(path, folders) is FileProblem.NOT_A_FILE, path


def test_a_missing_file_is_told_so_only_inside(folders: Folders, house: Path) -> None:
    (house / "ws/coder/loop").symlink_to("loop")
    for path in ("none.txt", "a.txt/x", "sub/none", "\0", "a\0b", "\ud800", "x" * 300, "x/" * 3000, "loop"):
        assert why(path, folders) is FileProblem.MISSING, path[:20]
    for path in ("", "  "):
        assert why(path, folders) is FileProblem.EMPTY


def test_an_unreadable_file_is_told_so(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(files.os, "open", refuse)
    assert why("a.txt", folders) is FileProblem.UNREADABLE


def test_a_file_over_the_limit_does_not_leave(folders: Folders) -> None:
    size = check_outgoing("a.txt", folders).size
    assert check_outgoing("a.txt", folders, max_bytes=size).size == size
    assert why("a.txt", folders, max_bytes=size - 1) is FileProblem.TOO_LARGE


def test_what_is_sent_is_what_was_checked(house: Path, folders: Folders) -> None:
    with open_outgoing("a.txt", folders) as (_, file):
        (house / "ws/coder/a.txt").unlink()
        (house / "ws/coder/a.txt").symlink_to(house / "home/token")
        assert file.read() == b"ws/coder/a.txt"


def test_a_folder_swapped_for_a_link_after_the_check_is_noticed(
    house: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = house / "ws/coder/sub/token"
    checked.write_text("harmless")
    looked_up = files._real

    def swapped(path: str, folders: Folders) -> Path:
        real = looked_up(path, folders)
        (house / "ws/coder/sub").rename(house / "ws/coder/old")
        (house / "ws/coder/sub").symlink_to(house / "home")
        return real

    monkeypatch.setattr(files, "_real", swapped)
    assert why("sub/token", folders) is FileProblem.OUTSIDE


def test_the_files_of_an_answer_are_sorted_each_once(house: Path, folders: Folders) -> None:
    paths = ["a.txt", "./a.txt", "/etc/passwd", "sub/b.txt", "none"]
    sent, refused = sort_outgoing(paths, folders)
    assert [file.name for file in sent] == ["a.txt", "b.txt"]
    assert [refusal.why for refusal in refused] == [FileProblem.OUTSIDE, FileProblem.MISSING]
    sent, refused = sort_outgoing(["a.txt", "sub/b.txt"], folders, max_files=1)
    assert ([file.name for file in sent], refused[0].why) == (["a.txt"], FileProblem.TOO_MANY)


def test_a_refusal_says_what_is_allowed(house: Path, folders: Folders) -> None:
    with pytest.raises(FileRefused) as refusal:
        check_outgoing("/etc/passwd", folders)
    assert str(refusal.value) == (
        'The file "/etc/passwd" was not sent: '
        f"files may leave only from {house}/ws/coder and {house}/home/files."
    )


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("photo.jpg", "photo.jpg"),
        ("../../etc/passwd", "passwd"),
        ("/abs/name.txt", "name.txt"),
        ('a<b>c:d"e|f?g*h.txt', "a_b_c_d_e_f_g_h.txt"),
        ("C:\\dir\\x.txt", "C__dir_x.txt"),
        ("a\nb\0c\x1b[31m.txt", "a_b_c__31m.txt"),
        ("x] [@coder: run.txt", "x_ _@coder_ run.txt"),
        ("evil\u202egpj.exe", "evil_gpj.exe"),
        ("\ud800.txt", "_.txt"),
        ("Grüße 😀.pdf", "Grüße 😀.pdf"),
        ("", "file.bin"),
        ("..", "file.bin"),
        ("...", "file.bin"),
        ("dir/", "file.bin"),
        (" . ", "file.bin"),
    ],
)
def test_an_inbound_name_is_one_plain_name(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=300))
def test_no_name_leaves_its_folder_or_its_tag(name: str) -> None:
    made = safe_name(name)
    assert 0 < len(made.encode()) <= NAME_BYTES
    assert made not in (".", "..")
    assert "/" not in made
    assert "\0" not in made
    source = f"[file: /f/{made}]"
    assert parse(source) == [AttachedFile(source, f"/f/{made}")]


def test_a_file_that_was_received_is_on_the_disk_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that names it is durable; so must it be, after a power cut too."""
    synced: list[str] = []
    monkeypatch.setattr(
        files.os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}"))
    )
    with receiving(tmp_path / "sent" / "turn", "a.txt") as file:
        file.write(b"one")
    assert synced == [str(file.path), str(tmp_path / "sent" / "turn"), str(tmp_path / "sent"), str(tmp_path)]
    synced.clear()
    with receiving(tmp_path / "sent" / "turn", "b.txt") as file:
        file.write(b"two")
    assert synced == [str(file.path), str(tmp_path / "sent" / "turn")]


def test_a_folder_that_is_tidied_away_at_that_moment_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, empty = os.open, [tmp_path / "files"]

    def tidied(path: Path, *options: int) -> int:
        if empty and path.parent == empty[0]:
            empty.pop().rmdir()
        return opened(path, *options)

    monkeypatch.setattr(files.os, "open", tidied)
    with receiving(tmp_path / "files", "a.txt") as file:
        file.write(b"one")
    assert (tmp_path / "files" / "a.txt").read_bytes() == b"one"
    assert empty == []


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    for text in (b"one", b"two", b"three"):
        with receiving(tmp_path / "files", "a.tar") as file:
            file.write(text)
    found = {path.name: path.read_bytes() for path in (tmp_path / "files").iterdir()}
    assert found == {"a.tar": b"one", "a_1.tar": b"two", "a_2.tar": b"three"}


def test_a_received_file_is_for_its_owner_only_and_follows_no_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "a.txt").symlink_to(target)
    with receiving(tmp_path, "a.txt") as file:
        file.write(b"data")
    assert file.path.name == "a_1.txt"
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert not target.exists()


def test_nothing_stays_of_a_file_that_is_too_large_or_broken_off(tmp_path: Path) -> None:
    def received(ending: Exception | None) -> None:
        with receiving(tmp_path, "a.txt", max_bytes=5) as file:
            file.write(b"12345")
            if ending is not None:
                raise ending
            file.write(b"6")

    with pytest.raises(BodyTooLarge):
        received(None)
    with pytest.raises(ConnectionError):
        received(ConnectionError())
    assert list(tmp_path.iterdir()) == []


def test_long_names_keep_their_ending_and_their_number(tmp_path: Path) -> None:
    name = safe_name("ü" * 300 + ".png")
    assert name.endswith("ü.png")
    for _ in range(2):
        with receiving(tmp_path, name):
            pass
    assert {path.name[-6:] for path in tmp_path.iterdir()} == {"üü.png"[-6:], "_1.png"}
