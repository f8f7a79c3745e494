"""Mail over HTTP: accepted is durable, repeats are told, and answers come back."""

from tests.api.house import House


async def test_a_message_is_answered_by_its_agent(house: House) -> None:
    sent = await house.http.post(
        "/api/message", json={"message": "@coder hello", "sender": "Ann", "channel": "web"}
    )
    assert sent.status_code == 200, sent.text
    assert sent.json()["ok"] is True
    assert sent.json()["messageId"].startswith("api_")
    [reply] = await house.until("/api/responses", lambda found: len(found) == 1)
    assert reply["agent"] == "coder"
    assert reply["messageId"] == sent.json()["messageId"]
    assert reply["channel"] == "web"
    assert isinstance(reply["id"], int)
