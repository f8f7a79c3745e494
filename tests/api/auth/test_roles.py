"""Whom the owner lets in by a link: members take part, viewers look, and neither does what is the owner's."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from postroom.api.examples import FILE
from postroom.portal.menu import PARTS
from tests.api.house import House

# What is sent to ask, and changes nothing.
QUESTIONS = {
    "POST /v1/scopes/{scope_id}/routing-rules/test",
    "POST /v1/scopes/{scope_id}/hitl-patterns/{pattern_id}/preview",
    "POST /v1/scopes/{scope_id}/erasure/preview",
}
PATHS = {
    "scope_id": "default",
    "queue_id": "jobs",
    "id": "lead",
    "team": "dev",
    "agent": "lead",
    "name": "some",
    "number": "1",
}


@asynccontextmanager
async def person(house: House, role: str, name: str = "Ann") -> AsyncIterator[httpx2.AsyncClient]:
    link = (await house.http.post("/api/login-link", json={"role": role, "name": name})).json()["url"]
    async with house.stranger() as browser:
        answer = await browser.get("/login?" + link.partition("?")[2])
        cookie = answer.headers["set-cookie"].partition(";")[0]
    async with house.stranger(cookie=cookie) as browser:
        csrf = (await browser.get("/api/session")).json()["csrf"]
        browser.headers |= {"x-csrf-token": csrf, "origin": house.url}
        yield browser


def _tried(path: str) -> str:
    parts = [PATHS.get(each[1:-1], "1") if each.startswith("{") else each for each in path.split("/")]
    return "/".join(parts)


async def test_a_viewer_changes_nothing_by_any_endpoint(still: House) -> None:
    await still.room.create_queue("jobs")
    before, settings = (await still.room.head()).seq, still.settings.load()
    document = (await still.http.get("/openapi.json")).json()
    examples: dict[str, Any] = json.loads(FILE.read_text())
    done: list[str] = []
    tried = 0
    async with person(still, "viewer") as viewer:
        for path, operations in document["paths"].items():
            for method in operations.keys() - {"get", "parameters"}:
                name = f"{method.upper()} {path}"
                if name in QUESTIONS:
                    continue
                tried += 1
                body: Any = examples.get(name, {}).get("request")
                answer = await viewer.request(method, _tried(path), json=body)
                if answer.is_success:
                    done.append(f"{name}: {answer.status_code} {answer.text[:100]}")
        for part in PARTS:
            for path in part.acts:
                tried += 1
                await viewer.post(_tried(path), data={"name": "x", "text": "x", "with": "lead"})
    assert tried > 150
    assert done == []
    changes = [event.type async for event in still.room.events(before)]
    assert set(changes) <= {"secret.created"}, "which the server makes for itself"
    assert still.settings.load() == settings


@pytest.mark.parametrize("role", ["member", "viewer"])
async def test_whoever_is_let_in_sees_the_office_and_not_its_secrets(still: House, role: str) -> None:
    async with person(still, role) as browser:
        session = (await browser.get("/api/session")).json()
        assert (session["kind"], session["name"]) == ("person", "Ann")
        for path in ("/api/agents", "/api/teams", "/api/tasks", "/", "/floor", "/chat?with=lead", "/tasks"):
            answer = await browser.get(path)
            assert answer.status_code == 200, f"{path}: {answer.text}"
        for path in ("/api/settings", "/api/sessions", "/api/logs", "/settings", "/access", "/providers"):
            assert (await browser.get(path)).status_code == 403, path
        page = (await browser.get("/floor")).text
        assert f'data-role="{role}"' in page
        assert 'href="/settings"' not in page
        assert (await browser.post("/api/login-link")).status_code == 403, "they let nobody in"


async def test_a_member_writes_in_their_own_name_alone(still: House) -> None:
    async with person(still, "member", "Bob") as bob:
        words = {"message": "@lead hello", "sender": "Ann", "senderId": "ann", "channel": "telegram"}
        assert (await bob.post("/api/message", json=words)).status_code == 200
        task = {"title": "Paint", "description": ""}
        assert (await bob.post("/api/tasks", json=task)).status_code == 200
        assert (await bob.delete("/api/agents/lead")).status_code == 403
    [mail] = (await still.room.messages(queue="office/inbox/lead")).messages
    assert (mail.channel, mail.sender, mail.sender_id) == ("web", "Bob", "Bob")


async def test_nobody_makes_an_owner_of_themselves(still: House) -> None:
    async with person(still, "viewer") as viewer:
        cookie = viewer.headers["cookie"]
    name, _, signature = cookie.rpartition(".")
    for forged in (
        cookie.replace(".viewer.", ".member."),
        f"{name.rpartition('.viewer.')[0]}.{signature}",
        cookie.replace(".viewer.", "."),
    ):
        async with still.stranger(cookie=forged) as thief:
            assert (await thief.get("/api/session")).status_code == 401


@pytest.mark.parametrize("wish", [{"role": "king"}, {"role": "viewer", "name": ""}, {"role": 1}])
async def test_a_link_for_a_role_that_is_none_is_refused(still: House, wish: dict[str, Any]) -> None:
    assert (await still.http.post("/api/login-link", json=wish)).status_code == 422


async def test_sessions_tell_who_is_in_and_all_others_can_be_ended(still: House) -> None:
    async with person(still, "viewer", "Ann") as ann, person(still, "member", "Bob"):
        rows = (await still.http.get("/api/sessions")).json()["sessions"]
        assert [(each["person"], each["role"]) for each in rows] == [("Ann", "viewer"), ("Bob", "member")]
        link = (await still.http.post("/api/login-link")).json()["url"]
        async with still.stranger() as browser:
            answer = await browser.get("/login?" + link.partition("?")[2])
            cookie = answer.headers["set-cookie"].partition(";")[0]
        async with still.stranger(cookie=cookie) as owner:
            csrf = (await owner.get("/api/session")).json()["csrf"]
            mine = {"x-csrf-token": csrf, "origin": still.url}
            assert (await owner.post("/access/end-others", headers=mine)).json()[
                "said"
            ] == "2 sessions ended."
            assert (await owner.get("/access")).status_code == 200
        assert (await ann.get("/api/session")).status_code == 401
