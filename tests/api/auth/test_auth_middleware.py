"""Closed by default: whoever is not the owner is refused, over real HTTP, on every path, streams included."""

import asyncio
from pathlib import Path

import pytest

from postroom.api.auth.agent_tokens import AgentTokens
from postroom.api.auth.owner_token import OwnerToken
from postroom.clock import ManualClock, SystemClock
from tests.api.house import TOKEN, House, opened

PATHS = ["/api/agents", "/api/queue/status", "/api/events/stream", "/openapi.json", "/api/nope", "/metrics"]
OWNER = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_token_nothing_is_told(still: House, path: str) -> None:
    async with still.stranger() as stranger:
        answer = await stranger.get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "token" in answer.json()["error"]


@pytest.mark.parametrize("token", ["stale-token-000000000", "x", TOKEN[:-1], TOKEN + "x", "é" * 20])
async def test_a_wrong_or_stale_token_is_refused(still: House, token: str) -> None:
    async with still.stranger() as stranger:
        answer = await stranger.get(
            "/api/queue/status", headers={b"authorization": f"Bearer {token}".encode()}
        )
    assert answer.status_code == 401


async def test_a_token_in_the_address_does_not_count(still: House) -> None:
    async with still.stranger() as stranger:
        assert (await stranger.get("/api/queue/status", params={"token": TOKEN})).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:3777", "127.0.0.1.evil.example", "", "[::1].x"]
)
@pytest.mark.parametrize("path", ["/api/queue/status", "/api/events/stream", "/healthz", "/login"])
async def test_a_name_that_is_not_ours_is_refused_even_with_the_token(
    still: House, host: str, path: str
) -> None:
    """DNS rebinding: the page's own name leads to this machine, but it is still the page's name."""
    async with still.stranger(**OWNER) as caller:
        answer = await caller.get(path, headers={"host": host})
    assert answer.status_code in (400, 403), answer.text


async def test_two_host_headers_are_refused(still: House) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(still.url.rpartition(":")[2]))
    writer.write(
        b"GET /api/queue/status HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n"
        b"connection: close\r\nauthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
    )
    answer = await reader.read()
    writer.close()
    assert answer.split()[1] in (b"400", b"403")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost:3000"]
)
@pytest.mark.parametrize("path", ["/api/queue/status", "/api/events/stream"])
async def test_a_page_of_another_origin_is_refused(still: House, origin: str, path: str) -> None:
    async with still.stranger(**OWNER) as caller:
        answer = await caller.get(path, headers={"origin": origin})
        post = await caller.post("/api/message", json={"message": "x"}, headers={"origin": origin})
        asked = await caller.options(
            path, headers={"origin": origin, "access-control-request-method": "POST"}
        )
    for each in (answer, post, asked):
        assert each.status_code == 403
        assert "access-control-allow-origin" not in each.headers


async def test_an_image_on_another_page_reaches_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False, api={"auth": "loopback"}) as house, house.stranger() as page:
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
        assert (await page.get("/api/queue/status", headers=headers)).status_code == 403
        assert (await page.get("/api/queue/status")).status_code == 200


async def test_an_admitted_origin_is_answered_exactly_and_nobody_else(tmp_path: Path) -> None:
    origin = "http://127.0.0.1:3000"
    api = {"auth": "loopback", "origins": [origin]}
    async with opened(tmp_path, works=False, api=api) as house, house.stranger() as page:
        asked = await page.options(
            "/api/agents",
            headers={
                "origin": origin,
                "access-control-request-method": "PUT",
                "access-control-request-headers": "content-type",
                "access-control-request-private-network": "true",
            },
        )
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == origin
        assert "PUT" in asked.headers["access-control-allow-methods"]
        assert asked.headers["access-control-allow-headers"] == "content-type"
        assert asked.headers["access-control-allow-private-network"] == "true"
        read = await page.get("/api/queue/status", headers={"origin": origin})
        assert read.status_code == 200
        assert read.headers["access-control-allow-origin"] == origin
        assert "Origin" in read.headers["vary"]
        other = await page.get("/api/queue/status", headers={"origin": "http://127.0.0.1:3001"})
        assert other.status_code == 403


async def test_loopback_mode_serves_local_tools_but_no_proxy(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False, api={"auth": "loopback"}) as house, house.stranger() as tool:
        assert (await tool.get("/api/queue/status")).status_code == 200
        proxied = await tool.get("/api/queue/status", headers={"x-forwarded-for": "203.0.113.9"})
        assert proxied.status_code == 401
        wrong = await tool.get("/api/queue/status", headers={"authorization": "Bearer wrong-wrong-wrong-1"})
        assert wrong.status_code == 401


async def test_guessing_is_slowed_down_but_the_owner_is_not(timeless: House) -> None:
    async with timeless.stranger() as stranger:
        answers = [
            await stranger.get("/api/queue/status", headers={"authorization": f"Bearer guess-{n:020}"})
            for n in range(14)
        ]
    codes = [answer.status_code for answer in answers]
    assert codes[0] == 401
    assert codes[-1] == 429
    assert int(answers[-1].headers["retry-after"]) > 0
    assert (await timeless.http.get("/api/queue/status")).status_code == 200


async def test_each_caller_has_a_measure_and_the_owner_one_only_if_it_is_set(tmp_path: Path) -> None:
    limits = {"requests_per_minute": 5}
    clock = ManualClock(SystemClock().now())
    async with opened(tmp_path, works=False, limits=limits, clock=clock) as house:
        async with house.stranger() as stranger:
            codes = [(await stranger.get("/login")).status_code for _ in range(7)]
            assert codes == [200] * 5 + [429] * 2
            refused = await stranger.get("/api/agents")
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) > 0
            assert "5 requests" in refused.json()["error"]
            assert (await stranger.get("/healthz")).status_code == 200
        tokens = AgentTokens(OwnerToken(TOKEN), house.deps.clock)
        for agent in ("coder", "lead"):
            async with house.stranger(authorization=f"Bearer {tokens.make(agent)}") as caller:
                codes = [(await caller.get("/mcp")).status_code for _ in range(6)]
            assert codes == [405] * 5 + [429]
        for _ in range(12):
            assert (await house.http.get("/api/queue/status")).status_code == 200
        limits["owner_requests_per_minute"] = 3
        assert (await house.http.put("/api/settings", json={"limits": limits})).status_code == 200
        codes = [(await house.http.get("/api/queue/status")).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]


async def test_refusals_are_in_the_ledger_without_what_was_tried(timeless: House) -> None:
    async with timeless.stranger() as stranger:
        await stranger.get("/api/agents", headers={"authorization": "Bearer my-secret-guess-123456"})
        for _ in range(60):
            await stranger.get("/api/agents")
    async with asyncio.timeout(60):
        while not (records := await timeless.room.records("audit", "api.refused")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert records[0].data["code"] == "UNAUTHORIZED"
    assert records[0].data["path"] == "/api/agents"
    assert "my-secret-guess" not in str([record.data for record in records])
    assert len(records) <= 40  # twice the measure, should a minute have just begun


async def test_too_large_a_body_is_refused_whether_it_says_so_or_not(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False, limits={"request_bytes": 10_000}) as house:
        big = {"message": "x" * 20_000}
        assert (await house.http.post("/api/message", json=big)).status_code == 413

        async def stream():
            yield b'{"message": "'
            for _ in range(20):
                yield b"x" * 1000
            yield b'"}'

        told = {"content-type": "application/json"}
        answer = await house.http.post("/api/message", content=stream(), headers=told)
        assert answer.status_code == 413
        counted = await house.http.get("/api/queue/status")
        assert counted.json()["incoming"] == 0


async def test_too_many_headers_are_refused_and_head_is_answered_like_get(still: House) -> None:
    answer = await still.http.get("/api/queue/status", headers={"x-large": "x" * 70_000})
    assert answer.status_code == 431
    asked = await still.http.head("/api/queue/status")
    assert (asked.status_code, asked.content) == (200, b"")


async def test_too_long_a_message_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False, limits={"message_bytes": 1000}) as house:
        answer = await house.http.post("/api/message", json={"message": "é" * 600})
        assert answer.status_code == 413
        assert "1000" in answer.json()["error"]


@pytest.mark.parametrize("path", ["/healthz", "/api/queue/status", "/api/nope"])
async def test_every_answer_is_dressed(still: House, path: str) -> None:
    answer = await still.http.get(path)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


async def test_a_key_opens_the_work_queues_and_nothing_of_the_office(still: House) -> None:
    made = await still.http.post("/v1/api-keys", json={"name": "worker", "permissions": ["view"]})
    assert made.status_code in (200, 201), made.text
    key = made.json()["data"]["secret"]
    async with still.stranger(authorization=f"Bearer {key}") as holder:
        assert (await holder.get("/v1/scopes")).status_code == 200
        for path in ("/api/settings", "/api/agents", "/api/events/stream", "/metrics", "/mcp/", "/"):
            assert (await holder.get(path)).status_code == 403, path
