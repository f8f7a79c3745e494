"""The office as tools: an agent's own token opens its tools, in its own name, and nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.api.auth.agent_tokens import AgentTokens
from postroom.api.auth.owner_token import OwnerToken
from postroom.kernel.model import Message
from postroom.office import queues
from tests.api.house import AGENTS, TOKEN, House, opened

HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


async def call(house: House, token: str, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Whether it went well, and what was said."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    async with house.stranger(authorization=f"Bearer {token}", **HEADERS) as http:
        answer = await http.post("/mcp", json=body)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return not result.get("isError", False), result["content"][0]["text"]


def token_of(house: House, agent: str, message: Message | None = None) -> str:
    tokens = AgentTokens(OwnerToken(TOKEN), house.deps.clock)
    return tokens.make(agent, message.id if message else "")


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[House]:
    """Whoever is told to hang is in the middle of a turn. @alone is in no team."""
    agents: dict[str, dict[str, Any]] = {
        name: {"name": name.title(), "provider": "script", "model": ""} for name in (*AGENTS, "alone")
    }
    agents["coder"]["queues"] = ["jobs"]
    script = {"rules": [{"match": "HANG", "hang": True}], "pace": 0.01}
    async with opened(tmp_path, script=script, agents=agents) as house:
        yield house


async def at_work(house: House, agent: str) -> Message:
    """The message that a turn of the agent is about, which does not end by itself."""
    sent = {"message": "HANG", "agent": agent, "channel": "web", "sender": "Ann"}
    assert (await house.http.post("/api/message", json=sent)).status_code == 200
    async with asyncio.timeout(60):
        while True:
            found = await house.room.numbered(queue=queues.inbox(agent), state="claimed")
            if found:
                return found[0][1]
            await asyncio.sleep(0.01)


async def tools_for(house: House, token: str) -> set[str]:
    async with house.stranger(authorization=f"Bearer {token}", **HEADERS) as http:
        listed = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert listed.status_code == 200, listed.text
    return {tool["name"] for tool in listed.json()["result"]["tools"]}


ALL = {
    "send_message",
    "read_inbox",
    "publish",
    "claim",
    "complete",
    "fail",
    "ask_human",
    "read_answer",
    "list_agents",
    "search_history",
    "tasks",
}


async def test_row_61_mcp_tools_are_listed_and_work_in_the_agents_name(busy: House) -> None:
    token = token_of(busy, "coder", turn := await at_work(busy, "coder"))
    assert await tools_for(busy, token) == ALL

    await busy.room.create_queue("jobs")
    fine, said = await call(busy, token, "publish", queue="jobs", body={"n": 1})
    assert fine, said
    fine, said = await call(busy, token, "claim", queue="jobs")
    [job] = json.loads(said)
    assert job["body"] == {"n": 1}
    assert (await call(busy, token, "complete", id=job["id"], claim_token="stale"))[0] is False
    assert (await call(busy, token, "complete", id=job["id"], claim_token=job["claim_token"]))[0] is True
    message = await busy.room.get(job["id"])
    assert (message.state, message.source_id) == ("completed", "coder")

    fine, said = await call(busy, token, "ask_human", question="ship it?", options=["yes", "no"])
    assert fine, said
    question = json.loads(said)["id"]
    fine, answer = await call(busy, token, "read_answer", id=question)
    assert json.loads(answer)["open"] is True
    assert (await busy.room.get(question)).correlation_id == turn.correlation_id
    assert (await call(busy, token_of(busy, "lead"), "read_answer", id=question))[0] is False
    fine, said = await call(busy, token, "tasks", action="add", fields={"title": "write it"})
    assert json.loads(said)["title"] == "write it"


async def test_an_agent_answers_no_question_neither_its_own_nor_the_owners(busy: House) -> None:
    token = token_of(busy, "coder", await at_work(busy, "coder"))
    fine, said = await call(busy, token, "ask_human", question="ship it?", options=["yes", "no"])
    own = json.loads(said)["id"]
    owners = json.loads((await call(busy, TOKEN, "ask_human", question="and this?"))[1])["id"]
    fine, said = await call(busy, token, "claim", queue="default/reviews", limit=5)
    assert (fine, "not given" in said) == (False, True)
    held = await busy.room.claim("reviews", limit=5)
    assert {each.id for each in held} == {own, owners}
    for each in held:
        fine, said = await call(
            busy, token, "complete", id=each.id, claim_token=each.claim_token, result={"decision": "yes"}
        )
        assert (fine, "not given" in said) == (False, True)
        given = {"id": each.id, "claim_token": each.claim_token}
        # The owner's `complete` is an answer, with all its rules.
        fine, said = await call(busy, TOKEN, "complete", **given, result={"foo": 1})
        assert (fine, "nobody asked for" in said) == (False, True)
        assert (await busy.room.get(each.id)).state == "claimed"
        assert (await call(busy, TOKEN, "complete", **given, result={"decision": "no"}))[0]
    assert json.loads((await call(busy, token, "read_answer", id=own))[1])["answer"] == {"decision": "no"}


async def test_an_agent_writes_to_another_and_reads_only_its_own_answers(busy: House) -> None:
    token = token_of(busy, "coder", turn := await at_work(busy, "coder"))
    other = token_of(busy, "reviewer")
    fine, said = await call(busy, token, "send_message", to="lead", text="may I?")
    assert fine, said
    note = await busy.room.get(json.loads(said)["messageId"])
    # A part of the conversation: it counts against its guards, and the person's chat is where they ask.
    assert (note.correlation_id, note.causation_id, note.hop) == (turn.correlation_id, turn.id, 1)
    assert (note.from_agent, note.channel, note.sender) == ("coder", "web", "Ann")
    async with asyncio.timeout(60):
        while True:
            [answer] = json.loads((await call(busy, token, "read_inbox"))[1])
            if not answer["waiting"]:
                break
            await asyncio.sleep(0.02)
    assert answer["from"] == "lead"
    assert "may I?" in answer["text"]
    assert json.loads((await call(busy, other, "read_inbox"))[1]) == []


async def test_an_agent_writes_during_its_turn_to_its_teammates_only(busy: House) -> None:
    turn = await at_work(busy, "coder")
    token = token_of(busy, "coder", turn)
    for to in ("alone", "coder", "nobody", ""):
        fine, said = await call(busy, token, "send_message", to=to, text="psst")
        assert not fine, to
    assert "teams" in (await call(busy, token, "send_message", to="alone", text="psst"))[1]
    assert not (await call(busy, token, "send_message", to="lead", text="  "))[0]
    # What only a person may decide is no answer when an agent says it.
    fine, said = await call(busy, token, "send_message", to="lead", text="/continue")
    assert fine, said
    assert (await busy.room.get(json.loads(said)["messageId"])).from_agent == "coder"

    await busy.deps.control.office.cancel(turn.id)
    async with busy.stranger(authorization=f"Bearer {token}", **HEADERS) as http:
        refused = await http.post("/mcp", json={})
    assert refused.status_code == 401, "the token ends with the turn"
    assert "ended" in refused.text
    assert not (await call(busy, token_of(busy, "coder"), "send_message", to="lead", text="x"))[0]


async def test_the_owner_writes_as_a_person_and_reads_each_answer_once(house: House) -> None:
    fine, said = await call(house, TOKEN, "send_message", to="@lead", text="may I?")
    assert fine, said
    await house.until("/api/responses/pending?channel=mcp", lambda found: len(found) == 1)
    [answer] = json.loads((await call(house, TOKEN, "read_inbox"))[1])
    assert answer["from"] == "lead"
    assert json.loads((await call(house, TOKEN, "read_inbox"))[1]) == []


async def test_an_agents_token_opens_nothing_else(still: House) -> None:
    token = token_of(still, "coder")
    async with still.stranger(authorization=f"Bearer {token}") as http:
        for path in ("/api/settings", "/api/agents", "/api/queue/status", "/v1/scopes", "/metrics", "/"):
            assert (await http.get(path)).status_code == 403, path
    for tool, given in (("publish", {"body": {"text": "forged"}}), ("claim", {})):
        fine, said = await call(still, token, tool, queue="office/inbox/lead", **given)
        assert not fine
        assert "coder" in said


async def key(house: House, *permissions: str, scope: str = "") -> str:
    path = f"/v1/scopes/{scope}/api-keys" if scope else "/v1/api-keys"
    made = await house.http.post(path, json={"name": "worker", "permissions": list(permissions)})
    assert made.status_code == 201, made.text
    return made.json()["data"]["secret"]


async def test_a_key_has_the_work_queues_as_tools_as_far_as_its_permissions_go(still: House) -> None:
    await still.room.create_queue("jobs", backoff_base_s=600)
    writer, worker, viewer = (
        await key(still, "publish"),
        await key(still, "consume"),
        await key(still, "view"),
    )
    assert await tools_for(still, writer) == {"publish"}
    assert await tools_for(still, worker) == {"claim", "complete", "fail"}
    assert await tools_for(still, viewer) == set()

    for number in range(2):
        fine, said = await call(still, writer, "publish", queue="jobs", body={"n": number})
        assert fine, said
    for tool, given in (("claim", {"queue": "jobs"}), ("complete", {"id": "x", "claim_token": "y"})):
        fine, said = await call(still, writer, tool, **given)
        assert not fine, tool
    assert "consume" in (await call(still, writer, "claim", queue="jobs"))[1]

    jobs = json.loads((await call(still, worker, "claim", queue="default/jobs", limit=2))[1])
    assert [job["body"] for job in jobs] == [{"n": 0}, {"n": 1}]
    one, two = jobs
    assert not (await call(still, worker, "complete", id=one["id"], claim_token="stale"))[0]
    assert (await call(still, worker, "complete", id=one["id"], claim_token=one["claim_token"]))[0]
    fine, said = await call(
        still, worker, "fail", id=two["id"], claim_token=two["claim_token"], reason="no paper"
    )
    assert fine, said
    assert (await still.room.get(one["id"])).state == "completed"
    failed = await still.room.get(two["id"])
    assert (failed.state, failed.failure_reason) == ("delayed", "no paper")
    assert "consume" not in (await call(still, worker, "publish", queue="jobs", body=1))[1]
    assert "publish" in (await call(still, worker, "publish", queue="jobs", body=1))[1]


async def test_a_key_opens_no_tool_of_the_office_and_no_place_that_is_not_for_it(still: House) -> None:
    await still.room.create_scope("shop")
    await still.room.create_queue("shop/orders")
    await still.room.create_queue("jobs")
    secret = await key(still, "view", "publish", "consume", "manage", scope="shop")
    for tool in sorted(ALL - {"publish", "claim", "complete", "fail"}):
        given: dict[str, Any] = {
            "send_message": {"to": "lead", "text": "x"},
            "ask_human": {"question": "x"},
            "read_answer": {"id": "x"},
            "search_history": {"query": "x"},
            "tasks": {"action": "list"},
        }.get(tool, {})
        fine, said = await call(still, secret, tool, **given)
        assert not fine, tool
        assert "work queues only" in said, tool
    assert (await call(still, secret, "publish", queue="shop/orders", body=1))[0]
    for queue in ("jobs", "office/inbox/lead", "nowhere/at-all", "shop/../default/jobs", ""):
        fine, said = await call(still, secret, "publish", queue=queue, body=1)
        assert not fine, queue
    foreign = await still.room.publish("jobs", {"n": 1})
    [taken] = await still.room.claim("jobs")
    fine, said = await call(still, secret, "complete", id=foreign.id, claim_token=taken.claim_token)
    assert not fine
    assert (await still.room.get(foreign.id)).state == "claimed"

    keys = (await still.http.get("/v1/api-keys")).json()["data"]
    assert (await still.http.delete(f"/v1/api-keys/{keys[0]['id']}")).status_code < 300
    async with still.stranger(authorization=f"Bearer {secret}", **HEADERS) as http:
        again = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert again.status_code == 401


async def test_tools_need_a_token_that_holds(still: House) -> None:
    good = token_of(still, "coder")
    name, agent, turn, end, signature = good.split(".")
    forged = [
        f"{name}.lead.{turn}.{end}.{signature}",
        f"{name}.{agent}.other.{end}.{signature}",
        f"{name}.{agent}.{turn}.{int(end) + 9}.{signature}",
        "x.y.z.w",
        "pra",
    ]
    async with still.stranger(**HEADERS) as http:
        for token in ["", *forged]:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            answer = await http.post(
                "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers
            )
            assert answer.status_code == 401, token


async def test_a_name_that_is_added_while_the_house_is_open_leads_to_the_tools_too(still: House) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    asked = {**HEADERS, "host": "office.example:3777", "origin": "https://page.example"}
    assert (await still.http.post("/mcp", json=body, headers=HEADERS)).status_code == 200
    assert (await still.http.post("/mcp", json=body, headers=asked)).status_code == 403
    api = {"hosts": ["office.example"], "origins": ["https://page.example"]}
    assert (await still.http.put("/api/settings", json={"api": api})).status_code == 200
    answer = await still.http.post("/mcp", json=body, headers=asked)
    assert answer.status_code == 200, answer.text
