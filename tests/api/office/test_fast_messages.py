"""The express counter answers as the ordinary way does, and leaves to it whatever is not in order."""

import json
from typing import Any

import pytest

from postroom.api.office import fast_messages, messages
from postroom.errors import StoreFull
from tests.api.house import House

JSON = {"content-type": "application/json"}
REQUESTS = [
    {"message": "@coder hello", "channel": "web", "sender": "Ann", "senderId": "7"},
    {"message": "hello", "unknown": [1, None]},
    {"message": "é😀", "agent": "lead"},
    {"message": "again", "messageId": "m1"},
    {"message": "again", "messageId": "m1"},
    {"message": "x", "sender": 5},
    {"message": ""},
    {"message": "   "},
    {"message": "x", "channel": "../etc"},
    {"message": "\0"},
    {"message": "x" * 300_000},
    {},
    [],
    None,
    "text",
]


def shown(answer: Any) -> tuple[int, dict[str, Any]]:
    """Without what is made by chance."""
    body = answer.json()
    if str(body.get("messageId", "")).startswith("api_"):
        body["messageId"] = "api_"
    return answer.status_code, body


async def test_both_ways_answer_alike(still: House, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []

    def noting(body: bytes) -> Any:
        found = messages.read(body)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(fast_messages, "read", noting)
    for number, request in enumerate(REQUESTS):
        quick = json.dumps(request).replace("m1", "quick")
        slow = json.dumps(request).replace("m1", "slow")
        one = await still.http.post("/api/message", content=quick, headers=JSON)

        async def pieces(text: str = slow):
            # What comes in pieces goes the ordinary way.
            yield text[:1].encode()
            yield text[1:].encode()

        other = await still.http.post("/api/message", content=pieces(), headers=JSON)
        first, second = shown(one), shown(other)
        assert first[0] == second[0], f"{number}: {first} {second}"
        same = json.dumps(first[1]).replace("quick", "slow") == json.dumps(second[1])
        assert same, f"{number}: {first} {second}"
    assert taken.count(True) >= 5
    assert taken.count(False) >= 5


async def test_what_goes_wrong_at_the_counter_is_told_as_everywhere(
    still: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any) -> Any:
        raise StoreFull(path="x")

    async def odd(*_: Any) -> Any:
        raise KeyError("secret detail")

    for broken, status, code in ((full, 507, "STORE_FULL"), (odd, 500, "UNEXPECTED")):
        monkeypatch.setattr(fast_messages, "accept", broken)
        answer = await still.http.post("/api/message", json={"message": "x"})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert "secret detail" not in answer.text
