"""The tasks of conversations: on which day each begins, and what it looks like."""

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa

from postroom.pipeline.jobs.results import tell_files
from postroom.pipeline.jobs.workers import Parcel
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import LakeFile
from postroom.pipeline.lake.reading import declared_as, read_rows, scan_rows
from postroom.pipeline.lake.tables import MESSAGE_LIFE, TURNS
from postroom.pipeline.lake.upsert import Target, find_old, keys_of, parts_of, write_part
from postroom.pipeline.silver import conversations as talk
from postroom.pipeline.silver.events import days_of, whole
from postroom.pipeline.silver.trees import build_trees

MOVED = pa.schema([("key", pa.string()), ("day", pa.date32())])
"""Conversations, with the day under which each is kept."""
_SLOT = "#"


class DayTasks(msgspec.Struct, frozen=True):
    """Between which days conversations have messages, as some lives tell."""

    lives: list[list[LakeFile]]
    buckets: int

    def __call__(self, number: int) -> Iterator[Parcel]:
        names = ["tenant", "correlation_id", "message_id", "day"]
        lives = scan_rows(self.lives[number], MESSAGE_LIFE, names)
        rows = pa.table({"key": talk.conversation_keys(lives), "first": lives["day"], "last": lives["day"]})
        seen = _between(rows)
        for bucket, part in _divided(seen, whole(seen["key"]), self.buckets):
            yield str(bucket), part


def _between(rows: pa.Table) -> pa.Table:
    sums = rows.group_by("key").aggregate([("first", "min"), ("last", "max")])
    return sums.select(["key", "first_min", "last_max"]).rename_columns(["key", "first", "last"])


def _divided(rows: pa.Table, keys: pa.Array, count: int) -> Iterator[tuple[int, pa.Table]]:
    """Rows of one key together, in so many parts."""
    if count == 1:
        yield 0, rows
        return
    found = keys.dictionary_encode()
    each = np.fromiter((crc32(key.encode()) % count for key in found.dictionary.to_pylist()), np.int64)
    place = each[found.indices.to_numpy()]
    for number in np.unique(place).tolist():
        yield number, rows.filter(pa.array(place == number))


def gather_days(key: str, parts: list[pa.Table]) -> Iterator[Parcel]:
    """Only of conversations with several days, by the first."""
    seen = _between(pa.concat_tables(parts))
    several = seen.filter(pc.less(seen["first"], seen["last"]))
    yield key, several.select(["key", "first"]).rename_columns(MOVED.names)


class SpentTasks(msgspec.Struct, frozen=True):
    """What turns cost, for every file of lives that may be about their messages. The first task has nothing
    to tell, and tells it for each."""

    lives: dict[str, LakeFile]
    turns: list[list[LakeFile]]

    def __call__(self, number: int) -> Iterator[Parcel]:
        if not number:
            yield from ((key, NO_TURNS) for key in self.lives)
            return
        read = scan_rows(self.turns[number - 1], TURNS, talk.TURN)
        read = read.filter(pc.is_valid(read["message_id"])).combine_chunks()
        days = read.append_column("day", days_of(whole(read["message_id"])))
        places: dict[str | None, list[str]] = {}
        for key, file in self.lives.items():
            places.setdefault(file.cut, []).append(key)
        for day, rows in parts_of(days, "day"):
            yield from ((key, rows.drop_columns(["day"])) for key in places.get(day, ()))


NO_TURNS = declared_as(TURNS, talk.TURN).empty_table()


class GatherLifeSpans(msgspec.Struct, frozen=True, kw_only=True):
    """Spans of a file of lives, by the day under which their conversation is kept."""

    lives: dict[str, LakeFile]
    moved: Any
    days: frozenset[str] | None = None
    """Only conversations of these days; None for all."""
    slots: dict[str, int] = {}
    """In how many parts a day is made; one where nothing is said."""

    def __call__(self, key: str, parts: list[pa.Table]) -> Iterator[Parcel]:
        lives = read_rows(self.lives[key], MESSAGE_LIFE, [*talk.LIFE, "day"])
        spent = talk.spent_on_messages(pa.concat_tables(parts))
        for day, rows in spans_by_day(lives, talk.conversation_keys(lives), self.moved, spent):
            if self.days is None or day in self.days:
                for slot, part in _divided(rows, keys_of(rows, talk.KEY), self.slots.get(day, 1)):
                    yield f"{day}{_SLOT}{slot}", part


def spans_by_day(
    lives: pa.Table, keys: pa.Array, moved: pa.Table, spent: pa.Table
) -> Iterator[tuple[str, pa.Table]]:
    """A message is kept under its own day, unless its conversation is known to be kept under another."""
    kept = whole(moved["day"]).take(pc.index_in(keys, value_set=whole(moved["key"])))
    day = pc.coalesce(kept, whole(lives["day"]))
    lives = lives.set_column(lives.schema.get_field_index("day"), "day", day)
    for name, rows in parts_of(talk.conversation_spans(lives, spent), "day"):
        yield name or "", rows


class SpanTasks(msgspec.Struct, frozen=True, kw_only=True):
    """Spans of some conversations alone: those that `moved` tells of."""

    lives: list[list[LakeFile]]
    moved: Any
    spent: Any

    def __call__(self, number: int) -> Iterator[Parcel]:
        names = [*talk.LIFE, "day"]
        lives = scan_rows(self.lives[number], MESSAGE_LIFE, names)
        keys = talk.conversation_keys(lives)
        wanted = pc.is_in(keys, value_set=whole(self.moved["key"]))
        lives = lives.filter(wanted).combine_chunks()
        yield from spans_by_day(lives, keys.filter(wanted), self.moved, self.spent)


class GatherSpans(msgspec.Struct, frozen=True):
    """Traces, spans and hand-offs of a day, in the place of what is kept of the same conversations."""

    targets: list[Target]

    def __call__(self, key: str, parts: list[pa.Table]) -> Iterator[Parcel]:
        day = key.partition(_SLOT)[0]
        built = list(build_trees(iter([talk.in_order(pa.concat_tables(parts))])))
        keys = pc.unique(pa.concat_arrays([keys_of(traces, talk.KEY) for traces, *_ in built]))
        for target, tables in zip(self.targets, zip(*built, strict=True), strict=True):
            old = find_old(target, day, talk.KEY, keys)
            yield from tell_files(target.table, write_part(target, day, [*tables, *old.others]), old.files)
