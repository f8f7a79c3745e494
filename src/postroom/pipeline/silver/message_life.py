"""One row per message: when it came, waited, was worked on and ended, and what went wrong on the way.

A life is a sum of contributions: each event adds to counts and sums or moves an earliest or latest moment,
and so does the life known so far. Sums do not care for order or grouping, so late events come out right, and
lives that were worked out of different events of one message are put together the same way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import MESSAGE_LIFE
from postroom.pipeline.silver.events import STATES, days_of, message_events, problems, whole

_TERMINAL = ("completed", "dead", "expired", "cancelled")
_NOT_OF_A_CLAIM = ("guard", "overflow")
_COUNTED = {
    "claims": ("message.claimed",),
    "releases": ("message.released",),
    "snoozes": ("message.snoozed",),
    "lease_expiries": ("message.lease_expired",),
    "dead_letters": ("message.dead_lettered",),
    "replays": ("message.replayed",),
}
_FAILING = ("message.failed", "message.lease_expired", "message.dead_lettered")
_GIVING_UP = ("message.failed", "message.released", "message.snoozed", "message.lease_expired")
_SUMS = (*_COUNTED, "failures", "given_up", "settled_us")
_FIRST = ("published_us", "first_claimed_us", "first_seq")
_LAST = ("last_claimed_us", "updated_us", "ended_us", "last_seq", "latest")
_BORN = (
    "tenant", "scope", "queue", "agent", "channel", "message_type", "tier", "hop", "parent_id", "delivery",
    "correlation_id", "causation_id", "published_by", "bytes",
)  # fmt: skip
_MOMENTS = {
    "published_us": "published_at",
    "first_claimed_us": "first_claimed_at",
    "last_claimed_us": "last_claimed_at",
    "updated_us": "updated_at",
    "ended_us": "ended_at",
}
_ERROR = ("error_seq", "error_class", "error_reason")
_SCHEMA = MESSAGE_LIFE.schema
_NEVER = 2**62
"""Stands for no moment among earliest ones; its negative among latest ones."""
_TIME = pa.timestamp("us", "UTC")
Numbers = dict[str, Any]


def lives(ledger: pa.Table, known: pa.Table | None = None) -> pa.Table:
    """The whole life of every message that the events are about; `known` are earlier lives of them."""
    return lives_of(message_events(ledger), known)


def lives_of(events: pa.Table, known: pa.Table | None = None) -> pa.Table:
    """The same of events that were opened. One that makes no sense adds nothing."""
    born = _births(events.filter(pc.equal(events["type"], "message.published")))
    fine = events.filter(pc.is_null(problems(events)))
    errors = _errors(fine.filter(_is_any(fine["type"], _FAILING)))
    parts = _contributions(fine)
    ids = whole(fine["message_id"])
    if known is None:
        return _fold(ids, parts, born, errors)
    earlier = _known_contributions(known)
    return _fold(
        pa.concat_arrays([ids, whole(known["message_id"])]),
        {name: np.concatenate([part, earlier[name]]) for name, part in parts.items()},
        pa.concat_tables([_told_before(known, "published_at", _BORN), born]),
        pa.concat_tables([_told_before(known, "error_seq", _ERROR), errors]),
    )


def merge_lives(parts: Sequence[pa.Table]) -> pa.Table:
    """One life for each message, of lives that each know a part of its events."""
    rows = pa.concat_tables(parts).combine_chunks()
    ids = whole(rows["message_id"]).dictionary_encode()
    codes = ids.indices.to_numpy()
    twice = np.bincount(codes, minlength=len(ids.dictionary))[codes] > 1
    if not twice.any():
        return rows
    again = rows.filter(pa.array(twice)).combine_chunks()
    merged = _fold(
        whole(again["message_id"]),
        _known_contributions(again),
        _told_before(again, "published_at", _BORN),
        _told_before(again, "error_seq", _ERROR),
    )
    return pa.concat_tables([rows.filter(pa.array(~twice)), merged])


def _is_any(column: pa.ChunkedArray | pa.Array, values: tuple[str, ...]) -> Any:
    return pc.is_in(column, value_set=pa.array(values))


def _mask(column: pa.ChunkedArray | pa.Array, *values: str) -> Any:
    return _is_any(column, values).to_numpy(zero_copy_only=False)


def _numbers(column: pa.ChunkedArray, otherwise: int = 0) -> Any:
    plain = column.cast(pa.int64())
    return (pc.fill_null(plain, otherwise) if plain.null_count else plain).to_numpy()


def _contributions(events: pa.Table) -> Numbers:
    """What each event adds to its message's life."""
    kind, time, seq = whole(events["type"]), _numbers(events["time"]), _numbers(events["seq"])
    attempts = _numbers(events["data.attempts"])
    state = whole(events["data.state"])
    claims = _mask(kind, "message.claimed")
    own = ~_mask(whole(events["data.kind"]), *_NOT_OF_A_CLAIM)
    gives_up = (
        _mask(kind, *_GIVING_UP)
        | (_mask(kind, "message.completed") & (attempts > 0))
        | (_mask(kind, "message.dead_lettered") & own & (attempts > 0))
    )
    code = pc.index_in(state, value_set=pa.array(STATES)).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return {
        **{name: _mask(kind, *types) for name, types in _COUNTED.items()},
        "failures": _mask(kind, *_FAILING),
        "given_up": gives_up,
        # Ends less beginnings: a sum of times alone would grow with every claim until no number can hold it.
        "settled_us": np.where(claims, -time, np.where(gives_up, time, 0)),
        "published_us": np.where(_mask(kind, "message.published"), time, _NEVER),
        "first_claimed_us": np.where(claims, time, _NEVER),
        "first_seq": seq,
        "last_claimed_us": np.where(claims, time, -_NEVER),
        "updated_us": time,
        "ended_us": np.where(_mask(state, *_TERMINAL), time, -_NEVER),
        "last_seq": seq,
        # The last event decides state and attempts: packed into one number, it is found by a plain maximum.
        "latest": _packed(seq, attempts, code),
    }


def _packed(seq: Any, attempts: Any, code: Any) -> Any:
    return (seq << 20) + np.minimum(attempts, 65_535) * 16 + code


def _known_contributions(known: pa.Table) -> Numbers:
    found = {name: _numbers(known[name]) for name in (*_COUNTED, "failures", "given_up")}
    found["settled_us"] = _numbers(known["given_up_sum"]) - _numbers(known["claimed_sum"])
    for name in (*_FIRST, *_LAST[:-1]):
        column = known[_MOMENTS.get(name, name)]
        found[name] = _numbers(column, _NEVER if name in _FIRST else -_NEVER)
    code = _numbers(pc.index_in(known["state"], value_set=pa.array(STATES))) + 1
    found["latest"] = _packed(found["last_seq"], _numbers(known["attempts"]), code)
    return found


def _births(events: pa.Table) -> pa.Table:
    queue = pc.coalesce(events["data.from"], events["queue"])
    inbox = pc.starts_with(queue, "inbox/")
    name = pc.replace_substring_regex(queue, r"(?s)^.*/", "")
    columns = {
        "message_id": events["message_id"],
        "tenant": events["tenant"],
        "scope": events["scope"],
        "queue": queue,
        "agent": pc.if_else(pc.fill_null(inbox, False), name, events["data.agent"]),
        "channel": events["data.channel"],
        "message_type": events["data.type"],
        "tier": events["data.tier"],
        "hop": pc.fill_null(events["data.hop"], 0),
        "parent_id": events["data.parent"],
        "delivery": pc.is_valid(events["data.subscription"]),
        "correlation_id": events["correlation_id"],
        "causation_id": events["causation_id"],
        "published_by": events["actor"],
        "bytes": events["data.bytes"],
    }
    return pa.table(columns)


def _errors(events: pa.Table) -> pa.Table:
    lost = pc.if_else(pc.equal(events["type"], "message.lease_expired"), "lease_expired", "unknown")
    return pa.table(
        {
            "message_id": events["message_id"],
            "error_seq": events["seq"],
            "error_class": pc.coalesce(events["data.kind"], lost),
            "error_reason": events["data.reason"],
        }
    )


def _told_before(known: pa.Table, sign: str, names: tuple[str, ...]) -> pa.Table:
    return known.filter(pc.is_valid(known[sign])).select(["message_id", *names])


def _fold(ids: pa.Array, parts: Numbers, born: pa.Table, errors: pa.Table) -> pa.Table:
    """One row for each id, of all that stands beside it. A message of whose events none makes sense has no
    life."""
    if not len(ids):
        return _SCHEMA.empty_table()
    found = ids.dictionary_encode()
    codes = found.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    ways = {
        **dict.fromkeys(_SUMS, np.add),
        **dict.fromkeys(_FIRST, np.minimum),
        **dict.fromkeys(_LAST, np.maximum),
    }
    sums = {
        name: way.reduceat(parts[name][order].astype(np.int64, copy=False), begins)
        for name, way in ways.items()
    }
    # Of births the first of a message counts, of failures the last.
    last = errors.sort_by([("error_seq", "descending")])
    return _derived(found.dictionary, sums, _beside(found.dictionary, born), _beside(found.dictionary, last))


def _beside(ids: pa.Array, rows: pa.Table) -> pa.Table:
    """For each id the first row that is about it, or nothing."""
    return rows.take(pc.index_in(ids, value_set=whole(rows["message_id"])))


def _derived(ids: pa.Array, sums: Numbers, born: pa.Table, error: pa.Table) -> pa.Table:
    code = sums["latest"] % 16 - 1
    ended = np.isin(STATES, _TERMINAL)[code]
    state = pa.array(STATES).take(pa.array(code))
    published, claimed = sums["published_us"], sums["first_claimed_us"]
    settled, finished = sums["settled_us"], sums["ended_us"]
    claims, open_claim = sums["claims"], sums["claims"] - sums["given_up"]
    # Of the last claim only the beginning is known while it lasts, or when it was ended from outside.
    left = np.where(open_claim == 0, 0, np.where(ended, finished, sums["last_claimed_us"]))
    is_worked = (claims > 0) & ((open_claim == 0) | (open_claim == 1))
    is_born = published != _NEVER
    columns: dict[str, Any] = {
        "message_id": ids,
        **{name: born[name] for name in _BORN},
        "state": state,
        "outcome": pc.if_else(pa.array(ended), state, "open"),
        **{
            column: _moment(sums[name], sums[name] != (_NEVER if name in _FIRST else -_NEVER))
            for name, column in _MOMENTS.items()
        },
        "finished_at": _moment(finished, ended),
        "attempts": sums["latest"] // 16 % 65_536,
        **{name: sums[name] for name in (*_COUNTED, "failures", "given_up", "first_seq", "last_seq")},
        "wait_us": _length(claimed - published, is_born & (claimed != _NEVER)),
        "work_us": _length(settled + left, is_worked),
        "total_us": _length(finished - published, is_born & ended),
        **{name: error[name] for name in _ERROR},
        # Lakes have both; only their difference is ever asked for.
        "claimed_sum": np.zeros(len(ids), np.int64),
        "given_up_sum": settled,
        "day": days_of(ids),
    }
    return pa.table({name: columns[name] for name in _SCHEMA.names}).cast(_SCHEMA)


def _moment(micros: Any, is_known: Any) -> pa.Array:
    return pa.array(micros, pa.int64(), mask=~is_known).view(_TIME)


def _length(micros: Any, is_known: Any) -> pa.Array:
    """A length of time that came out negative says that clocks were wrong, and is not known."""
    return pa.array(micros, mask=~is_known | (micros < 0))


def odd_lives(rows: pa.Table) -> pa.Array:
    """What is odd about each life; null where nothing is."""
    born, claimed, finished = rows["published_at"], rows["first_claimed_at"], rows["finished_at"]
    early = pc.or_kleene(pc.less(claimed, born), pc.less(finished, born))
    unended = pc.greater(pc.subtract(rows["claims"], rows["given_up"]), 1)
    cases = pc.make_struct(pc.is_null(born), pc.fill_null(early, False), pc.fill_null(unended, False))
    return pc.case_when(
        cases,
        "its publishing is not in the ledger",
        "its times are out of order",
        "claims without an end",
    )
