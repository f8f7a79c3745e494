"""Files come in and go out through the browser: whole, bounded, and from one folder alone."""

from pathlib import Path

import pytest

from tests.api.auth.test_roles import person
from tests.api.house import House, opened

UPLOADS = "/portal/files"


async def test_a_file_goes_up_with_a_message_and_comes_down_again(still: House) -> None:
    content = b"%PDF " + bytes(range(256)) * 8000  # larger than any other request
    taken = await still.http.put(UPLOADS, params={"name": "Überblick?.pdf"}, content=content)
    assert taken.status_code == 200, taken.text
    path = Path(taken.json()["path"])
    assert path.parent == still.home / "files" / "web"
    words = {"message": "@lead look", "files": [str(path)]}
    assert (await still.http.post("/api/message", json=words)).status_code == 200
    [mail] = (await still.room.messages(queue="office/inbox/lead")).messages
    assert mail.files == [str(path)]
    given = await still.http.get(UPLOADS, params={"path": str(path)})
    assert given.content == content
    assert given.headers["content-disposition"].startswith("attachment")
    assert given.headers["content-type"] == "application/octet-stream"


async def test_two_files_of_one_name_are_two(still: House) -> None:
    paths = [
        (await still.http.put(UPLOADS, params={"name": "a.txt"}, content=text)).json()["path"]
        for text in (b"one", b"two")
    ]
    given = [(await still.http.get(UPLOADS, params={"path": path})).content for path in paths]
    assert given == [b"one", b"two"]


@pytest.mark.parametrize("path", ["../settings.json", "/etc/passwd", "web/none", "\x00", "~/x", "web"])
async def test_nothing_but_the_folder_of_files_is_given_out(still: House, path: str) -> None:
    (still.home / "files" / "web").mkdir(parents=True)
    (still.home / "files" / "link").symlink_to(still.home / "settings.json")
    for asked in (path, "link"):
        answer = await still.http.get(UPLOADS, params={"path": asked})
        assert answer.status_code == 404, asked
        assert answer.json()["code"] == "FILE_NOT_FOUND"


async def test_a_file_that_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    async def endless():
        for _ in range(100):
            yield b"x" * 1000

    async with opened(tmp_path, works=False, limits={"file_bytes": 5000}) as house:
        for content in (b"x" * 5001, endless()):
            answer = await house.http.put(UPLOADS, params={"name": "big"}, content=content)
            assert answer.status_code == 413, answer.text
        assert not [each for each in (house.home / "files").rglob("*") if each.is_file()]


async def test_a_viewer_takes_files_and_brings_none(still: House) -> None:
    path = (await still.http.put(UPLOADS, params={"name": "a.txt"}, content=b"one")).json()["path"]
    async with person(still, "viewer") as viewer:
        assert (await viewer.get(UPLOADS, params={"path": path})).content == b"one"
        assert (await viewer.put(UPLOADS, params={"name": "b"}, content=b"two")).status_code == 403
    async with still.stranger() as stranger:
        assert (await stranger.get(UPLOADS, params={"path": path})).status_code in (303, 401)
