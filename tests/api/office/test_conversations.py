"""Whoever asks what became of a message learns whether it goes on, waits for a person, or failed."""

from pathlib import Path
from typing import Any

from tests.api.house import House, opened

MAIL = {"message": "@coder begin", "sender": "Ann", "channel": "web"}
PINGPONG: dict[str, Any] = {
    "pace": 0.001,
    "rules": [
        {"agent": "coder", "reply": "[@reviewer: look at part $turn]"},
        {"agent": "reviewer", "reply": "[@coder: change part $turn]"},
    ],
}


async def test_a_conversation_that_a_guard_stopped_says_so_and_is_answered_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path, script=PINGPONG, guards={"hops": 2}) as house:
        await house.http.post("/api/message", json={**MAIL, "messageId": "round"})
        found = await house.until("/api/message/round?channel=web", lambda body: body["paused"])
        assert found["paused"] == "hops"
        assert found["open"] is True
        told = await house.http.post("/api/message", json={**MAIL, "message": "/stop"})
        assert told.json()["queued"] is False
        assert told.json()["notice"].startswith("Stopped.")
        ended = (await house.http.get("/api/message/round?channel=web")).json()
        assert (ended["open"], ended["paused"]) == (False, None)


async def test_while_everybody_pauses_a_conversation_is_paused(house: House) -> None:
    await house.http.post("/api/guards/pause-all")
    await house.http.post("/api/message", json={**MAIL, "messageId": "later"})
    found = await house.until("/api/message/later?channel=web", lambda body: body["paused"])
    assert found["paused"] == "paused"
    await house.http.post("/api/guards/resume-all")
    found = await house.until("/api/message/later?channel=web", lambda body: not body["open"])
    assert found["paused"] is None


async def test_a_reply_that_only_says_why_there_is_none_is_marked(tmp_path: Path) -> None:
    script = {"rules": [{"match": "begin", "fail": "auth"}]}
    team = {"name": "Dev", "agents": ["coder"], "leader_agent": "coder", "replies": "combined"}
    async with opened(tmp_path, script=script, teams={"dev": team}) as house:
        for channel, to in (("web", "@reviewer"), ("api", "@dev")):
            sent = {**MAIL, "message": f"{to} begin", "messageId": "bad", "channel": channel}
            await house.http.post("/api/message", json=sent)
            found = await house.until(f"/api/message/bad?channel={channel}", lambda body: body["replies"])
            assert [reply["failed"] for reply in found["replies"]] == [True]
        await house.http.post("/api/message", json={**MAIL, "message": "@lead hello", "messageId": "good"})
        found = await house.until("/api/message/good?channel=web", lambda body: body["replies"])
        assert "failed" not in found["replies"][0]


async def test_an_id_of_a_client_may_hold_a_slash(house: House) -> None:
    await house.http.post("/api/message", json={**MAIL, "messageId": "chat/17"})
    found = await house.until("/api/message/chat%2F17?channel=web", lambda body: body["replies"])
    assert found["messageId"] == "chat/17"


async def test_what_was_answered_together_with_an_earlier_message_has_its_answer(house: House) -> None:
    await house.http.post("/api/guards/pause-all")
    for name, sender in (("first", "Ann"), ("second", "Ann"), ("other", "Bob")):
        sent = {**MAIL, "message": f"@coder {name}", "messageId": name, "sender": sender}
        await house.http.post("/api/message", json=sent)
        await house.until(f"/api/message/{name}?channel=web", lambda body: body["paused"])
    await house.http.post("/api/guards/resume-all")
    told = {
        name: await house.until(f"/api/message/{name}?channel=web", lambda body: not body["open"])
        for name in ("first", "second", "other")
    }
    answers = {name: {reply["id"] for reply in body["replies"]} for name, body in told.items()}
    assert answers["first"] == answers["second"] != set()
    assert answers["other"].isdisjoint(answers["first"])
