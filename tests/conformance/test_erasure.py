"""Erasure on every store: repeated after a failure it does the rest, and its proof covers all of it."""

import hashlib
from typing import Any

import pytest
from tests.conformance.helpers import events, one, read

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.kernel import service_commands
from postroom.kernel.erasure import subject as erasure
from postroom.kernel.erasure.subject import Subject
from postroom.services import callers
from postroom.services.container import Services
from postroom.services.erasure import Erasures

OFFICER = callers.owner(actor="officer")
REVIEW: dict[str, Any] = {
    "sections": [
        {"type": "context", "title": "Text", "content": "Ann wants 5 Euro."},
        {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
    ],
}


class Lake:
    """One that is not to be had at first, and then remembers what it was asked to erase."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.erased: list[str] = []

    async def search(self, tenant: str, scope: str, subject: Subject, queues: list[str] | None) -> list[str]:
        return []

    async def preview(self, tenant: str, message_ids: list[str]) -> int:
        return 0

    async def erase(self, tenant: str, message_ids: list[str]) -> int:
        if self.failures:
            self.failures -= 1
            raise OSError("the lake is not to be had")
        self.erased = list(message_ids)
        return len(message_ids)


def _erasures(room: Room, lake: Lake | None = None) -> Erasures:
    return Services(room, lake=lake).erasures


async def _job(erasures: Erasures, field: str, value: Any, *, mode: str = "erase") -> str:
    subject = Subject(field=field, value=value)
    return (await erasures.create(OFFICER, "default", subject, mode=mode)).id


def _proof_of(ids: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


async def test_after_a_failure_of_the_lake_it_is_asked_for_everything_again(
    room: Room,
) -> None:
    await room.create_queue("mail")
    ids = [(await room.publish("mail", n, sender_id="ann")).id for n in range(3)]
    lake = Lake(failures=1)
    erasures = _erasures(room, lake)
    job = await _job(erasures, "sender_id", "ann")
    with pytest.raises(OSError, match="not to be had"):
        await erasures.execute(OFFICER, "default", job)
    assert (await erasures.read(OFFICER, "default", job)).status == "failed"
    done = await erasures.execute(OFFICER, "default", job)
    assert sorted(lake.erased) == sorted(ids)
    assert (done.status, done.found, done.erased) == ("completed", 3, 3)
    assert done.proof is not None
    assert done.proof["messages_sha256"] == _proof_of(ids)


@pytest.mark.parametrize(("field", "value"), [("sender_id", "ann"), ("correlation_id", "talk")])
async def test_what_had_to_wait_is_counted_once_and_proved_with_the_rest(
    room: Room, clock: ManualClock, field: str, value: str
) -> None:
    await room.create_queue("mail")
    about: dict[str, Any] = {"sender_id": "ann", "correlation_id": "talk"}
    ids = [(await room.publish("mail", n, **about)).id for n in range(3)]
    held = await one(room, "mail")
    lake = Lake(failures=0)
    erasures = _erasures(room, lake)
    job = await _job(erasures, field, value)
    waiting = await erasures.execute(OFFICER, "default", job)
    assert (waiting.status, waiting.found, waiting.erased, waiting.waiting) == ("waiting", 3, 2, 1)
    await room.complete(held)
    done = await erasures.execute(OFFICER, "default", job)
    assert (done.status, done.found, done.erased, done.waiting) == ("completed", 3, 3, 0)
    assert done.proof is not None
    assert done.proof["messages_sha256"] == _proof_of(ids)
    assert sorted(lake.erased) == sorted(ids)
    [told] = [event.details for event in events(room) if event.type == "erasure.completed"]
    assert told["erased"] == 3


async def test_when_it_is_done_the_room_forgets_which_messages_they_were(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("mail")
    await room.publish("mail", 1, sender_id="ann")
    erasures = _erasures(room)
    await erasures.execute(OFFICER, "default", await _job(erasures, "sender_id", "ann"))
    assert read(room, lambda reader: reader.documents("default", erasure.ERASED_IDS, "", "", 10)) == []


@pytest.mark.parametrize("value", [5, "decision"])
async def test_a_review_that_redaction_broke_ends_and_stops_nobody(
    room: Room, clock: ManualClock, value: Any
) -> None:
    for name in ("review", "other"):
        await room.create_queue(name)
    spec = {**REVIEW, "timeout_s": 5, "escalation": {"assignee": "bob", "timeout_s": 5}}
    asked = await room.publish("review", {"user": value}, hitl_spec=spec)
    await room.publish("other", "must go on")
    await _erasures(room).erase(OFFICER, "default", Subject(field="body.user", value=value), mode="redact")
    clock.advance(6)
    assert len(await room.claim("other")) == 1
    assert (await room.get(asked.id)).state is State.EXPIRED


async def test_a_redacted_review_can_still_be_answered(room: Room, clock: ManualClock) -> None:
    await room.create_queue("review")
    asked = await room.publish("review", {"user": "Ann"}, hitl_spec=REVIEW)
    await _erasures(room).erase(OFFICER, "default", Subject(field="body.user", value="Ann"), mode="redact")
    shown = await room.get(asked.id)
    assert shown.hitl_spec is not None
    assert shown.hitl_spec["sections"][0]["content"] == "[erased] wants 5 Euro."
    await room.run(service_commands.AnswerReview(message_id=asked.id, answer={"decision": "approve"}))
    assert (await room.get(asked.id)).state is State.COMPLETED
