"""A seeded walk through every verb of the kernel, small enough that thousands of crashes can be tried."""

import random
from collections.abc import Callable
from typing import Any

from postroom.clock import ManualClock, micros
from postroom.kernel import commands as c
from postroom.kernel.housekeeping.housekeepers import ROSTER, Retention
from postroom.kernel.model import LifecycleState, NewMessage
from postroom.kernel.transitions.claim import ClaimedBatch
from tests.faults.callers import Caller

RETENTION = Retention(archive_after_s=20, dead_after_s=120, seen_s=50, aging_after_s=15)
BRIEF_S = 30.0
PRUNED_QUEUES = {"default/brief": BRIEF_S}
QUEUES: dict[str, dict[str, Any]] = {
    "default/jobs": {"max_retries": 3, "visibility_timeout_s": 10, "backoff_base_s": 2},
    "default/urgent": {"ordering": "priority", "max_retries": 2, "visibility_timeout_s": 5},
    "default/dated": {"ordering": "deadline", "concurrency": 2},
    "default/small": {"max_depth": 3, "overflow_policy": "drop_oldest"},
    "default/strict": {"max_depth": 2, "overflow_policy": "dead_letter", "schema": "order"},
    "default/news": {"consumer_mode": "broadcast", "max_retries": 2, "visibility_timeout_s": 8},
    "default/brief": {"default_ttl_s": 25, "retention_s": BRIEF_S},
}
COMPETING = [name for name in QUEUES if name != "default/news"]
NEWS = "default/news"
SUBSCRIBERS = ("anna", "ben")


def retention(seed: int) -> Retention:
    """Every sixth seed also prunes the ledger."""
    if seed % 6 != 5:
        return RETENTION
    return Retention(archive_after_s=20, dead_after_s=120, seen_s=50, aging_after_s=15, ledger_s=60)


def furnish(ask: Callable[[c.Command], Any]) -> None:
    """The queues every workload uses."""
    ask(c.RegisterSchema(scope="default", name="order", document={"type": "object"}))
    for name, settings in QUEUES.items():
        ask(c.CreateQueue(queue=name, settings=settings, exist_ok=True))
    ask(c.Subscribe(queue=NEWS, name=SUBSCRIBERS[0]))


class Workload:
    def __init__(self, seed: int, caller: Caller, clock: ManualClock, name: str = "") -> None:
        self._rng = random.Random(seed)
        self._name = name
        self._caller = caller
        self._clock = clock
        self._sent = 0
        self._held: list[tuple[str, str]] = []
        self._ids: list[str] = []
        self._verbs: list[tuple[int, Callable[[], Any]]] = [
            (8, self._publish),
            (5, self._publish_keyed),
            (10, self._claim),
            (12, self._settle),
            (4, self._unit),
            (8, self._together),
            (5, self._touch),
            (3, self._dead_letters),
            (3, self._subscribers),
            (3, self._change_queue),
            (2, self._odds),
            (8, self._pass_time),
            (6, self._keep_house),
        ]

    def step(self) -> None:
        weights, verbs = zip(*self._verbs, strict=True)
        self._rng.choices(verbs, weights)[0]()

    # publishing

    def _message(self, *, keyed: bool = False) -> NewMessage:
        rng = self._rng
        self._sent += 1
        number = rng.randrange(6) if keyed else self._sent
        mark = f"key-{number}" if keyed else f"{self._name}message-{number}"
        # A body beyond a page makes SQLite write overflow pages.
        size = 6000 if not keyed and rng.random() < 0.05 else (number * 37) % 200
        message = NewMessage(body={"mark": mark, "pad": "x" * size})
        message.idempotency_key = mark if keyed else None
        message.priority_tier = rng.choice(("critical", "normal", "background"))
        message.priority_score = rng.randrange(1001)
        if not keyed and rng.random() < 0.3:
            message.delay_until = self._clock.now() + micros(rng.choice((1, 5, 30)))
        if not keyed and rng.random() < 0.2:
            message.ttl_s = rng.choice((2, 10, 40))
        if rng.random() < 0.2:
            message.deadline = self._clock.now() + micros(rng.choice((3, 20, 90)))
        if rng.random() < 0.1:
            message.labels = {"colour": "blue"}
        return message

    def _publishing(self, queue: str | None = None) -> c.Publish | c.PublishLike:
        chosen = queue or self._rng.choice([*COMPETING, NEWS])
        many = self._rng.choice((1, 1, 1, 2, 3))
        messages = [self._message() for _ in range(many)]
        way = self._rng.random()
        if way < 0.2:
            return c.PublishLike(queue=chosen, bodies=[each.body for each in messages])
        if way < 0.4:
            return c.PublishLike(queue=chosen, bodies=[each.body for each in messages], like=messages[0])
        return c.Publish(queue=chosen, messages=messages)

    def _remember(self, receipts: Any) -> None:
        self._ids += [receipt.id for receipt in receipts or ()]

    def _publish(self) -> None:
        self._remember(self._caller.ask(self._publishing()))

    def _keyed(self) -> c.Publish:
        """A key belongs to one queue, so that the same key always means the same message."""
        message = self._message(keyed=True)
        queue = ("default/jobs", "default/news")[int(message.body["mark"][-1]) % 2]
        return c.Publish(queue=queue, messages=[message])

    def _publish_keyed(self) -> None:
        self._remember(self._caller.ask(self._keyed()))

    # claiming and settling

    def _claiming(self) -> c.Claim:
        rng = self._rng
        if rng.random() < 0.25:
            return c.Claim(queues=(NEWS,), subscription=rng.choice(SUBSCRIBERS), limit=rng.choice((1, 3)))
        queues = tuple(rng.sample(COMPETING, rng.choice((1, 2))))
        return c.Claim(queues=queues, limit=rng.choice((1, 2, 5)), lease_s=rng.choice((None, 2.0, 30.0)))

    def _hold(self, taken: ClaimedBatch | None) -> None:
        if taken is not None:
            self._held += [(stored.row.id, stored.row.token or "") for stored in taken.messages]

    def _claim(self) -> None:
        self._hold(self._caller.ask(self._claiming()))

    def _holder(self) -> dict[str, Any]:
        """Usually a live claim, taken off the list; now and then a used one, or one made up."""
        rng = self._rng
        if not self._held or rng.random() < 0.05:
            id_ = rng.choice(self._ids) if self._ids else "nobody"
            return {"message_id": id_, "token": f"{rng.randrange(90, 99)}-made-up"}
        index = rng.randrange(len(self._held))
        id_, token = self._held[index] if rng.random() < 0.15 else self._held.pop(index)
        return {"message_id": id_, "token": token}

    def _settling(self) -> c.Command:
        rng, held = self._rng, self._holder()
        return rng.choice(
            (
                c.Complete(result={"done": True}, **held),
                c.Complete(**held),
                c.Fail(reason="did not work", **held),
                c.Fail(reason="never will", retry=False, **held),
                c.Fail(reason="at once", delay_s=0, **held),
                c.Release(**held),
                c.Snooze(until=self._clock.now() + micros(rng.choice((1, 15))), **held),
                c.Extend(lease_s=rng.choice((None, 20.0)), **held),
            )
        )

    def _settle(self) -> None:
        if not self._held:
            self._claim()
        command = self._settling()
        self._caller.ask(command)
        if isinstance(command, c.Extend):
            self._held.append((command.message_id, command.token))

    def _work(self) -> c.Unit:
        """Complete one, publish what follows from it, and record the turn; now and then with a bad part."""
        rng, name = self._rng, f"{self._name}turn-{self._sent}-{self._rng.randrange(10**6)}"
        parts: list[c.Command] = [self._publishing(), c.AddRecord(kind="turn", key=name, data={"cost": 1})]
        if self._held:
            parts.insert(rng.randrange(2), c.Complete(**self._holder()))
        if rng.random() < 0.3:
            parts.append(self._publishing(NEWS))
        if rng.random() < 0.2:
            parts.append(c.CreateQueue(queue=f"default/new-{rng.randrange(4)}"))
        if rng.random() < 0.2:
            parts.append(c.Publish(queue="default/nowhere", messages=[]))
        return c.Unit(commands=tuple(parts))

    def _unit(self) -> None:
        for value in self._caller.ask(self._work()) or ():
            self._remember(value if isinstance(value, list) else ())

    def _together(self) -> None:
        makers = (self._publishing, self._keyed, self._claiming, self._settling, self._work, self._claiming)
        commands = [self._rng.choice(makers)() for _ in range(self._rng.randrange(2, 7))]
        for command, value in zip(commands, self._caller.ask_together(commands), strict=True):
            if isinstance(command, c.Claim):
                self._hold(value)
            elif isinstance(command, c.Publish | c.PublishLike):
                self._remember(value)

    # from outside

    def _someone(self) -> str:
        return self._rng.choice(self._ids[-12:]) if self._ids else "nobody"

    def _touch(self) -> None:
        rng, id_ = self._rng, self._someone()
        self._caller.ask(
            rng.choice(
                (
                    c.Cancel(message_id=id_),
                    c.Kill(message_id=id_, reason="a guard said so"),
                    c.Reprioritise(
                        message_id=id_, tier=rng.choice(("high", "low")), score=rng.randrange(900)
                    ),
                )
            )
        )

    def _dead_letters(self) -> None:
        verb = self._rng.choice((c.Replay, c.Replay, c.Discard))
        one = self._rng.random() < 0.4
        self._caller.ask(verb(message_ids=(self._someone(),)) if one else verb(scope="default", limit=2))

    def _subscribers(self) -> None:
        rng, name = self._rng, self._rng.choice(SUBSCRIBERS)
        self._caller.ask(
            rng.choice(
                (
                    c.Subscribe(queue=NEWS, name=name),
                    c.Subscribe(queue=NEWS, name=name, earliest=True),
                    c.CheckSeen(queue=NEWS, name=name, key=f"seen-{rng.randrange(3)}"),
                    c.Unsubscribe(queue=NEWS, name=name),
                )
            )
        )

    def _change_queue(self) -> None:
        rng, queue = self._rng, self._rng.choice(COMPETING)
        state = rng.choice(
            (LifecycleState.ACTIVE, LifecycleState.ACTIVE, LifecycleState.PAUSED, LifecycleState.DRAINING)
        )
        settings: dict[str, Any] = rng.choice(
            (
                {"ordering": rng.choice(("fifo", "priority", "deadline"))},
                {"max_retries": rng.randrange(1, 5)},
                {"max_depth": rng.choice((None, 4))},
                {"concurrency": rng.choice((None, 1, 3))},
                {"overflow_policy": rng.choice(("reject", "drop_oldest", "dead_letter"))},
            )
        )
        self._caller.ask(
            rng.choice(
                (c.UpdateQueue(queue=queue, settings=settings), c.SetQueueState(queue=queue, state=state))
            )
        )

    def _odds(self) -> None:
        rng = self._rng
        self._caller.ask(
            rng.choice(
                (
                    c.SetPosition(name="reader", seq=rng.randrange(20), hold=rng.random() < 0.3),
                    c.AddRecord(kind="cost", key=f"cost-{rng.randrange(10**6)}", data={"euro": 1}),
                    c.RegisterSchema(scope="default", name="order", document={"type": "object"}),
                    c.CreateScope(slug=f"scope-{rng.randrange(3)}", exist_ok=True),
                    c.DeleteScope(slug=f"scope-{rng.randrange(3)}"),
                    c.CreateQueue(queue="default/extra", settings=QUEUES["default/jobs"]),
                    c.DeleteQueue(queue=rng.choice(("default/extra", "default/small"))),
                    c.Lead(name="housekeeping", holder="me", seconds=rng.choice((0, 30))),
                )
            )
        )

    def _pass_time(self) -> None:
        self._clock.advance(self._rng.choice((0.000001, 0.5, 2, 7, 25, 60)))

    def _keep_house(self) -> None:
        keeper = self._rng.choice(ROSTER)
        limit = self._rng.choice((1, 2, 1000))
        self._caller.ask(c.Housekeep(name=keeper.name, limit=limit, actor=keeper.name))
