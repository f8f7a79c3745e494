"""The events of a message and of a hand-off, as the recorded ones of the original, over real HTTP."""

import json
from pathlib import Path

from tests.api.house import House, opened
from tests.api.stream_client import Listener, listening

RECORDED = Path(__file__).parent / "golden"
NEW = {"message:incoming", "message:done"} | {
    f"agent:{what}" for what in ("invoke", "progress", "response", "mention")
}


async def until_quiet(listener: Listener, house: House, answers: int) -> list[tuple[str, dict]]:
    found: list[tuple[str, dict]] = []
    while [name for name, _ in found].count("agent:response") < answers or found[-1][0] not in NEW:
        found.append(await listener.next())
    return found


async def test_one_message_is_told_as_the_original_told_it(house: House) -> None:
    recorded = json.loads((RECORDED / "sse_single_message.json").read_text())
    body = {
        "message": "@coder hello there",
        "sender": "Ann",
        "senderId": "u1",
        "channel": "web",
        "messageId": "m_single_1",
    }
    async with listening(house.http) as listener:
        assert (await house.http.post("/api/message", json=body)).status_code == 200
        found = await until_quiet(listener, house, 1)
    told = dict(found)
    for sample in recorded:
        ours = told[sample["event"]]
        missing = set(sample["data"]) - set(ours)
        assert not missing, f"{sample['event']} lacks {missing}"
        assert ours["type"] == sample["event"]
        for field in ("messageId", "agent", "agentId", "agentName", "channel", "sender", "fromAgent"):
            if field in sample["data"]:
                assert ours[field] == sample["data"][field], sample["event"]
    assert told["message:incoming"]["message"] == "@coder hello there"
    assert {"message_enqueued", "chain_step_start", "response_ready"} <= set(told)


async def test_filters_and_resuming_over_http_lose_nothing(house: House) -> None:
    async with listening(house.http) as listener:
        start = listener.last_id
        for number in range(3):
            sent = {"message": f"@coder {number}", "channel": "web", "sender": f"s{number}"}
            assert (await house.http.post("/api/message", json=sent)).status_code == 200
        whole = await until_quiet(listener, house, 3)
        end = listener.last_id
    async with listening(house.http, headers={"last-event-id": start}) as listener:
        again = await listener.take(len(whole))
    assert again == whole
    async with listening(house.http, params={"since": start, "type": "message:incoming"}) as listener:
        only = await listener.take(3)
    assert [name for name, _ in only] == ["message:incoming"] * 3
    async with listening(house.http, params={"since": end, "agent": "lead"}) as listener:
        await house.http.post("/api/message", json={"message": "@coder no", "channel": "web"})
        await house.http.post("/api/message", json={"message": "@lead yes", "channel": "web"})
        _, data = await listener.next()
    assert data["agent"] == "lead"


async def test_a_hand_off_is_told_to_the_team(tmp_path: Path) -> None:
    rules = [
        {"agent": "lead", "reply": "I delegate.", "hand_off": {"coder": "fix it", "reviewer": "review it"}},
    ]
    async with (
        opened(tmp_path, script={"rules": rules, "pace": 0.01}) as house,
        listening(house.http) as listener,
    ):
        await house.http.post(
            "/api/message", json={"message": "@dev the bug", "channel": "web", "sender": "Ann"}
        )
        found = await until_quiet(listener, house, 3)
    mentions = [data for name, data in found if name == "agent:mention"]
    assert {(data["fromAgent"], data["toAgent"], data["teamId"]) for data in mentions} == {
        ("lead", "coder", "dev"),
        ("lead", "reviewer", "dev"),
    }
    invoked = [data for name, data in found if name == "agent:invoke"]
    assert {data["agentId"] for data in invoked} == {"lead", "coder", "reviewer"}
