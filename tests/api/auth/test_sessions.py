"""Logging out ends the session on the server; sessions can be seen and ended; a turn's token ends with it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.api.auth import record_document
from postroom.api.auth.logins import Logins, SessionNotFound
from postroom.api.auth.owner_token import OwnerToken
from postroom.api.auth.record_document import RecordDocument
from postroom.clock import SystemClock
from postroom.errors import DocumentChanged
from postroom.services.callers import PersonRole
from tests.api.house import TOKEN, House
from tests.conftest import mariadb_url, postgres_url


async def log_in(house: House) -> str:
    """The cookie of a browser that has used a link."""
    link = (await house.http.post("/api/login-link")).json()["url"]
    async with house.stranger() as browser:
        answer = await browser.get("/login?" + link.partition("?")[2])
        assert answer.status_code in (302, 303), answer.text
        again = await browser.get("/login?" + link.partition("?")[2], headers={"cookie": ""})
        assert again.status_code == 401, "a link works once"
        return answer.headers["set-cookie"].partition(";")[0]


async def test_logging_out_ends_the_session_on_the_server(still: House) -> None:
    cookie = await log_in(still)
    async with still.stranger(cookie=cookie) as browser:
        asked = await browser.get("/api/session")
        assert asked.status_code == 200
        own = {"x-csrf-token": asked.json()["csrf"], "origin": still.url}
        assert (await browser.post("/logout", headers=own)).status_code == 303
    async with still.stranger(cookie=cookie) as thief:
        assert (await thief.get("/api/session")).status_code == 401, "a copy of the cookie is worth nothing"


async def test_sessions_are_listed_and_ended_one_by_one(still: House) -> None:
    cookies = [await log_in(still), await log_in(still)]
    listed = (await still.http.get("/api/sessions")).json()["sessions"]
    assert len(listed) == 2
    names = [cookie.partition("=")[2].partition(".")[0] for cookie in cookies]
    assert [each["id"] for each in listed] == names
    assert (await still.http.delete(f"/api/sessions/{names[0]}")).status_code == 200
    codes = []
    for cookie in cookies:
        async with still.stranger(cookie=cookie) as browser:
            codes.append((await browser.get("/api/session")).status_code)
    assert codes == [401, 200]
    assert (await still.http.delete(f"/api/sessions/{names[0]}")).status_code == 404
    async with still.stranger() as stranger:
        assert (await stranger.get("/api/sessions")).status_code == 401


async def test_what_was_ended_stays_ended_after_a_restart(tmp_path: Path) -> None:
    file, owner, clock = tmp_path / "sessions.json", OwnerToken(TOKEN), SystemClock()
    logins = Logins.in_file(owner, clock, file)
    kept, ended = [f"postroom_session={await logins.begin()}" for _ in range(2)]
    session = await logins.session(ended)
    assert session is not None
    await logins.end(session.name)
    for again in (Logins.in_file(owner, clock, file), logins):
        assert await again.session(ended) is None
        assert await again.session(kept) is not None
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.fixture(params=["home", "postgres", "mariadb"])
async def two_processes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Logins]]:
    """Of one home, or of two hosts that share a store."""
    owner, clock = OwnerToken(TOKEN), SystemClock()
    if request.param == "home":
        yield [Logins.in_file(owner, clock, tmp_path / "sessions.json") for _ in range(2)]
        return
    url = {"postgres": postgres_url, "mariadb": mariadb_url}[request.param](tmp_path)
    async with (
        postroom.open(url, actor="one", housekeeping=False) as one,
        postroom.open(url, actor="two", housekeeping=False) as two,
    ):
        yield [Logins.in_store(owner, clock, room) for room in (one, two)]


async def test_logins_hold_in_every_api_process_of_the_home_or_of_all_hosts(
    two_processes: list[Logins],
) -> None:
    one, two = two_processes
    code = await one.new_link(PersonRole.VIEWER, "Ann")
    invitation = await two.redeem(code)
    assert invitation is not None
    assert (invitation.role, invitation.person) == (PersonRole.VIEWER, "Ann")
    assert await one.redeem(code) is None, "a link works once, wherever it is used"
    cookie, other = [f"postroom_session={await each.begin()}" for each in (one, two)]
    session = await two.session(cookie)
    assert session is not None
    assert set(await one.list_sessions()) == set(await two.list_sessions())
    await two.end(session.name)
    assert await one.session(cookie) is None
    with pytest.raises(SessionNotFound):
        await one.end(session.name)
    assert await one.end_others("") == 1
    assert await two.session(other) is None


async def test_a_link_that_many_use_at_once_logs_in_one(two_processes: list[Logins]) -> None:
    code = await two_processes[0].new_link()
    found = await asyncio.gather(*(each.redeem(code) for each in two_processes * 4))
    assert sum(each is not None for each in found) == 1


async def test_sessions_of_a_home_that_were_ended_stay_so_when_they_are_in_the_store(
    two_processes: list[Logins], tmp_path: Path
) -> None:
    file = tmp_path / "before.json"
    home = Logins.in_file(OwnerToken(TOKEN), SystemClock(), file)
    kept, ended = [f"postroom_session={await home.begin()}" for _ in range(2)]
    session = await home.session(ended)
    assert session is not None
    one, two = two_processes
    assert await two.session(ended) is not None, "nobody has told it yet"
    await home.end(session.name)
    await one.adopt(file)
    await one.adopt(tmp_path / "none.json")
    assert await two.session(ended) is None
    assert await two.session(kept) is not None


async def test_records_that_others_change_all_the_time_are_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_document, "TRIES", 2)
    async with postroom.open(postgres_url(tmp_path), housekeeping=False) as room:
        one, two = (RecordDocument(room, "tries", int) for _ in range(2))
        await one.change(lambda found: found.update(a=1))
        fetch = one._fetch

        async def fetch_late() -> Any:
            found = await fetch()
            await two.change(lambda found: found.update(a=found["a"] + 1))
            return found

        monkeypatch.setattr(one, "_fetch", fetch_late)
        with pytest.raises(DocumentChanged):
            await one.change(lambda found: found.update(a=100))
        assert await two.read() == {"a": 3}
