"""Real agent programs, started by the house, find its tools by themselves and have exactly their own rights.

Opt-in, never online; the model is a server on loopback that asks for one tool after another:

    npm install --prefix /tmp/clis @anthropic-ai/claude-code @openai/codex opencode-ai
    POSTROOM_REAL_PROGRAMS=/tmp/clis/node_modules/.bin unshare -n sh -c 'ip link set lo up; exec pytest …'
"""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.app.home import Home
from postroom.app.redaction import Redactor
from postroom.app.roles import ALL
from postroom.app.server_process import ProcessPlan, opened
from postroom.settings import with_environment
from tests.api.mcp.tool_model import DONE, Call, tool_model

FOLDER = os.environ.get("POSTROOM_REAL_PROGRAMS", "")
PROGRAMS = ("claude", "codex", "opencode")


def _online() -> bool:
    with open("/proc/net/route") as routes:
        return len(routes.readlines()) > 1


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="POSTROOM_REAL_PROGRAMS is not set"),
    pytest.mark.skipif(bool(FOLDER) and _online(), reason="only without a network (unshare -n)"),
]


def calls_of(agent: str) -> list[Call]:
    return [
        ("list_agents", {}),
        ("send_message", {"to": "helper", "text": f"{agent} asks the helper"}),
        ("send_message", {"to": "stranger", "text": "psst"}),
        ("publish", {"queue": f"jobs-{agent}", "body": {"by": agent}}),
        ("claim", {"queue": f"jobs-{agent}"}),
        ("publish", {"queue": "office/inbox/helper", "body": {"text": "forged"}}),
        ("ask_human", {"question": f"May {agent} ship it?", "options": ["yes", "no"]}),
        ("tasks", {"action": "add", "fields": {"title": f"by {agent}"}}),
        ("search_history", {"query": "MARK"}),
        ("read_inbox", {}),
    ]


def document(folder: Path, url: str) -> dict[str, Any]:
    def custom(harness: str, base: str) -> dict[str, Any]:
        return {
            "name": harness,
            "harness": harness,
            "base_url": base,
            "api_key": "fake-key-0123",
            "model": "m",
        }

    agents: dict[str, dict[str, Any]] = {
        "claude": {"name": "Claude", "provider": "custom:anthro", "model": "claude-sonnet-4-6"},
        "codex": {"name": "Codex", "provider": "custom:respo", "model": "fake-model"},
        "opencode": {"name": "OpenCode", "provider": "opencode", "model": "loc/m1"},
        "helper": {"name": "Helper", "provider": "script", "model": ""},
        "stranger": {"name": "Stranger", "provider": "script", "model": ""},
    }
    for program in PROGRAMS:
        agents[program]["queues"] = [f"jobs-{program}"]
    return {
        "workspace": {"path": str(folder / "work")},
        "agents": agents,
        "teams": {"dev": {"name": "Dev", "agents": [*PROGRAMS, "helper"], "leader_agent": "helper"}},
        "custom_providers": {
            "anthro": custom("claude", f"{url}/anthropic"),
            "respo": custom("codex", f"{url}/v1"),
        },
        "monitoring": {"heartbeat_interval": 0},
        "api": {"port": 0},
    }


def own_server(home: Path, url: str) -> None:
    """OpenCode knows servers of one's own from its own settings."""
    vendor = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "L",
        "options": {"baseURL": f"{url}/v1", "apiKey": "fake"},
        "models": {"m1": {"name": "M1"}},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps({"provider": {"loc": vendor}}))


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_real_program_works_with_the_tools_of_its_house(program: str, tmp_path: Path) -> None:
    if not shutil.which(program, path=FOLDER):
        pytest.skip(f"{program} is not in {FOLDER}")
    user = tmp_path / "user"
    user.mkdir()
    environment = {
        "PATH": f"{FOLDER}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(user),
        "LANG": "C.UTF-8",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "POSTROOM_HOME": str(tmp_path / "home"),
    }
    async with tool_model({f"MARK-{program}": calls_of(program)}) as model:
        own_server(user, model.url)
        home = Home(tmp_path / "home")
        home.make()
        home.settings.replace(document(tmp_path, model.url))
        (home.path / "script.json").write_text(json.dumps({"pace": 0.01}))
        plan = ProcessPlan(home=home, roles=ALL, environment=environment, grace_s=2)
        settings = with_environment(home.settings.load(), environment)
        async with opened(plan, settings, Redactor(), lambda: None) as running:
            assert running.url
            owner = {"authorization": f"Bearer {home.token.read_text().strip()}"}
            async with httpx2.AsyncClient(base_url=running.url, headers=owner, timeout=20) as http:
                queue = {"slug": f"jobs-{program}"}
                made = await http.post("/v1/scopes/default/queues", json=queue)
                assert made.status_code == 201, made.text
                sent = {"message": f"MARK-{program} try your tools", "agent": program, "channel": "web"}
                assert (await http.post("/api/message", json=sent)).status_code == 200
                said = await _answer(http, program)
                assert said.startswith(DONE), said
                await _check(http, program, model.results[f"MARK-{program}"], home)
    assert {"send_message", "list_agents", "ask_human"} <= model.tools[f"MARK-{program}"]


async def _answer(http: httpx2.AsyncClient, agent: str) -> str:
    async with asyncio.timeout(150):
        while True:
            for response in (await http.get("/api/responses")).json():
                if response["agent"] == agent:
                    return response["message"]
            await asyncio.sleep(0.2)


async def _check(http: httpx2.AsyncClient, program: str, results: list[str], home: Home) -> None:
    """What each tool told the model, and what it left behind."""
    told = dict(
        zip([f"{number} {tool}" for number, (tool, _) in enumerate(calls_of(program))], results, strict=True)
    )
    assert "helper" in told["0 list_agents"]
    assert "messageId" in told["1 send_message"]
    assert "members of its teams only" in told["2 send_message"]
    assert "claim_token" in told["4 claim"]
    assert f"@{program} may work with queues" in told["5 publish"]
    assert "id" in told["6 ask_human"]
    assert f"by {program}" in told["7 tasks"]
    assert f"MARK-{program}" in told["8 search_history"]
    assert "helper" in told["9 read_inbox"]
    jobs = (await http.get(f"/v1/scopes/default/queues/jobs-{program}/messages")).json()["data"]
    assert [(job["body"], job["source_id"]) for job in jobs] == [({"by": program}, program)]
    assert [task["title"] for task in (await http.get("/api/tasks")).json()] == [f"by {program}"]
    token = json.loads((home.run / "tools" / f"{program}.json").read_text())
    bearer = token["mcpServers"]["postroom"]["headers"]
    for path in ("/api/settings", "/v1/scopes", "/api/agents"):
        assert (await http.get(path, headers=bearer)).status_code == 403, path
