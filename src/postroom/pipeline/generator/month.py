"""The made-up month itself: people write, agents answer, hand on, fail and retry, on a clock that jumps.

Everything goes through the kernel's own commands, so the store it leaves is one that a real month could have
left: the chain verifies, and folding the ledger gives the state of every message.
"""

import heapq
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField
from postroom.ids import SeededIds
from postroom.kernel import commands as c
from postroom.kernel.engine import Engine
from postroom.kernel.housekeeping.housekeepers import ARCHIVER, EXPIRY, Retention
from postroom.kernel.limits import Limits
from postroom.kernel.model import NewMessage
from postroom.kernel.rows import Stored
from postroom.kernel.transitions.context import KernelEnvironment
from postroom.pipeline.generator import cast
from postroom.stores.sqlite import SqliteStore

DAY = 86_400
COMMIT_EVERY = 4000
LEASE_S = 120.0
BEAT_S = 40.0
Told = Callable[[int, float], None]
"""Called with the events written so far, and the share of the time that has passed."""

_BY_AGENT = {player.agent: player for player in cast.PLAYERS}


class MonthPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What month to make. `per_day` is how many people write on a weekday; `events` stops earlier."""

    end: int
    days: float = 30
    per_day: float = 400
    seed: int = 1
    events: int | None = None


class Made(msgspec.Struct, frozen=True):
    events: int
    conversations: int


def generate(path: Path, plan: MonthPlan, told: Told | None = None) -> Made:
    """Write the month to a new store."""
    if path.exists() and path.stat().st_size:
        raise InvalidField("--store", f"{path} exists already; name a new file")
    store = SqliteStore(path, durability="relaxed")
    try:
        return _Month(store, plan, told).run()
    finally:
        store.close()


class _Month:
    def __init__(self, store: SqliteStore, plan: MonthPlan, told: Told | None) -> None:
        self._store = store
        self._plan = plan
        self._told = told
        self._rng = random.Random(plan.seed)
        self._start = plan.end - round(plan.days * DAY * SECOND)
        self._clock = ManualClock(self._start)
        limits, retention = Limits(), Retention(dead_after_s=7 * DAY)
        self._engine = Engine(
            KernelEnvironment(SeededIds(plan.seed), limits, retention, random.Random(plan.seed))
        )
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0
        self._busy: set[str] = set()
        self._turn = 0
        self._letters = 0
        self._tx = store.begin()

    # the stage

    def run(self) -> Made:
        try:
            self._furnish()
            self._at(self._start, self._person_writes)
            self._at(self._start + 600 * SECOND, self._keep_house)
            self._at(self._start + 1800 * SECOND, self._shop_opens)
            done = self._play()
        except BaseException:
            self._store.rollback(self._tx)
            raise
        self._store.commit(self._tx)
        return Made(done, self._letters)

    def _play(self) -> int:
        steps = 0
        limit = self._plan.events or math.inf
        written = 0
        while self._heap and self._heap[0][0] < self._plan.end:
            time, _, action, args = heapq.heappop(self._heap)
            self._clock.set(time)
            action(*args)
            steps += 1
            if steps % COMMIT_EVERY == 0:
                self._store.commit(self._tx)
                with self._store.reader() as reads:
                    written = reads.chain().head.seq
                self._tx = self._store.begin()
                if self._told is not None:
                    self._told(written, (time - self._start) / (self._plan.end - self._start))
                if written >= limit:
                    break
        self._store.commit(self._tx)
        with self._store.reader() as reads:
            written = reads.chain().head.seq
        self._tx = self._store.begin()
        return written

    def _at(self, time: int, action: Callable[..., None], *args: Any) -> None:
        self._order += 1
        heapq.heappush(self._heap, (time, self._order, action, args))

    def _in(self, seconds: float, action: Callable[..., None], *args: Any) -> None:
        self._at(self._clock.now() + round(seconds * SECOND), action, *args)

    def _do(self, command: c.Command) -> Any:
        self._tx.now = self._clock.now()
        return self._engine.apply(self._tx, [command]).outcomes[0].result()

    def _unit(self, commands: list[c.Command], actor: str) -> list[Any]:
        return self._do(c.Unit(commands=tuple(commands), actor=actor))

    def _pick(self, choices: tuple[tuple[str, float], ...]) -> str:
        return self._rng.choices([name for name, _ in choices], [share for _, share in choices])[0]

    def _furnish(self) -> None:
        commands: list[c.Command] = [
            c.CreateScope(slug="default", exist_ok=True),
            c.CreateScope(slug="office", display_name="Office"),
            c.CreateScope(slug="shop", display_name="Shop"),
            c.CreateQueue(queue="shop/orders", settings={"ordering": "priority", "default_ttl_s": 7200.0}),
        ]
        for player in cast.PLAYERS:
            settings = {"max_retries": 5, "visibility_timeout_s": LEASE_S, "backoff_base_s": 5.0}
            commands.append(c.CreateQueue(queue=f"office/inbox/{player.agent}", settings=settings))
        for channel, _ in cast.CHANNELS:
            commands.append(c.CreateQueue(queue=f"office/outbox/{channel}", settings={"max_retries": 20}))
        room = f"office/room/{cast.TEAM}"
        commands.append(c.CreateQueue(queue=room, settings={"consumer_mode": "broadcast"}))
        commands += [c.Subscribe(queue=room, name=member) for member in cast.MEMBERS]
        self._unit(commands, "generator")

    # people

    def _rate(self) -> float:
        """People per second now: less at night and on weekends, a little more every week."""
        seconds = self._clock.now() / SECOND
        hour, weekday = seconds / 3600 % 24, int(seconds // DAY + 3) % 7
        shape = 0.15 + 1.7 * max(0.0, math.sin((hour - 6) / 15 * math.pi)) if 6 <= hour <= 21 else 0.12
        week = 0.35 if weekday >= 5 else 1.0
        growth = 1 + 0.3 * (self._clock.now() - self._start) / max(1, self._plan.end - self._start)
        return self._plan.per_day / DAY * shape * week * growth

    def _person_writes(self) -> None:
        rng = self._rng
        self._in(max(0.001, rng.expovariate(self._rate())), self._person_writes)
        self._letters += 1
        channel, person = self._pick(cast.CHANNELS), rng.choice(cast.PEOPLE)
        agent = self._pick(cast.FIRST_AGENTS)
        subject = rng.choice(cast.SUBJECTS).format(n=rng.randrange(1000, 9999))
        talk = f"{channel}:{self._plan.seed}-{self._letters}"
        mail = NewMessage(
            body={"text": rng.choice(cast.ASKS).format(it=subject), "team": None, "via": "default"},
            message_type="office.mail",
            channel=channel,
            sender=person,
            sender_id=f"{channel}-{person.lower()}",
            agent=agent,
            idempotency_key=f"{talk}:{agent}",
            correlation_id=talk,
            source_type="user",
            source_id=person.lower(),
            metadata={"subject": subject},
        )
        self._do(c.Publish(queue=f"office/inbox/{agent}", messages=[mail], actor=channel))
        self._in(0.2, self._look, agent)

    # agents

    def _look(self, agent: str) -> None:
        if agent in self._busy:
            return
        rooms = (f"office/room/{cast.TEAM}",) if agent in cast.MEMBERS else ()
        taken = self._do(
            c.Claim(
                queues=(f"office/inbox/{agent}", *rooms),
                limit=3,
                lease_s=LEASE_S,
                worker=f"lane/{agent}",
                subscription=agent if rooms else None,
                actor=agent,
            )
        )
        if not taken.messages:
            if taken.next_due is not None:
                wake = max(taken.next_due, self._clock.now() + 5 * SECOND)
                self._at(wake + 100_000, self._look, agent)
            return
        self._busy.add(agent)
        self._begin(agent, taken.messages)

    def _begin(self, agent: str, mail: list[Stored]) -> None:
        player, rng = _BY_AGENT[agent], self._rng
        self._turn += 1
        turn = f"t{self._plan.seed}-{self._turn:08d}"
        seconds = min(1500.0, rng.lognormvariate(math.log(player.median_s), 0.8))
        self._note(mail[0], agent, "turn.started", turn, {"agent": agent})
        if rng.random() < 0.3:
            tool = rng.choice(("Read", "Bash", "WebSearch", "Edit"))
            self._note(mail[0], agent, "turn.tool", turn, {"agent": agent, "tool": tool, "state": "started"})
        if rng.random() < 0.0015:
            self._in(LEASE_S + 30, self._crashed, agent)
            return
        for beat in range(1, int(seconds // BEAT_S) + 1):
            self._in(beat * BEAT_S, self._beat, agent, mail)
        self._in(seconds, self._end, agent, mail, turn, self._clock.now())

    def _crashed(self, agent: str) -> None:
        """The worker died with its claims; the lease has run out meanwhile."""
        self._busy.discard(agent)
        self._look(agent)

    def _beat(self, agent: str, mail: list[Stored]) -> None:
        for held in mail:
            self._do(c.Extend(lease_s=LEASE_S, **self._held(held, agent)))

    def _end(self, agent: str, mail: list[Stored], turn: str, started: int) -> None:
        player, rng = _BY_AGENT[agent], self._rng
        bad_day = 3.0 if agent == "coder" and int(self._clock.now() / SECOND // DAY) % 11 == 0 else 1.0
        failed = rng.random() < player.failure_rate * bad_day
        commands = self._failed(agent, mail) if failed else self._finished(agent, mail, turn)
        outcome = "finished"
        if failed:
            outcome = "rate_limit" if isinstance(commands[0], c.Snooze) else getattr(commands[0], "kind", "")
        commands.append(self._turn_record(player, mail[0], turn, started, outcome))
        self._unit(commands, agent)
        self._busy.discard(agent)
        self._in(0.3, self._look, agent)
        for command in commands:
            if isinstance(command, c.Publish):
                self._deliver(command)

    def _deliver(self, command: c.Publish) -> None:
        place = command.queue.split("/")
        if place[1] == "inbox":
            self._in(0.2, self._look, place[2])
        elif place[1] == "outbox":
            self._in(self._rng.uniform(0.1, 0.6), self._channel_looks, place[2])
        elif place[1] == "room":
            for member in cast.MEMBERS:
                self._in(0.5, self._look, member)

    def _held(self, held: Stored, agent: str) -> dict[str, Any]:
        return {"message_id": held.row.id, "token": held.row.token, "actor": agent}

    def _failed(self, agent: str, mail: list[Stored]) -> list[c.Command]:
        rng = self._rng
        kinds = [kind for kind, _, _ in cast.FAILURES]
        kind = rng.choices(kinds, [share for _, _, share in cast.FAILURES])[0]
        reason = next(reason for name, reason, _ in cast.FAILURES if name == kind)
        commands: list[c.Command] = []
        for held in mail:
            if kind == "rate_limit":
                pause = rng.uniform(30, 300)
                commands.append(c.Snooze(seconds=pause, reason=reason, **self._held(held, agent)))
                self._in(pause + 1, self._look, agent)
                continue
            retry = kind not in ("auth", "refused")
            commands.append(c.Fail(reason=reason, kind=kind, retry=retry, **self._held(held, agent)))
            if not retry:
                self._in(rng.uniform(3600, 40 * 3600), self._second_thoughts, held.row.id, agent)
            self._in(rng.uniform(5, 60), self._look, agent)
        return commands

    def _second_thoughts(self, message_id: str, agent: str) -> None:
        """Somebody looks through the dead letters: some go back, some are given up, most stay."""
        choice = self._rng.random()
        rows = self._tx.rows([message_id])
        if not rows or rows[0].state != "dead" or choice > 0.7:
            return
        if choice < 0.5:
            self._do(c.Replay(message_ids=(message_id,), actor="operator"))
            self._in(1, self._look, agent)
        else:
            self._do(c.Discard(message_ids=(message_id,), actor="operator"))

    def _finished(self, agent: str, mail: list[Stored], turn: str) -> list[c.Command]:
        rng, player, primary = self._rng, _BY_AGENT[agent], mail[0]
        commands: list[c.Command] = [
            c.Complete(result={"turn": turn}, **self._held(held, agent)) for held in mail
        ]
        content = primary.content
        subject = "this"
        if content.metadata and '"subject"' in content.metadata:
            subject = msgspec.json.decode(content.metadata)["subject"]
        if primary.row.hop < 6 and player.asks and rng.random() < player.asks_rate:
            mates = rng.sample(player.asks, k=min(len(player.asks), 1 + (rng.random() < 0.2)))
            for mate in mates:
                note = self._derived(primary, agent, f"Please help with {subject}.", "office.note")
                note.agent = mate
                commands.append(c.Publish(queue=f"office/inbox/{mate}", messages=[note], actor=agent))
        if agent in cast.MEMBERS and rng.random() < 0.02:
            post = self._derived(primary, agent, f"For everybody: {subject} is settled.", "office.post")
            post.channel = "chatroom"
            commands.append(c.Publish(queue=f"office/room/{cast.TEAM}", messages=[post], actor=agent))
        if content.channel not in (None, "chatroom"):
            words = rng.choice(cast.ANSWERS).format(it=subject)
            reply = self._derived(primary, agent, f"{words}\n\n- [{agent}]", "office.reply")
            reply.agent = agent
            place = f"office/outbox/{content.channel}"
            commands.append(c.Publish(queue=place, messages=[reply], actor=agent))
        return commands

    def _derived(self, cause: Stored, agent: str, text: str, kind: str) -> NewMessage:
        row, content = cause.row, cause.content
        return NewMessage(
            body={"text": text},
            message_type=kind,
            channel=content.channel,
            sender=content.sender,
            sender_id=content.sender_id,
            from_agent=agent,
            metadata=msgspec.json.decode(content.metadata) if content.metadata else None,
            correlation_id=row.correlation_id,
            causation_id=row.id,
            hop=row.hop + 1,
            source_type="agent",
            source_id=agent,
        )

    def _note(self, about: Stored, agent: str, kind: str, turn: str, data: dict[str, Any]) -> None:
        self._do(
            c.AddRecord(
                kind=kind,
                key=turn,
                data=data,
                message_id=about.row.id,
                correlation_id=about.row.correlation_id,
                actor=agent,
            )
        )

    def _turn_record(
        self, player: cast.Player, about: Stored, turn: str, started: int, outcome: str
    ) -> c.AddRecord:
        rng = self._rng
        tokens_in = int(rng.lognormvariate(8.2, 0.7))
        cached = int(tokens_in * rng.uniform(0.2, 2.0))
        tokens_out = int(rng.lognormvariate(6.0, 0.8)) if outcome == "finished" else 0
        usd = (tokens_in * player.usd_in + cached * player.usd_in / 10 + tokens_out * player.usd_out) / 1e6
        usage = {
            "event": "usage",
            "provider": player.provider,
            "model": player.model,
            "vendor": "",
            "input_tokens": tokens_in,
            "cache_read_tokens": cached,
            "cache_write_tokens": 0,
            "output_tokens": tokens_out,
            "cost_usd": None,
            "session_total": None,
            "whole_session": False,
        }
        paid = player.usd_in > 0
        data = {
            "agent": player.agent,
            "outcome": outcome,
            "cause": "",
            "started_at": started,
            "ended_at": self._clock.now(),
            "usage": [usage],
            "cost_usd": f"{usd:.6f}" if paid else None,
            "price_source": "list" if paid else None,
        }
        return c.AddRecord(
            kind="turn",
            key=turn,
            data=data,
            message_id=about.row.id,
            correlation_id=about.row.correlation_id,
            actor=player.agent,
        )

    # channels, the shop, the office

    def _channel_looks(self, channel: str) -> None:
        place = f"office/outbox/{channel}"
        taken = self._do(c.Claim(queues=(place,), limit=10, worker=f"channel/{channel}", actor=channel))
        for held in taken.messages:
            if self._rng.random() < 0.01:
                self._do(
                    c.Fail(reason="the platform did not answer", kind="network", **self._held(held, channel))
                )
                self._in(40, self._channel_looks, channel)
            else:
                self._in(self._rng.uniform(0.05, 1.5), self._sent, channel, held)

    def _sent(self, channel: str, held: Stored) -> None:
        self._do(c.Complete(**self._held(held, channel)))

    def _shop_opens(self) -> None:
        """A work queue of another program: a few orders at once, some of which nobody needs any more."""
        rng = self._rng
        self._in(max(1.0, rng.expovariate(self._rate() * 0.15)), self._shop_opens)
        orders = [
            NewMessage(
                body={"order": rng.randrange(10**6), "eur": round(rng.lognormvariate(3.5, 0.9), 2)},
                message_type="order",
                priority_tier=rng.choices(("normal", "high", "critical"), (0.8, 0.15, 0.05))[0],
            )
            for _ in range(rng.randrange(1, 5))
        ]
        receipts = self._do(c.Publish(queue="shop/orders", messages=orders, actor="shop"))
        if rng.random() < 0.05:
            self._do(
                c.Cancel(message_id=receipts[0].id, reason="the customer changed their mind", actor="shop")
            )
        if rng.random() > 0.01:
            self._in(rng.lognormvariate(2.0, 1.0), self._shop_works, len(orders))

    def _shop_works(self, count: int) -> None:
        worker = f"packer-{self._rng.randrange(3)}"
        taken = self._do(c.Claim(queues=("shop/orders",), limit=count, worker=worker, actor=worker))
        for held in taken.messages:
            if self._rng.random() < 0.02:
                self._do(c.Fail(reason="out of stock", kind="stock", **self._held(held, worker)))
                self._in(30, self._shop_works, 1)
            elif self._rng.random() < 0.01:
                self._do(c.Release(**self._held(held, worker)))
                self._in(60, self._shop_works, 1)
            else:
                self._do(c.Complete(result={"packed": True}, **self._held(held, worker)))

    def _keep_house(self) -> None:
        self._in(1800, self._keep_house)
        for name in (EXPIRY, ARCHIVER):
            cursor: int | None = 0
            while cursor is not None:
                cursor = self._do(c.Housekeep(name=name, cursor=cursor, actor=name)).cursor
