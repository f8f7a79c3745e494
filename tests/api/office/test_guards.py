"""What the guards stopped can be seen and decided over HTTP."""

from pathlib import Path
from typing import Any

from postroom.clock import ManualClock, SystemClock
from tests.api.house import House, opened

PINGPONG: dict[str, Any] = {
    "pace": 0.001,
    "rules": [
        {"agent": "coder", "reply": "[@reviewer: look at part $turn]"},
        {"agent": "reviewer", "reply": "[@coder: change part $turn]"},
    ],
}


async def test_nobody_begins_a_turn_while_everybody_pauses(house: House) -> None:
    assert (await house.http.post("/api/guards/pause-all")).json() == {"ok": True, "changed": True}
    assert (await house.http.post("/api/guards/pause-all")).json() == {"ok": True, "changed": False}
    await house.http.post("/api/message", json={"message": "@coder hi", "sender": "Ann", "channel": "web"})
    assert (await house.http.get("/api/guards")).json()["paused"] is True
    assert (await house.http.get("/api/responses")).json() == []
    await house.http.post("/api/guards/resume-all")
    await house.until("/api/responses", lambda found: len(found) == 1)
    assert (await house.http.get("/api/guards")).json()["paused"] is False


async def test_a_conversation_that_goes_in_circles_waits_for_a_person(tmp_path: Path) -> None:
    async with opened(tmp_path, script=PINGPONG, guards={"hops": 2}) as house:
        mail = {"message": "@coder begin", "sender": "Ann", "channel": "web"}
        await house.http.post("/api/message", json=mail)
        found = await house.until("/api/guards", lambda body: body["conversations"])
        [talk] = found["conversations"]
        assert talk["guard"] == "hops"
        assert talk["channel"] == "web"
        gone_on = await house.http.post("/api/guards/continue", json={"conversation": talk["conversation"]})
        assert gone_on.json()["messages"] == 1
        await house.until("/api/guards", lambda body: body["conversations"])
        ended = await house.http.post("/api/guards/stop", json={"conversation": talk["conversation"]})
        assert ended.json()["ok"] is True
        assert (await house.http.get("/api/guards")).json()["conversations"] == []
        # What was stopped can be opened again, so that its dead letters can be sent; but only once.
        opened_again = await house.http.post(
            "/api/guards/continue", json={"conversation": talk["conversation"]}
        )
        assert opened_again.json()["messages"] == 0
        refused = await house.http.post("/api/guards/continue", json={"conversation": talk["conversation"]})
        assert refused.status_code == 409
        assert "is not paused" in refused.json()["error"]


async def test_a_budget_of_today_is_shown_and_raised(tmp_path: Path) -> None:
    # A clock that stands: else it may be tomorrow before the test is over.
    clock = ManualClock(SystemClock().now())
    async with opened(tmp_path, works=False, clock=clock, budgets={"daily_usd": 5}) as house:
        budgets = (await house.http.get("/api/guards")).json()["budgets"]
        assert budgets[0]["limit"] == 5_000_000
        raised = await house.http.post(
            "/api/guards/budget", json={"account": budgets[0]["account"], "usd": 9}
        )
        assert raised.json() == {"ok": True, "messages": 0}
        assert (await house.http.get("/api/guards")).json()["budgets"][0]["limit"] == 9_000_000


async def test_a_limit_that_is_no_number_is_refused_by_name(house: House) -> None:
    refused = await house.http.post("/api/guards/raise", json={"conversation": "web:1", "usd": "much"})
    assert refused.status_code == 422
    assert refused.json()["error"].startswith("usd:")


async def test_a_conversation_that_never_was_is_not_given_limits(house: House) -> None:
    refused = await house.http.post("/api/guards/raise", json={"conversation": "web:1", "usd": 5})
    assert refused.status_code == 404
    assert "web:1" in refused.json()["error"]
