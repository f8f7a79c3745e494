"""The messages and turns of one conversation: as the lake knows them, continued by what the store has since.

Counted as silver counts them, so that an answer is the same before a run of the pipeline and after it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

import msgspec
import pyarrow as pa

from postroom.kernel import jsontext
from postroom.kernel.states import TERMINAL, Change, State
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.serving.engine import QueryEngine
from postroom.pipeline.sources.sqlite import SqliteSource

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CENTS = Decimal("1e-10")
FAILING = (Change.FAILED, Change.LEASE_EXPIRED, Change.DEAD_LETTERED)
TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")

_LIVES = """
SELECT message_id, scope, queue, agent, channel, coalesce(hop, 0) AS hop, parent_id, causation_id, tenant,
    state, published_at, first_claimed_at, last_claimed_at, finished_at, updated_at, wait_us, work_us,
    error_class, first_seq, last_seq
FROM message_life WHERE coalesce(correlation_id, message_id) = ? AND coalesce(tenant, 'default') = ?
"""
_TURNS = """
SELECT record_id, message_id, input_tokens + cache_read_tokens + cache_write_tokens + output_tokens AS tokens,
    cost_usd
FROM turns_clean WHERE message_id IN (
    SELECT message_id FROM message_life
    WHERE coalesce(correlation_id, message_id) = ? AND coalesce(tenant, 'default') = ?
)
"""


class Life(msgspec.Struct, kw_only=True):
    """One message so far. Times are microseconds since 1970; `fresh` is what the lake does not know yet."""

    message_id: str
    tenant: str | None = None
    scope: str = ""
    queue: str = ""
    agent: str | None = None
    channel: str | None = None
    hop: int = 0
    parent_id: str | None = None
    causation_id: str | None = None
    state: str = State.PENDING
    published: int | None = None
    first_claimed: int | None = None
    last_claimed: int | None = None
    finished: int | None = None
    updated: int | None = None
    wait_us: int | None = None
    work_us: int | None = None
    error_class: str | None = None
    first_seq: int = 0
    last_seq: int = 0
    fresh: bool = False

    def lived(self, event: dict[str, Any]) -> None:
        """One more event. Waiting ends with the first claim; work is all claims together."""
        told, time = jsontext.decode(event["data"]), event["time"]
        state = told.get("state")
        if event["type"] == Change.PUBLISHED:
            self._born(event, told)
        if event["type"] in FAILING:
            lost = "lease_expired" if event["type"] == Change.LEASE_EXPIRED else "unknown"
            self.error_class = told.get("kind") or lost
        if state == State.CLAIMED and self.state != State.CLAIMED:
            self.last_claimed = time
            if self.first_claimed is None:
                self.first_claimed, self.work_us = time, 0
                self.wait_us = _length(self.published, time)
        elif state != State.CLAIMED and self.state == State.CLAIMED and self.work_us is not None:
            self.work_us += time - (self.last_claimed or time)
        self.state = state
        self.finished = time if state in TERMINAL else None
        self.updated, self.last_seq, self.fresh = time, event["seq"], True

    def _born(self, event: dict[str, Any], told: dict[str, Any]) -> None:
        self.published, self.tenant, self.first_seq = event["time"], event["tenant"], event["seq"]
        self.scope, self.queue = event["scope"], told.get("from") or event["queue"]
        self.agent = _agent(self.queue, told.get("agent"))
        self.channel, self.hop = told.get("channel"), told.get("hop") or 0
        self.parent_id, self.causation_id = told.get("parent"), event["causation_id"]


class LiveTurn(msgspec.Struct, frozen=True):
    record_id: int
    message_id: str
    tokens: int
    cost_usd: Decimal | None
    fresh: bool = False


class LiveConversation(msgspec.Struct, frozen=True):
    """All of a conversation, the oldest message first."""

    lives: list[Life]
    turns: list[LiveTurn]

    @property
    def fresh(self) -> bool:
        return any(life.fresh for life in self.lives) or any(turn.fresh for turn in self.turns)


def talk(
    engine: QueryEngine | None, source: SqliteSource | None, wanted: str, tenant: str
) -> LiveConversation:
    lives, turns = _from_lake(engine, wanted, tenant)
    if source is not None:
        after, record = _taken(engine)
        rows = {row["id"]: row for row in source.conversation(wanted, tenant)}
        new = [row["created_at"] for row in rows.values() if row["id"] not in lives]
        if new:
            # Usually after what the lake has; not so for what has left it.
            first = source.seq_before(min(new))
            after, record = _after(after, first), _after(record, source.record_before(min(new)))
        if new or any(_moved(lives[key], row) for key, row in rows.items()):
            until = None if any(_open(row) for row in rows.values()) else max(map(_end, rows.values()))
            _live_on(source, (tenant, wanted), lives, rows, after or 0, until)
            _take_turns(source, lives, turns, record or 0, until)
    ordered = sorted(lives.values(), key=lambda life: (life.published or 0, life.message_id))
    return LiveConversation(ordered, sorted(turns.values(), key=lambda turn: turn.record_id))


def _from_lake(
    engine: QueryEngine | None, wanted: str, tenant: str
) -> tuple[dict[str, Life], dict[int, LiveTurn]]:
    if engine is None or not engine.has("message_life"):
        return {}, {}
    lives = {}
    for row in engine.rows(_LIVES, [wanted, tenant]):
        for name in ("published", "first_claimed", "last_claimed", "finished", "updated"):
            row[name] = _micros(row.pop(f"{name}_at"))
        lives[row["message_id"]] = Life(**row)
    turns = engine.rows(_TURNS, [wanted, tenant]) if engine.has("turns_clean") else []
    return lives, {row["record_id"]: LiveTurn(**row) for row in turns}


def _taken(engine: QueryEngine | None) -> tuple[int | None, int | None]:
    """The newest event and the newest record that the lake has made sense of; None without a lake."""

    def newest(table: str, column: str) -> int | None:
        if engine is None or not engine.has(table):
            return None
        return engine.rows(f"SELECT max({column}) AS newest FROM {table}")[0]["newest"]  # noqa: S608 - our own

    return newest("message_life", "last_seq"), newest("turns_clean", "record_id")


def _after(taken: int | None, first: int) -> int:
    return first if taken is None else min(taken, first)


def _open(row: dict[str, Any]) -> bool:
    return row["state"] not in TERMINAL


def _end(row: dict[str, Any]) -> int:
    return row["finished_at"] or row["created_at"]


def _moved(life: Life, row: dict[str, Any]) -> bool:
    """Whether the store may know more of a message than the lake does."""
    return _open(row) or life.state != row["state"] or life.finished != row["finished_at"]


def _live_on(
    source: SqliteSource,
    wanted: tuple[str, str],
    lives: dict[str, Life],
    rows: dict[str, dict[str, Any]],
    after: int,
    until: int | None,
) -> None:
    up_to = source.snapshot().head if until is None else source.seq_before(until + 1, latest=True)
    names = pa.array([*lives, *rows], pa.string())
    for batch in source.ledger(after, up_to):
        tenant, name = wanted
        talked = pc.and_kleene(pc.equal(batch["tenant"], tenant), pc.equal(batch["correlation_id"], name))
        mine = pc.or_kleene(talked, pc.is_in(batch["message_id"], value_set=names))
        for event in batch.filter(mine).to_pylist():
            if _usable(event):
                life = lives.setdefault(event["message_id"], Life(message_id=event["message_id"]))
                if event["seq"] > life.last_seq:
                    life.lived(event)
    for key, row in rows.items():
        if key not in lives or lives[key].published is None:
            lives[key] = _as_stored(row, lives.get(key))
    for key in [key for key, life in lives.items() if life.published is None]:
        del lives[key]


def _usable(event: dict[str, Any]) -> bool:
    if event["message_id"] is None or event["type"] not in tuple(Change):
        return False
    try:
        return jsontext.decode(event["data"]).get("state") in tuple(State)
    except (msgspec.DecodeError, AttributeError):
        return False


def _as_stored(row: dict[str, Any], seen: Life | None) -> Life:
    """A message whose beginning is no longer in the ledger, from its row."""
    return Life(
        message_id=row["id"],
        scope=row["scope"],
        queue=row["queue"],
        agent=_agent(row["queue"], row["agent"]),
        channel=row["channel"],
        hop=row["hop"],
        parent_id=row["parent_id"],
        causation_id=row["causation_id"],
        state=row["state"],
        published=row["created_at"],
        first_claimed=seen.first_claimed if seen else None,
        finished=row["finished_at"],
        updated=seen.updated if seen else _end(row),
        wait_us=_length(row["created_at"], seen.first_claimed) if seen else None,
        work_us=seen.work_us if seen else None,
        error_class=row["failure_kind"],
        last_seq=seen.last_seq if seen else 0,
        fresh=True,
    )


def _take_turns(
    source: SqliteSource, lives: dict[str, Life], turns: dict[int, LiveTurn], after: int, until: int | None
) -> None:
    up_to = source.snapshot().records if until is None else source.record_before(until + 1, latest=True)
    names = pa.array(list(lives), pa.string())
    for batch in source.records(after, up_to):
        mine = pc.and_(pc.equal(batch["kind"], "turn"), pc.is_in(batch["message_id"], value_set=names))
        for record in batch.filter(mine).to_pylist():
            if record["id"] not in turns:
                turns[record["id"]] = _turn(record)


def _turn(record: dict[str, Any]) -> LiveTurn:
    try:
        told = jsontext.decode(record["data"])
    except msgspec.DecodeError:
        told = {}
    used = sum(_counts(told.get("usage") or ()))
    return LiveTurn(record["id"], record["message_id"], used, money(told.get("cost_usd")), fresh=True)


def _counts(usage: Sequence[dict[str, Any]]) -> Iterator[int]:
    return (use.get(name) or 0 for use in usage for name in TOKENS)


def money(told: Any) -> Decimal | None:
    """Dollars as the lake keeps them, to ten places; None for what is no amount."""
    try:
        return None if told is None else Decimal(str(told)).quantize(CENTS, ROUND_HALF_UP)
    except InvalidOperation:
        return None


def _agent(queue: str, told: str | None) -> str | None:
    return queue.rpartition("/")[2] if queue.startswith("inbox/") else told


def _length(began: int | None, ended: int | None) -> int | None:
    """A length that came out negative says that clocks were wrong, and is not known."""
    return ended - began if began is not None and ended is not None and ended >= began else None


def _micros(time: datetime | None) -> int | None:
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)
