"""The benchmark's years of events are a ledger like any other: numbered on, each name once, ever later."""

import pyarrow as pa
from benchmarks.lakes.repeated import repeated

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.sources.sqlite import SqliteSource


def test_copies_of_a_store_go_on_where_the_one_before_ended(month: SqliteSource) -> None:
    first = month.snapshot()
    source = repeated(month.path, 2 * first.head + first.head // 2)
    head = source.snapshot()
    events = pa.Table.from_batches(source.packed(0, head.head))
    assert events["seq"].to_pylist() == list(range(1, head.head + 1))
    assert pc.all(pc.greater_equal(events["time"][1:], events["time"][:-1])).as_py()
    once = pc.count_distinct(events["message_id"][: first.head]).as_py()
    assert pc.count_distinct(events["message_id"][: 2 * first.head]).as_py() == 2 * once
    ended = pa.Table.from_batches(source.ended(0, 2 * first.head))
    assert pc.count_distinct(ended["id"]).as_py() == ended.num_rows
    assert pc.all(pc.is_in(ended["id"], value_set=events["message_id"].combine_chunks())).as_py()
    records = pa.Table.from_batches(source.records(0, head.records))
    assert records["id"].to_pylist() == list(range(1, head.records + 1))
    # The times of a turn stand in its words, and move with it.
    turns = records.filter(pc.equal(records["kind"], "turn"))
    told = pc.struct_field(pc.extract_regex(turns["data"], r'"ended_at":(?P<at>\d+)'), "at")
    assert pc.all(pc.equal(told.cast(pa.int64()), turns["created_at"])).as_py()
