"""Files of messages in a home, in a folder that hosts share and in an object store keep the same promises."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import obstore
import pytest
from tests.object_store import object_store

from postroom.clock import SECOND
from postroom.errors import BodyTooLarge
from postroom.office import object_files
from postroom.office.files import FileProblem, FileRefused
from postroom.office.message_files import FilesAway, HomeFiles, MessageFiles, SharedFiles, in_thread
from postroom.office.object_files import ObjectFiles, open_files
from postroom.settings.errors import InvalidSettings
from postroom.settings.model import parse

OpenHost = Callable[[str], MessageFiles]
NAMES = ("a report.pdf", "Übersicht – 日本.txt", ".hidden", "100% #1 ~x;,=+&'.md", "x" * 250 + ".txt")


@pytest.fixture(params=["home", "folder", "objects"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenHost]:
    """The files as a host of this name sees them. A home has one."""
    with contextlib.ExitStack() as stack:
        url = {"home": "", "folder": str(tmp_path / "shared")}.get(request.param)
        if url is None:
            url = f"{stack.enter_context(object_store())}/of/{tmp_path.name}"

        def opened(name: str) -> MessageFiles:
            home = tmp_path / ("a" if request.param == "home" else name)
            settings = {"files": {"url": url}, "retention": {"files_days": 30}}
            return open_files(parse(settings), home)

        yield opened


def put(files: MessageFiles, data: bytes = b"content", name: str = "a.txt", folder: str = "sent/turn") -> str:
    with files.receiving(folder, name) as taken:
        taken.write(data)
    return taken.ref


def read(files: MessageFiles, ref: str) -> bytes:
    with files.open(ref) as (_, file):
        return file.read()


def why(files: MessageFiles, ref: str, **options: int) -> FileProblem:
    with pytest.raises(FileRefused) as refused:
        files.check(ref, **options)
    with pytest.raises(FileRefused) as again, files.open(ref, **options):
        pass
    assert again.value.why is refused.value.why
    return refused.value.why


@pytest.mark.parametrize("name", NAMES)
def test_what_one_host_has_taken_the_other_reads_under_the_same_name(host: OpenHost, name: str) -> None:
    a, b = host("a"), host("b")
    data = os.urandom(100_000)
    ref = put(a, data, name)
    assert read(b, ref) == data
    found = b.check(ref)
    assert (found.size, found.name) == (len(data), Path(ref).name)
    assert b.admit(ref) == ref
    path = b.fetch(ref)
    assert path.read_bytes() == data
    assert path.is_relative_to(b.root)
    assert path.name == Path(ref).name


def test_it_is_told_whether_files_can_be_kept(host: OpenHost, tmp_path: Path) -> None:
    files = host("a")
    put(files)
    files.probe()
    with pytest.raises(FilesAway, match="there is no folder"):
        SharedFiles(tmp_path / "none", HomeFiles(tmp_path)).probe()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(FilesAway, match="cannot be written"):
        SharedFiles(tmp_path, HomeFiles(tmp_path)).probe()


def test_no_file_takes_the_place_of_another(host: OpenHost) -> None:
    a, b = host("a"), host("b")
    refs = [put(files, name.encode()) for name, files in (("a", a), ("b", b), ("c", a))]
    assert len(set(refs)) == 3
    assert [read(a, ref) for ref in refs] == [b"a", b"b", b"c"]


def test_of_a_file_that_ends_early_nothing_stays(host: OpenHost) -> None:
    files = host("a")
    with pytest.raises(BodyTooLarge), files.receiving("web", "large.bin", max_bytes=10) as taken:
        taken.write(b"x" * 11)

    def end_early() -> None:
        with files.receiving("web", "half.bin") as taken:
            taken.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end_early()
    assert [path for path in files.root.glob("**/*") if path.is_file()] == []
    assert files.tidy(round((time.time() + 90 * 86400) * SECOND)) == 0


async def test_a_file_can_come_bit_by_bit_without_holding_anybody_up(host: OpenHost) -> None:
    files = host("a")
    async with in_thread(files.receiving("web", "a.txt")) as taken:
        taken.write(b"one")
        taken.write(b"two")
    assert read(files, taken.ref) == b"onetwo"
    with pytest.raises(RuntimeError):
        async with in_thread(files.receiving("web", "b.txt")) as taken:
            raise RuntimeError


def test_no_name_leads_to_anything_else(host: OpenHost, tmp_path: Path) -> None:
    files = host("a")
    put(files)
    (tmp_path / "secret").write_text("no")
    (tmp_path / "a" / "token").parent.mkdir(exist_ok=True)
    (tmp_path / "a" / "token").write_text("no")
    for ref in (
        str(tmp_path / "secret"),
        str(tmp_path / "a" / "token"),
        "../token",
        "files:../a/token",
        "files:sent/../0123456789ab/x",
        "files:sent/turn/0123456789ab/../x",
        "files:/0123456789ab/x",
        "files:token",
        "files:",
        "files:0123456789ab/\0",
    ):
        assert why(files, ref) in (FileProblem.OUTSIDE, FileProblem.MISSING), ref
    ref = put(files, b"12345")
    assert why(files, ref, max_bytes=4) is FileProblem.TOO_LARGE


def test_what_is_erased_or_missing_is_told_as_missing(host: OpenHost) -> None:
    a, b = host("a"), host("b")
    ref, kept = put(a), put(a)
    b.forget([ref, ref, "files:sent/turn/0123456789ab/never.txt", "/etc/hostname", "files:../x"])
    assert why(b, ref) is FileProblem.MISSING
    assert read(b, kept) == b"content"
    assert Path("/etc/hostname").exists()


def test_what_is_too_old_or_too_much_goes_the_oldest_first(host: OpenHost) -> None:
    files = host("a")
    old = [put(files, b"x" * 10, f"{number}.txt") for number in range(3)]
    now = round(time.time() * SECOND)
    assert files.tidy(now) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_files, "FRESH_S", -1.0)
        assert files.tidy(now + 31 * 86400 * SECOND) == 3
    assert {why(files, ref) for ref in old} == {FileProblem.MISSING}


def test_names_of_this_hosts_disk_become_names_for_all_hosts(host: OpenHost) -> None:
    a, b = host("a"), host("b")
    refs = [put(a, name=name) for name in ("a report.pdf", "b.txt")]
    paths = [str(b.fetch(ref)) for ref in refs]
    said = f"I read {paths[0]}, then [file: {paths[1]}] and {paths[0]} again; not {b.root}/none/x.txt."
    referred = b.refer(said)
    text = referred.text
    if refs[0].startswith("files:"):
        assert (referred.refs, str(b.root) + "/sent" in text) == (tuple(refs), False)
    for ref in refs:
        text = text.replace(ref, str(a.fetch(ref)))
    assert text == said.replace(str(b.root), str(a.root)).replace(f"{a.root}/none", f"{b.root}/none")


def test_what_messages_named_before_there_was_a_shared_place_is_still_read(
    host: OpenHost, tmp_path: Path
) -> None:
    before = HomeFiles(tmp_path / "a")
    ref = put(before, b"from before")
    now = host("a")
    assert read(now, ref) == b"from before"
    assert now.fetch(ref) == Path(ref)
    admitted = now.admit(ref)
    assert read(host("b") if admitted.startswith("files:") else now, admitted) == b"from before"
    now.forget([ref])
    assert why(now, ref) is FileProblem.MISSING


def test_other_peoples_files_in_a_shared_folder_stay(tmp_path: Path) -> None:
    files = SharedFiles(tmp_path / "shared", HomeFiles(tmp_path / "a"), days=1)
    ref = put(files)
    (tmp_path / "shared" / "theirs.txt").write_text("theirs")
    assert files.tidy(round((time.time() + 9 * 86400) * SECOND)) == 1
    assert why(files, ref) is FileProblem.MISSING
    assert (tmp_path / "shared" / "theirs.txt").exists()


# of an object store alone


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[str]:
    with object_store() as url:
        yield f"{url}/{tmp_path.name}"


def objects(url: str, home: Path, **bounds: float) -> ObjectFiles:
    return ObjectFiles(url, HomeFiles(home), **bounds)  # type: ignore[arg-type]


def test_other_peoples_objects_stay(bucket: str, tmp_path: Path) -> None:
    files = objects(bucket, tmp_path, days=1)
    put(files)
    obstore.put(files._store(), "theirs/report.txt", b"theirs")
    assert files.tidy(round((time.time() + 9 * 86400) * SECOND)) == 1
    assert bytes(obstore.get(files._store(), "theirs/report.txt").bytes()) == b"theirs"


def test_of_too_much_the_oldest_goes(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "FRESH_S", -1.0)
    files = objects(bucket, tmp_path, most_bytes=25)
    refs = [put(files, b"x" * 10, f"{number}.txt") for number in range(3)]
    found = files._list()

    def dated() -> list[dict[str, object]]:
        """Objects are dated by the second; these came one after the other."""
        return [
            {**each, "last_modified": datetime.fromtimestamp(refs.index(f"files:{each['path']}"), UTC)}
            for each in found
        ]

    monkeypatch.setattr(files, "_list", dated)
    assert files.tidy(round(time.time() * SECOND)) == 1
    assert why(files, refs[0]) is FileProblem.MISSING
    assert [read(files, ref) for ref in refs[1:]] == [b"x" * 10] * 2


def test_a_large_file_goes_in_parts(bucket: str, tmp_path: Path) -> None:
    data = os.urandom(12_000_000)
    ref = put(objects(bucket, tmp_path / "a"), data)
    assert read(objects(bucket, tmp_path / "b"), ref) == data


def test_a_copy_on_the_disk_goes_when_the_object_is_gone(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (objects(bucket, tmp_path / name) for name in "ab")
    erased, kept = put(a), put(a)
    copies = [b.fetch(ref) for ref in (erased, kept)]
    a.forget([erased])
    assert copies[0].exists()
    monkeypatch.setattr(object_files, "SWEEP_S", 0.0)
    monkeypatch.setattr(object_files, "FRESH_S", -1.0)
    put(b)
    assert [copy.exists() for copy in copies] == [False, True]


@pytest.mark.parametrize("reason", ["nobody answers", "no such bucket", "not installed"])
def test_a_store_that_is_away_is_told_and_nothing_is_half_done(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    there = objects(bucket, tmp_path / "b")
    ref = put(there)
    monkeypatch.setattr(object_files, "RETRY_S", 0.1)
    files = objects(bucket, tmp_path / "a", days=1)
    if reason == "no such bucket":
        files = objects("s3://no-such-bucket", tmp_path / "a", days=1)
    elif reason == "nobody answers":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    else:
        monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    acts: list[Callable[[], object]] = [
        lambda: put(files),
        lambda: read(files, ref),
        lambda: files.check(ref),
        lambda: files.fetch(ref),
        files.probe,
        lambda: files.forget([ref]),
        lambda: files.tidy(round(time.time() * SECOND)),
    ]
    for act in acts[:5] if reason == "no such bucket" else acts:
        with pytest.raises(FilesAway):
            act()
    assert [path for path in files.root.glob("**/*") if path.is_file()] == []
    monkeypatch.undo()


@pytest.mark.parametrize(
    "url", ["ftp://x/y", "relative/path", "s3://", "s3://B/x", "s3://bucket/a b", "file:///x"]
)
def test_an_address_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettings, match=r"files\.url"):
        parse({"files": {"url": url}})
    assert parse({"files": {"url": "s3://bucket/a/"}}).files.url == "s3://bucket/a"
