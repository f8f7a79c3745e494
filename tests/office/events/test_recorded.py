"""Clients are told what the original told them: recorded there, compared by name, order and shape."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.office import Staffed, staffed

from postroom.office.events import NEW, OLD, ContractEvent, RoomLookup, contract_events
from postroom.providers.script_rules import ScriptRule

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> list[dict[str, Any]]:
    return json.loads((RECORDED / f"{name}.json").read_text("utf-8"))


async def told(desk: Staffed, after: int = 0) -> list[ContractEvent]:
    lookup = RoomLookup(desk.room, lambda: desk.office.directory)
    found: list[ContractEvent] = []
    async for event in desk.room.events(after):
        found += await contract_events(event, lookup)
    return found


def shape(data: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, type(value).__name__) for name, value in data.items()]


def lines(events: list[tuple[str, dict[str, Any]]]) -> dict[str, list[tuple[str, Any]]]:
    """Names and shapes by the agent they are about: two at work at once may be told in any order."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for name, data in events:
        agent = data.get("agentId") or data.get("fromAgent") or data.get("agent") or ""
        found.setdefault(agent, []).append((name, shape(data)))
    return found


async def both(tmp_path: Path, name: str, text: str, *rules: ScriptRule, replies: int) -> list[ContractEvent]:
    wanted = [(each["event"], each["data"]) for each in recorded(name)]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write(text, platform_id="m_1", sender="Ann")
        await desk.replies(replies)
        await desk.quiet()
        events = await told(desk)
    mine = [(event.name, event.data) for event in events if event.name in NEW]
    assert lines(mine) == lines(wanted)
    return events


async def test_one_message(tmp_path: Path) -> None:
    rule = ScriptRule(agent="coder", reply="Hello from coder. You said: $prompt")
    events = await both(tmp_path, "sse_single_message", "@coder hello there", rule, replies=1)
    by_name = {event.name: event.data for event in events}
    assert by_name["message:incoming"]["message"] == "@coder hello there"
    assert by_name["message:incoming"]["messageId"] == "m_1"
    assert by_name["agent:response"]["content"] == "Hello from coder. You said: hello there"
    assert by_name["message:done"]["responseText"] == "Hello from coder. You said: hello there\n\n- [coder]"
    assert by_name["message:done"]["responseLength"] == len(by_name["message:done"]["responseText"])
    assert {
        event.data["messageId"] for event in events if event.name in NEW and "messageId" in event.data
    } == {"m_1"}


async def test_a_team_that_hands_on(tmp_path: Path) -> None:
    rules = (
        ScriptRule(
            agent="lead",
            reply="I will delegate. [@coder: please fix arr[0] in main.py] [@reviewer: review it]",
        ),
        ScriptRule(agent="coder", reply="coder: done with the delegated part."),
        ScriptRule(agent="reviewer", reply="reviewer: done with the delegated part."),
    )
    events = await both(tmp_path, "sse_team_handoff", "@dev HANDOFF the bug", *rules, replies=3)
    names = [event.name for event in events if event.name in NEW]
    assert names[:7] == [each["event"] for each in recorded("sse_team_handoff")][:7], "the order of one line"
    mentions = [event.data for event in events if event.name == "agent:mention"]
    assert [(each["teamId"], each["fromAgent"], each["toAgent"]) for each in mentions] == [
        ("dev", "lead", "coder"),
        ("dev", "lead", "reviewer"),
    ]
    team = {
        event.data["agentId"]: event.data["isTeamMessage"]
        for event in events
        if event.name == "agent:response"
    }
    assert team == {"lead": True, "coder": True, "reviewer": True}


OLD_FIELDS = {
    "processor_start": ["agents", "teams"],
    "message_enqueued": ["messageId", "agent", "channel", "sender", "message"],
    "message_received": ["channel", "sender", "message", "messageId"],
    "agent_routed": ["agentId", "agentName", "provider", "model", "isTeamRouted"],
    "chain_step_start": ["agentId", "agentName", "fromAgent"],
    "chain_step_done": ["agentId", "agentName", "responseLength", "responseText"],
    "chain_handoff": ["teamId", "fromAgent", "toAgent"],
    "team_chain_start": ["teamId", "teamName", "agents", "leader"],
    "team_chain_end": ["teamId", "totalSteps", "agents"],
    "response_ready": ["channel", "sender", "agentId", "responseLength", "responseText", "messageId"],
    "agent_message": [
        "agentId",
        "agentName",
        "role",
        "channel",
        "sender",
        "messageId",
        "content",
        "isTeamMessage",
    ],
    "agent_progress": ["agentId", "agentName", "text", "messageId"],
}


async def test_earlier_clients_are_told_all_their_names(tmp_path: Path) -> None:
    rules = (
        ScriptRule(agent="lead", reply="I ask. [@coder: fix it]"),
        ScriptRule(agent="coder", reply="Fixed."),
    )
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@dev the bug", platform_id="m_1")
        await desk.replies(2)
        await desk.quiet()
        events = [event for event in await told(desk) if event.name in OLD]
    assert {event.name: list(event.data)[2:] for event in events} == OLD_FIELDS
    names = [event.name for event in events]
    assert names[0] == "processor_start" or names[1] == "processor_start"
    assert [name for name in names if name != "processor_start"] == [
        "message_enqueued",
        "message_received",
        "agent_routed",
        "team_chain_start",
        "chain_step_start",
        "agent_progress",
        "response_ready",
        "agent_message",
        "chain_step_done",
        "chain_handoff",
        "chain_step_start",
        "agent_progress",
        "response_ready",
        "agent_message",
        "chain_step_done",
        "team_chain_end",
    ]
    by_name = {event.name: event.data for event in events}
    assert by_name["processor_start"]["teams"] == ["dev"]
    assert by_name["agent_routed"]["provider"] == "script"
    assert by_name["agent_routed"]["isTeamRouted"] is True
    assert by_name["team_chain_start"]["leader"] == "lead"
    assert (by_name["team_chain_end"]["totalSteps"], by_name["team_chain_end"]["agents"]) == (
        2,
        ["lead", "coder"],
    )


@pytest.mark.parametrize("name", ["sse_single_message", "sse_team_handoff"])
def test_what_was_recorded_uses_known_names_only(name: str) -> None:
    assert {each["event"] for each in recorded(name)} <= NEW
