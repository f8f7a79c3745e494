"""What is looked at every few seconds, and what it comes to for each part of the hour."""

import msgspec
import psycopg

from benchmarks.steadily.load import Work

DEAD = "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE n_dead_tup > 0"
SIZE = "SELECT pg_database_size(current_database())"
WAITING = "SELECT coalesce(sum(n), 0) FROM counts WHERE state = 'pending'"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    at_s: float
    part: str
    dead: dict[str, int]
    megabytes: float
    pending: int
    published: int
    completed: int
    claims_ms: list[float]
    waits_ms: list[float]


def take(db: psycopg.Connection, at_s: float, part: str, done: list[Work]) -> Sample:
    """`done`: since the sample before."""
    return Sample(
        at_s=at_s,
        part=part,
        dead=dict(db.execute(DEAD).fetchall()),
        megabytes=db.execute(SIZE).fetchall()[0][0] / 1e6,
        pending=int(db.execute(WAITING).fetchall()[0][0]),
        published=sum(each.published for each in done),
        completed=sum(each.completed for each in done),
        claims_ms=[ms for each in done for ms in each.claims_ms],
        waits_ms=[ms for each in done for ms in each.waits_ms],
    )


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    minutes: float
    rate: float
    claim_p50: float
    claim_p99: float
    claim_first: float
    claim_last: float
    """The p99 of its first third and of its last."""
    wait_p99: float
    dead_first: int
    dead_most: int
    dead_last: int
    pending_most: int


def sum_up(samples: list[Sample]) -> list[Part]:
    names = list(dict.fromkeys(sample.part for sample in samples))
    return [_part(name, [sample for sample in samples if sample.part == name]) for name in names]


def _part(name: str, samples: list[Sample]) -> Part:
    third = max(1, len(samples) // 3)
    dead = [sum(sample.dead.values()) for sample in samples]
    step = samples[1].at_s - samples[0].at_s if len(samples) > 1 else samples[0].at_s
    seconds = samples[-1].at_s - samples[0].at_s + step

    def claims(some: list[Sample]) -> list[float]:
        return [ms for sample in some for ms in sample.claims_ms]

    return Part(
        name=name,
        minutes=seconds / 60,
        rate=sum(sample.completed for sample in samples) / seconds,
        claim_p50=percentile(claims(samples), 0.5),
        claim_p99=percentile(claims(samples), 0.99),
        claim_first=percentile(claims(samples[:third]), 0.99),
        claim_last=percentile(claims(samples[-third:]), 0.99),
        wait_p99=percentile([ms for sample in samples for ms in sample.waits_ms], 0.99),
        dead_first=dead[0],
        dead_most=max(dead),
        dead_last=dead[-1],
        pending_most=max(sample.pending for sample in samples),
    )
