"""Requests of every kind at random, several to a transaction, in a room with rules and reviews.

Whatever comes together, the promises hold afterwards, only named errors are answered, and both stores agree.
"""

import asyncio
import random
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.promises import all_events, check_promises
from tests.conformance.test_random_walk import QUEUES as WALKED

import postroom
from postroom import NewMessage, PostroomError, Room
from postroom.clock import ManualClock
from postroom.ids import SeededIds
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.housekeeping.housekeepers import ROSTER, Retention
from postroom.kernel.model import LifecycleState
from postroom.kernel.ports import MessageFilter
from postroom.kernel.rules import parsing, rule
from postroom.kernel.transitions.claim import ClaimedBatch

STEPS = 40
PAUSES = (0, 0, 0, 1, 4, 11, 40, 4000)
QUEUES: dict[str, dict[str, Any]] = {
    **WALKED,
    "review": {"max_retries": 1, "visibility_timeout_s": 15},
    "small": {"max_depth": 2},
}
NOT_IN_UNITS = (c.Unit, c.Claim, c.Housekeep)


class Crowd:
    """Asks for several things at once, chosen by a seeded die."""

    def __init__(self, room: Room, clock: ManualClock, seed: int) -> None:
        self._room = room
        self._clock = clock
        self._die = random.Random(seed)
        self._held: list[tuple[str, str]] = []
        self._ids: list[str] = []
        self._queues: dict[str, int] = {}

    async def start(self) -> None:
        for name, settings in QUEUES.items():
            await self._room.create_queue(name, **settings)
        for name in ("ann", "bob"):
            await self._room.subscribe("news", name)
        self._queues = {queue.slug: queue.id for queue in await self._room.queues()}
        for _ in range(self._die.randint(1, 4)):
            await self._room.run(self.rule())

    async def step(self) -> list[str]:
        """What was answered."""
        asked = [self.any() for _ in range(self._die.choice([1, 1, 2, 5, 9]))]
        answers = await asyncio.gather(*(self._room.run(each) for each in asked), return_exceptions=True)
        told = []
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, PostroomError):
                raise answer
            if isinstance(answer, ClaimedBatch):
                self._held += [(each.row.id, each.row.token or "") for each in answer.messages]
                answer = [(each.row.id, each.row.attempts) for each in answer.messages]
            told.append(f"{type(answer).__name__} {answer}")
        wanted = MessageFilter(deliveries=True, newest_first=True)
        found = await self._room.look(lambda reader: reader.page(wanted, None, 25))
        self._ids, self._held = [each.row.id for each in found], self._held[-12:]
        self._clock.advance(self._die.choice(PAUSES))
        return told

    def any(self) -> c.Command:
        makers = (
            *[self.publish] * 5,
            *[self.claim] * 4,
            *[self.settle] * 7,
            *(self.end, self.end, self.answer, self.talk, self.place, self.house, self.unit),
        )
        return self._die.choice(makers)()

    def publish(self) -> c.Command:
        die = self._die
        if die.random() < 0.2:
            return c.PublishLike(queue=self._queue(), bodies=[1, 2])
        messages = [self._message() for _ in range(die.choice([1, 1, 1, 3]))]
        return c.Publish(queue=self._queue(), messages=messages)

    def _message(self) -> NewMessage:
        wishes: dict[str, list[Any]] = {
            "ttl_s": [1.0, 5.0, 30.0],
            "delay_s": [0, 1, 10],
            "idempotency_key": ["k", "l", "m"],
            "hitl_spec": [self._spec()],
            "correlation_id": ["talk", "chat"],
            "labels": [{"k": 1}, {"k": 2}],
            "deadline": [self._clock.now() - 1, self._clock.now() + 5_000_000],
            "priority_tier": ["high", "low", "critical"],
        }
        chosen = {name: self._die.choice(each) for name, each in wishes.items() if self._die.random() < 0.2}
        return NewMessage(body=self._die.choice([1, {"n": 2}]), **chosen)

    def claim(self) -> c.Command:
        queue = self._queue()
        return c.Claim(
            queues=(queue,),
            limit=self._die.choice([1, 2, None]),
            worker=self._die.choice(["one", "two"]),
            subscription=self._die.choice(["ann", "bob"]) if queue == "news" else None,
            labels=(("k", 1),) if self._die.random() < 0.2 else (),
        )

    def settle(self) -> c.Command:
        message_id, token = self._die.choice(self._held) if self._held else (self._message_id(), "none")
        held: dict[str, Any] = {"message_id": message_id, "token": token}
        return self._die.choice(
            (
                c.Complete(**held),
                c.Complete(**held, result={"decision": "a"}),
                c.Fail(**held, reason="broken", retry=self._die.random() < 0.7),
                c.Fail(**held, reason="later", delay_s=3),
                c.Release(**held),
                c.Snooze(**held, seconds=3),
                c.Extend(**held),
                c.Hold(**held, account="a", seconds=9),
            )
        )

    def end(self) -> c.Command:
        return self._die.choice(
            (
                c.Cancel(message_id=self._message_id()),
                c.Kill(message_id=self._message_id(), reason="enough"),
                c.Replay(scope="default", limit=3),
                c.Replay(message_ids=(self._message_id(),)),
                c.Discard(scope="default", limit=1),
                c.Reprioritise(message_id=self._message_id(), tier="high"),
            )
        )

    def answer(self) -> c.Command:
        return service_commands.AnswerReview(
            message_id=self._message_id(), answer={"decision": self._die.choice(["a", "b"])}
        )

    def talk(self) -> c.Command:
        subject = {"field": "correlation_id", "value": "chat"}
        mode = self._die.choice(["erase", "redact"])
        return self._die.choice(
            (
                c.CancelConversation(correlation_id="talk"),
                service_commands.Erase(
                    job_id="job", scope="default", subject=subject, mode=mode, execute=True
                ),
                c.Freeze(account="a", reason="stop"),
                c.Thaw(account="a"),
            )
        )

    def place(self) -> c.Command:
        changes = ({"ordering": "priority"}, {"ordering": "fifo"}, {"max_depth": 3}, {"concurrency": 1})
        states = (
            LifecycleState.PAUSED,
            LifecycleState.ACTIVE,
            LifecycleState.ACTIVE,
            LifecycleState.DRAINING,
        )
        return self._die.choice(
            (
                c.UpdateQueue(queue=self._queue(), settings=self._die.choice(changes)),
                c.SetQueueState(queue=self._queue(), state=self._die.choice(states)),
                c.Subscribe(queue="news", name=self._die.choice(["ann", "cid"]), earliest=True),
                c.Unsubscribe(queue="news", name=self._die.choice(["ann", "cid"])),
                self.rule(),
            )
        )

    def house(self) -> c.Command:
        if self._die.random() < 0.1:
            return c.TakeOver(dead="one")
        return c.Housekeep(name=self._die.choice(ROSTER).name, limit=self._die.choice([2, 50]))

    def unit(self) -> c.Command:
        wanted = [self.any() for _ in range(self._die.randint(1, 4))]
        return c.Unit(commands=tuple(each for each in wanted if not isinstance(each, NOT_IN_UNITS)))

    def rule(self) -> c.Command:
        die, queue = self._die, self._queue
        triggers = ("published", "completed", "failed", "dead_lettered", "expired")
        actions: tuple[dict[str, Any], ...] = (
            {"type": "route", "target_queue_id": queue()},
            {"type": "fan_out", "target_queue_ids": [queue(), queue()], "keep": die.random() < 0.5},
            {"type": "archive"},
            {"type": "ask_human", "target_queue_id": queue(), "spec": self._spec()},
            {"type": "ask_human", "spec": self._spec()},
            {"type": "escalate", "priority_score": 900, "target_queue_id": queue()},
            {"type": "transform", "set_labels": {"x": 1}, "message_type": "changed"},
        )
        document: dict[str, Any] = {
            "name": "a rule",
            "trigger": die.choice(triggers),
            "priority": die.randint(0, 9),
        }
        document |= {"action": die.choice(actions), "source_queue_id": queue()}
        number = str(uuid.UUID(int=die.getrandbits(128)))
        now = self._clock.now()
        made = parsing.drafted(document, lambda name, _: self._queues[name], rule_id=number, now=now)
        return service_commands.PutServiceDocument(
            kind=rule.KIND, key=f"1/{number}", data=rule.written(made), scope="default"
        )

    def _spec(self) -> dict[str, Any]:
        die = self._die
        spec: dict[str, Any] = {
            "sections": [{"type": "decision", "field": "decision", "options": ["a", "b"]}],
            "timeout_s": die.choice([5, 10, 30]),
        }
        ends: tuple[dict[str, Any], ...] = (
            {},
            {"default": {"decision": "a"}},
            {"escalation": {"queue": die.choice([*QUEUES, "nowhere"]), "timeout_s": 7}},
            {"escalation": {"assignee": "bob"}, "default": {"decision": "b"}},
        )
        steps = ({"queue": die.choice([*QUEUES, "nowhere"])}, {"archive": True})
        spec |= die.choice(ends)
        return {**spec, "on_decision": {"a": die.choice(steps)}} if die.random() < 0.5 else spec

    def _queue(self) -> str:
        return self._die.choice(list(QUEUES))

    def _message_id(self) -> str:
        return self._die.choice([*self._ids, "nobody"])


async def _life(url: str, seed: int) -> tuple[Any, ...]:
    clock = ManualClock()
    retention = Retention(archive_s=3600, ledger_s=7200, records_s=3600)
    options: dict[str, Any] = {"clock": clock, "ids": SeededIds(1), "seed": 1, "actor": "tester"}
    options |= {"housekeeping": False, "durability": "relaxed", "retention": retention}
    async with postroom.open(url, **options) as room:
        crowd, story = Crowd(room, clock, seed), []
        await crowd.start()
        for _ in range(STEPS):
            story.append(await crowd.step())
            check_promises(room)
        events = await room.look(all_events)
    return story, [(event.seq, event.time, event.type, event.message_id, event.data) for event in events]


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_comes_together_the_promises_hold_on_both_stores(tmp_path: Path, seed: int) -> None:
    story, events = await _life(f"sqlite:///{tmp_path / 'room.db'}", seed)
    assert len(events) > STEPS
    assert (story, events) == await _life("memory://", seed)
