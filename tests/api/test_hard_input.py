"""Input that is JSON and still hard to hold: half characters, folders that cannot be, endless bodies."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import TOKEN, House
from tests.api.mcp.test_tools import HEADERS

JSON = {"content-type": "application/json"}
HALF = "\\ud800"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/api/settings", '{"notes": "%s"}', 200),
        ("PUT", "/api/settings", '{"agents": {"%s": 1}}', 422),
        ("POST", "/api/tasks", '{"title": "x", "assignee": "%s"}', 422),
        ("POST", "/v1/scopes/default/queues", '{"slug": "q", "ordering": "%s"}', 422),
        ("POST", "/v1/scopes/default/routing-rules", '{"name": "r", "action": {"type": "%s"}}', 422),
        (
            "POST",
            "/v1/scopes/default/routing-rules",
            '{"name": "r", "action": {"type": "transform", "body": {"%s": 1}}}',
            422,
        ),
        ("POST", "/v1/scopes/default/gdpr-jobs", '{"subject": {"field": "%s", "value": 1}}', 422),
    ],
)
async def test_half_a_character_is_kept_or_refused_and_never_a_fault(
    still: House, method: str, path: str, body: str, status: int
) -> None:
    answer = await still.http.request(method, path, content=body % HALF, headers=JSON)
    assert answer.status_code == status, answer.text
    # Whatever became of it, the settings can still be read.
    assert (await still.http.get("/api/settings")).json()["teams"]["dev"]["leader_agent"] == "lead"


async def test_a_file_whose_name_is_no_text_is_shown_nevertheless(still: House, tmp_path: Path) -> None:
    skills = tmp_path / "work" / "coder" / ".agents" / "skills"
    (skills / "good").mkdir(parents=True)
    os.mkdir(os.fsencode(skills) + b"/b\xff")
    shown = (await still.http.get("/api/agents/coder/skills")).json()
    assert [skill["id"] for skill in shown] == ["b\ufffd", "good"]


@pytest.mark.parametrize("folder", ["/dev/null/x", "x" * 3000, "/x\0y"])
async def test_a_workspace_that_cannot_be_is_refused_and_changes_nothing(still: House, folder: str) -> None:
    before = still.settings.document()
    answer = await still.http.post("/api/setup", json={"agents": {}, "workspace": {"path": folder}})
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == "workspace.path"
    assert still.settings.document() == before


async def test_names_that_are_too_long_for_the_disk_are_refused(still: House) -> None:
    agent = {"name": "x", "provider": "script", "model": "m", "working_directory": "x" * 3000}
    answer = await still.http.put("/api/agents/long", json=agent)
    assert answer.status_code == 422, answer.text
    assert "too long" in answer.json()["error"]
    answer = await still.http.post("/api/import", json={"kind": "tinyagi", "folder": "x" * 3000})
    assert answer.status_code == 422, answer.text


async def parts(size: int) -> AsyncIterator[bytes]:
    """Without a length, as one who does not know it yet sends it."""
    yield b"x" * (size // 2)
    yield b"x" * (size // 2)


@pytest.mark.parametrize("path", ["/mcp", "/login", "/api/message", "/v1/scopes"])
async def test_a_body_that_grows_too_large_is_told_so_everywhere(still: House, path: str) -> None:
    size = 2 * still.deps.control.settings.limits.request_bytes
    answer = await still.http.post(path, content=parts(size), headers={**HEADERS, **JSON})
    assert answer.status_code == 413, answer.text
    said: Any = answer.json()["error"]
    assert "limits.request_bytes" in (said["message"] if path.startswith("/v1") else said)


async def test_a_fault_is_told_and_the_connection_stays(
    still: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(type(still.deps.room), "scope_counts", broken)
    addresses: set[Any] = set()
    async with still.stranger(authorization=f"Bearer {TOKEN}") as http:
        for _ in range(3):
            answer = await http.get("/api/queue/status")
            assert (answer.status_code, answer.json()["code"]) == (500, "UNEXPECTED")
            addresses.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
    assert len(addresses) == 1
    assert [record.name for record in caplog.records if record.exc_info] == ["postroom.api"] * 3
