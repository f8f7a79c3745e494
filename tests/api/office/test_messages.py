"""Mail over HTTP: accepted is durable, repeats are told, and answers come back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, opened


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


@pytest.mark.parametrize("replies", ["each", "combined"])
async def test_posts_of_one_message_that_come_at_once_are_one_message(tmp_path: Path, replies: str) -> None:
    """As when a client retries before the first answer: nobody has been told yet that it is there."""
    body = {"message": "@coder hello", "sender": "Ann", "channel": "web", "messageId": "m-1"}
    at_once = 8

    async with opened(tmp_path, works=False, replies={"mode": replies}) as house:

        async def post() -> Any:
            async with house.stranger(authorization=house.http.headers["authorization"]) as http:
                await http.get("/api/agents")  # connected; from here on they come together
                ready.release()
                await go.wait()
                return (await http.post("/api/message", json=body)).json()

        ready, go = asyncio.Semaphore(0), asyncio.Event()
        posts = [asyncio.create_task(post()) for _ in range(at_once)]
        for _ in posts:
            await ready.acquire()
        go.set()
        answers = await asyncio.gather(*posts)
        assert {answer["messageId"] for answer in answers} == {"m-1"}
        messages = (await house.room.messages(scope="office")).messages
    inboxes = sorted(message.queue for message in messages if message.queue.startswith("inbox/"))
    assert inboxes == ["inbox/coder"]
    gathered = [message for message in messages if not message.queue.startswith("inbox/")]
    assert len(gathered) == (replies == "combined"), "one answer is owed"


async def test_files_of_a_message_are_taken_or_the_message_is_refused(still: House) -> None:
    folder = still.home / "files"
    folder.mkdir(exist_ok=True)
    (folder / "plan.txt").write_text("the plan")
    (still.home / "secret.txt").write_text("not for agents")
    sent = {"message": "@coder read it", "channel": "web", "sender": "Ann"}
    for wrong in (
        [str(still.home / "secret.txt")],
        [str(folder / "plan.txt"), "/etc/passwd"],
        [str(folder / "missing.txt")],
        ["plan.txt"] * 11,
        [7],
        "plan.txt",
    ):
        refused = await still.http.post("/api/message", json={**sent, "files": wrong})
        assert refused.status_code in (400, 403, 422), wrong
    assert (await still.room.counts("office/inbox/coder")).pending == 0
    taken = await still.http.post("/api/message", json={**sent, "files": [str(folder / "plan.txt")]})
    assert taken.status_code == 200, taken.text
    [mail] = (await still.room.messages(queue="office/inbox/coder")).messages
    assert mail.files == [str(folder / "plan.txt")]
    assert f"[file: {folder / 'plan.txt'}]" in mail.body["text"]
