"""Files come in and go out through the browser: whole, bounded, and from one folder alone."""

from pathlib import Path

import pytest

from postroom.kernel.erasure.subject import Subject
from postroom.office import object_files
from postroom.services import callers
from tests.api.auth.test_roles import person
from tests.api.house import House, opened
from tests.object_store import object_store

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


async def test_files_in_an_object_store_go_up_and_down_and_away_changes_nothing(tmp_path: Path) -> None:
    with object_store() as bucket:
        url = f"{bucket}/{tmp_path.name}"
        async with opened(tmp_path, works=False, files={"url": url}) as house:
            taken = await house.http.put(UPLOADS, params={"name": "a plan.pdf"}, content=b"%PDF")
            ref = taken.json()["path"]
            assert ref.startswith("files:web/")
            # What another program has put into the folder of the home goes along, for every host.
            beside = house.home / "files" / "beside.txt"
            beside.write_text("beside")
            words = {"message": "@lead look", "files": [ref, str(beside)]}
            sent = await house.http.post("/api/message", json=words)
            assert sent.status_code == 200, sent.text
            files = [str(beside), "/etc/passwd"]
            told = {"channel": "web", "sender": "Ann", "message": "here", "files": files}
            assert (await house.http.post("/api/responses", json=told)).status_code == 200
            [mail] = (await house.room.messages(queue="office/inbox/lead")).messages
            [answer] = (await house.room.messages(queue="office/outbox/web")).messages
            assert mail.files[0] == ref
            assert mail.files[1].startswith("files:")
            assert (answer.files[0].startswith("files:"), answer.files[1]) == (True, "/etc/passwd")
        # A host with a disk of its own.
        (tmp_path / "b").mkdir()
        async with opened(tmp_path / "b", works=False, files={"url": url}) as other:
            for name, content in ((ref, b"%PDF"), (mail.files[1], b"beside"), (answer.files[0], b"beside")):
                assert (await other.http.get(UPLOADS, params={"path": name})).content == content
            wrong = {"message": "@lead look", "files": ["files:web/x"]}
            refused = await other.http.post("/api/message", json=wrong)
            assert (refused.status_code, refused.json()["code"]) == (403, "FILE_REFUSED")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        environment.setattr(object_files, "RETRY_S", 0.1)
        (tmp_path / "c").mkdir()
        async with opened(tmp_path / "c", works=False, files={"url": url}) as away:
            for answer in (
                await away.http.put(UPLOADS, params={"name": "a.txt"}, content=b"x"),
                await away.http.get(UPLOADS, params={"path": ref}),
                await away.http.post("/api/message", json={"message": "@lead look", "files": [ref]}),
                await away.http.post("/api/responses", json={**told, "files": [ref]}),
            ):
                assert (answer.status_code, answer.json()["code"]) == (503, "FILES_AWAY")
            assert (await away.room.messages(queue="office/inbox/lead")).messages == []


@pytest.mark.parametrize("place", ["home", "objects"])
async def test_what_is_erased_takes_its_files_along_and_no_others(tmp_path: Path, place: str) -> None:
    with object_store() as bucket:
        url = "" if place == "home" else f"{bucket}/{tmp_path.name}"
        async with opened(tmp_path, works=False, files={"url": url}) as house:

            async def take(name: str) -> str:
                taken = await house.http.put(UPLOADS, params={"name": name}, content=b"x")
                return taken.json()["path"]

            hers, his, theirs = [await take(name) for name in ("hers.txt", "his.txt", "theirs.txt")]
            for sender, ref in (("Ann", hers), ("Bob", his)):
                body = {"message": "@lead look", "files": [ref], "sender": sender, "senderId": sender.lower()}
                assert (await house.http.post("/api/message", json=body)).status_code == 200
            # A message of the work queue may name anything, and erases nothing of the office.
            await house.room.create_queue("jobs")
            await house.room.publish("jobs", {"who": "ann"}, files=[theirs])
            services, owner = house.deps.services, callers.owner()
            subject = Subject(field="body.who", value="ann")
            assert (await services.erasures.erase(owner, "default", subject)).erased == 1
            for who, mode in (("bob", "redact"), ("ann", "erase")):
                subject = Subject(field="sender_id", value=who)
                assert (await services.erasures.erase(owner, "office", subject, mode=mode)).erased == 1
            answers = [await house.http.get(UPLOADS, params={"path": ref}) for ref in (hers, his, theirs)]
            assert [answer.status_code for answer in answers] == [404, 200, 200]
