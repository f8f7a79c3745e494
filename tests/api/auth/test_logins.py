"""A browser logs in once, and its cookie alone can neither be stolen by a page nor used by one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from postroom.api.auth.logins import COOKIE
from tests.api.house import TOKEN, House


async def link(house: House) -> str:
    answer = await house.http.post("/api/login-link")
    assert answer.status_code == 200
    return answer.json()["url"]


@asynccontextmanager
async def browser(house: House) -> AsyncIterator[httpx2.AsyncClient]:
    async with house.stranger() as client:
        answer = await client.get(await link(house))
        assert answer.status_code == 303
        yield client


async def test_a_login_link_works_once(still: House) -> None:
    url = await link(still)
    async with still.stranger() as first:
        answer = await first.get(url)
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert (await first.get("/")).status_code == 200
        assert (await first.get("/api/queue/status")).status_code == 200
    async with still.stranger() as second:
        assert (await second.get(url)).status_code == 401
        assert (await second.get("/api/queue/status")).status_code == 401


async def test_a_page_without_login_leads_to_the_login_page(still: House) -> None:
    async with still.stranger(accept="text/html") as client:
        answer = await client.get("/")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/login"
        page = await client.get("/login")
        assert page.status_code == 200
        assert "Token" in page.text
        assert f"<code>{still.home}</code>" in page.text, "where the token really lies"
        assert (await client.get("/login.css")).status_code == 200


async def test_the_token_logs_in_and_a_wrong_one_does_not(still: House) -> None:
    async with still.stranger() as client:
        assert (await client.post("/login", data={"token": "wrong-wrong-wrong-wrong"})).status_code == 401
        assert (await client.post("/login", data={"token": TOKEN})).status_code == 303
        assert (await client.get("/api/session")).json()["kind"] == "browser"


async def test_guessing_on_the_login_page_is_slowed_down(timeless: House) -> None:
    async with timeless.stranger() as client:
        codes = [(await client.post("/login", data={"token": f"guess{n}"})).status_code for n in range(14)]
    assert codes[0] == 401
    assert codes[-1] == 429


async def test_a_forged_post_with_the_cookie_is_refused(still: House) -> None:
    async with browser(still) as client:
        csrf = (await client.get("/api/session")).json()["csrf"]
        body = {"message": "x"}
        for headers in (
            {},
            {"origin": still.url},
            {"x-csrf-token": csrf},
            {"origin": still.url, "x-csrf-token": "0" * 64},
            {"origin": "https://evil.example", "x-csrf-token": csrf},
        ):
            answer = await client.post("/api/message", json=body, headers=headers)
            assert answer.status_code == 403, headers
        own = {"origin": still.url, "x-csrf-token": csrf}
        assert (await client.post("/api/message", json=body, headers=own)).status_code == 200
        counted = await client.get("/api/queue/status")
        assert counted.json()["incoming"] == 1


async def test_a_cookie_that_was_changed_is_none(still: House) -> None:
    async with browser(still) as client:
        value = client.cookies[COOKIE]
    name, end, signature = value.split(".")
    for forged in (
        f"{name}.{int(end) + 1}.{signature}",
        f"x{name}.{end}.{signature}",
        f"{name}.{end}.{signature[:-1]}0" if signature[-1] != "0" else f"{name}.{end}.{signature[:-1]}1",
        "..",
        "a.b.c",
        "",
    ):
        async with still.stranger(cookie=f"{COOKIE}={forged}") as client:
            assert (await client.get("/api/queue/status")).status_code == 401, forged


async def test_the_page_holds_the_word_for_its_own_requests(still: House) -> None:
    async with browser(still) as client:
        csrf = (await client.get("/api/session")).json()["csrf"]
        assert csrf
        assert csrf in (await client.get("/")).text
        script = await client.get("/portal/portal.js")
        assert script.headers["content-type"].startswith("text/javascript")


async def test_who_only_looks_at_a_link_does_not_use_it_up(still: House) -> None:
    url = await link(still)
    async with still.stranger() as visitor:
        assert "set-cookie" not in (await visitor.head(url)).headers
        assert (await visitor.get(url)).status_code == 303
