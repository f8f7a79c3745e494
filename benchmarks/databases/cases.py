"""The cases: drain and publish on PostgreSQL beside others, MariaDB with and without Redis, and wake-ups."""

import asyncio
import functools
import time
from pathlib import Path

import msgspec

from benchmarks.databases import processes
from benchmarks.databases.bare import BARE, open_bare
from benchmarks.databases.ours import PostroomQueue, open_postroom
from benchmarks.databases.participant import OpenParticipant, Participant
from benchmarks.databases.peers import (
    PGQUEUER,
    PGQUEUER_QUERIES,
    PROCRASTINATE,
    open_pgqueuer,
    open_pgqueuer_worker,
    open_procrastinate,
)
from benchmarks.databases.servers import Mariadb, Postgres
from benchmarks.queueing import measure
from benchmarks.queueing.measure import Figure, Outcome, Ratio

OURS = "postroom"
RATE = "messages/s"
CALLERS = 64
CONSUMERS = 8
OPENINGS: dict[str, OpenParticipant] = {
    OURS: open_postroom,
    PGQUEUER: open_pgqueuer_worker,
    PGQUEUER_QUERIES: open_pgqueuer,
    BARE: open_bare,
    PROCRASTINATE: open_procrastinate,
}


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured."""

    rounds: int
    drained: int
    slow: int
    """For a peer that would take minutes with as many as the others."""
    seconds: float
    wakes: int


FULL = Amounts(rounds=3, drained=20_000, slow=500, seconds=1.0, wakes=100)
QUICK = Amounts(rounds=1, drained=1_000, slow=200, seconds=0.3, wakes=5)


async def _drain(participant: Participant) -> int:
    return await participant.drain()


async def _drain_with_consumers(consumers: int, participant: Participant) -> int:
    assert isinstance(participant, PostroomQueue)
    return await participant.drain_alone(consumers)


def _fill(opening: OpenParticipant, url: str, count: int) -> None:
    async def fill() -> None:
        async with opening(url) as participant:
            await participant.publish(count)

    asyncio.run(fill())


def _drained(postgres: Postgres, who: str, count: int, many: int, _: Path) -> float:
    with postgres.database() as url:
        _fill(OPENINGS[who], url, count)
        return processes.rate(OPENINGS[who], url, _drain, many, count)


def drain(postgres: Postgres, amounts: Amounts, folder: Path) -> Outcome:
    """Others are compared with four processes; with fewer there is the curve."""
    outcome = Outcome()
    for many in (1, 2, 4):
        case = f"PostgreSQL: claim and complete in 100s, {many} process{'es' if many > 1 else ''}"
        runs: dict[str, measure.Run] = {
            who: functools.partial(_drained, postgres, who, amounts.drained, many)
            for who in (OURS, PGQUEUER, PGQUEUER_QUERIES, BARE)
        }
        if many != 2:
            runs[PROCRASTINATE] = functools.partial(_drained, postgres, PROCRASTINATE, amounts.slow, many)
        found = measure.alternate(case, RATE, runs, amounts.rounds, folder)
        targets = {PGQUEUER: 1.2, PGQUEUER_QUERIES: 1.2, PROCRASTINATE: 10.0} if many == 4 else {}
        outcome.add(_against(case, found, {**targets, BARE: 0.6}))
    return outcome


def _published(postgres: Postgres, who: str, count: int, _: Path) -> float:
    async def publish(url: str) -> float:
        async with OPENINGS[who](url) as participant:
            await participant.publish(100)
            started = time.perf_counter()
            await participant.publish(count)
            return count / (time.perf_counter() - started)

    with postgres.database() as url:
        return asyncio.run(publish(url))


def publish_batches(postgres: Postgres, amounts: Amounts, folder: Path) -> Outcome:
    case = "PostgreSQL: publish in 100s"
    runs: dict[str, measure.Run] = {
        who: functools.partial(_published, postgres, who, amounts.drained)
        for who in (OURS, PGQUEUER_QUERIES, BARE)
    }
    runs[PROCRASTINATE] = functools.partial(_published, postgres, PROCRASTINATE, amounts.slow)
    found = measure.alternate(case, RATE, runs, amounts.rounds, folder)
    return _against(case, found, {PGQUEUER_QUERIES: 0.8, BARE: 0.6})


def _published_alone(postgres: Postgres, who: str, callers: int, seconds: float, _: Path) -> float:
    async def publish(url: str) -> float:
        async with OPENINGS[who](url) as participant:
            return (await measure.by_tasks(participant.publish_one, callers, seconds)).rate

    with postgres.database() as url:
        return asyncio.run(publish(url))


def publish_alone(postgres: Postgres, amounts: Amounts, folder: Path) -> Outcome:
    case = "PostgreSQL: publish one at a time"
    sequence = f"{PGQUEUER_QUERIES}, one caller"
    runs: dict[str, measure.Run] = {
        OURS: functools.partial(_published_alone, postgres, OURS, CALLERS, amounts.seconds),
        sequence: functools.partial(_published_alone, postgres, PGQUEUER_QUERIES, 1, amounts.seconds),
        PGQUEUER_QUERIES: functools.partial(
            _published_alone, postgres, PGQUEUER_QUERIES, CALLERS, amounts.seconds
        ),
        f"{OURS}, one caller": functools.partial(_published_alone, postgres, OURS, 1, amounts.seconds),
    }
    found = measure.alternate(case, RATE, runs, amounts.rounds, folder)
    return _against(case, found, {sequence: 5.0})


def _against(case: str, found: dict[str, Figure], targets: dict[str, float]) -> Outcome:
    ratios = [
        Ratio(case=case, what=f"against {who}", value=measure.paired(found[OURS], found[who]), target=target)
        for who, target in targets.items()
    ]
    return Outcome(list(found.values()), ratios)


def beside_redis(mariadb: Mariadb, redis: str, amounts: Amounts, folder: Path) -> Outcome:
    case = f"MariaDB: claim and complete in 100s, {CONSUMERS} consumers in 2 processes"
    alone, with_redis = "MariaDB alone", "MariaDB with Redis"
    work = functools.partial(_drain_with_consumers, CONSUMERS // 2)

    def run(suffix: str, _: Path) -> float:
        with mariadb.database() as url:
            _fill(open_postroom, url + suffix, amounts.drained)
            return processes.rate(open_postroom, url + suffix, work, 2, amounts.drained)

    runs: dict[str, measure.Run] = {
        alone: functools.partial(run, ""),
        with_redis: functools.partial(run, f" {redis}"),
    }
    found = measure.alternate(case, RATE, runs, amounts.rounds, folder)
    value = measure.paired(found[with_redis], found[alone])
    ratio = Ratio(case=case, what="with Redis against alone", value=value, target=1.0)
    return Outcome(list(found.values()), [ratio])
