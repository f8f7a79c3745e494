"""Logging out ends the session on the server; sessions can be seen and ended; a turn's token ends with it."""

from pathlib import Path

from postroom.api.auth.agent_tokens import AgentTokens
from postroom.api.auth.logins import Logins
from postroom.api.auth.owner_token import OwnerToken
from postroom.clock import SystemClock
from postroom.services.callers import PersonRole
from tests.api.house import TOKEN, House


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


def test_what_was_ended_stays_ended_after_a_restart(tmp_path: Path) -> None:
    file, owner, clock = tmp_path / "sessions.json", OwnerToken(TOKEN), SystemClock()
    logins = Logins(owner, clock, file)
    kept, ended = (f"postroom_session={logins.begin()}" for _ in range(2))
    session = logins.session(ended)
    assert session is not None
    logins.end(session.name)
    for again in (Logins(owner, clock, file), logins):
        assert again.session(ended) is None
        assert again.session(kept) is not None
    assert file.stat().st_mode & 0o777 == 0o600


def test_logins_hold_in_every_api_process_of_the_home(tmp_path: Path) -> None:
    file, owner, clock = tmp_path / "sessions.json", OwnerToken(TOKEN), SystemClock()
    one, two = (Logins(owner, clock, file) for _ in range(2))
    code = one.new_link(PersonRole.VIEWER, "Ann")
    invitation = two.redeem(code)
    assert invitation is not None
    assert (invitation.role, invitation.person) == (PersonRole.VIEWER, "Ann")
    assert one.redeem(code) is None, "a link works once, wherever it is used"
    cookie, other = (f"postroom_session={each.begin()}" for each in (one, two))
    session = two.session(cookie)
    assert session is not None
    assert set(one.list_sessions()) == set(two.list_sessions())
    two.end(session.name)
    assert one.session(cookie) is None
    assert one.end_others("") == 1
    assert two.session(other) is None
    file.write_text("no sessions")
    assert two.session(other) is not None, "what cannot be read ends nothing: what was signed still holds"


async def test_an_agents_token_ends_with_the_turn_it_was_made_for(still: House) -> None:
    await still.room.create_queue("default/turns")
    receipt = await still.room.publish("default/turns", "work")
    token = AgentTokens(OwnerToken(TOKEN), still.deps.clock).make("coder", receipt.id)
    async with still.stranger(authorization=f"Bearer {token}") as program:
        assert (await program.get("/mcp")).status_code == 401, "the turn has not begun"
        [claimed] = await still.room.claim("default/turns")
        assert (await program.get("/mcp")).status_code == 405, "it is let in"
        await still.room.complete(claimed)
        refused = await program.get("/mcp")
        assert refused.status_code == 401
        assert "ended" in refused.text
