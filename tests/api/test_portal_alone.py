"""A process with the portal alone serves people, and has nothing for programs."""

from pathlib import Path

import httpx2

from postroom.app.application import portal_application
from tests.api.house import TOKEN, opened, served


async def test_people_log_in_and_look_and_programs_find_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, served(portal_application(house.deps)) as url:
        owner = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(base_url=url, headers=owner, timeout=60) as http:
            assert (await http.get("/healthz")).status_code == 200
            link = (await http.post("/api/login-link")).json()["url"]
            message = {"message": "hello", "agent": "coder"}
            for method, path in (
                ("GET", "/api/agents"), ("POST", "/api/message"), ("GET", "/api/events/stream"),
                ("GET", "/v1/scopes"), ("POST", "/mcp"), ("POST", "/hooks/telegram"),
            ):  # fmt: skip
                answer = await http.request(method, path, json=message if method == "POST" else None)
                assert answer.status_code == 404, path
        async with httpx2.AsyncClient(base_url=url, follow_redirects=True, timeout=60) as browser:
            assert "Needs you" in (await browser.get(link)).text
            assert "@coder" in (await browser.get("/chat?with=coder")).text
        waiting = await house.http.get("/api/queue/status")
        assert waiting.json()["incoming"] == 0
