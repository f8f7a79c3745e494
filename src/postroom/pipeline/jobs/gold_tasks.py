"""The tasks of gold: the sums of some days, of all tables that want them, from one look at their silver."""

from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa

from postroom.pipeline.gold.agents import agent_day
from postroom.pipeline.gold.channels import channel_day
from postroom.pipeline.gold.costs import cost_day
from postroom.pipeline.gold.failures import failure_causes
from postroom.pipeline.gold.handoffs import handoff_graph
from postroom.pipeline.gold.queues import queue_hour, sla
from postroom.pipeline.jobs.workers import Parcel
from postroom.pipeline.lake.lake import LakeFile
from postroom.pipeline.lake.reading import scan_rows
from postroom.pipeline.lake.tables import (
    AGENT_DAY,
    BY_NAME,
    CHANNEL_DAY,
    COST_DAY,
    FAILURE_CAUSES,
    HANDOFF_GRAPH,
    HANDOFFS,
    MESSAGE_LIFE,
    QUEUE_HOUR,
    SLA,
    SPANS,
    TRACES,
    TURNS,
    Table,
)


class Sum(msgspec.Struct, frozen=True):
    """A gold table, the silver tables it is made of, and how. `days` are tables that only tell which days
    have changed."""

    table: Table
    inputs: tuple[Table, ...]
    make: Callable[..., pa.Table]
    days: tuple[Table, ...] = ()


SUMS = (
    Sum(QUEUE_HOUR, (MESSAGE_LIFE,), queue_hour),
    Sum(AGENT_DAY, (MESSAGE_LIFE, TURNS), agent_day),
    Sum(SLA, (MESSAGE_LIFE,), sla),
    Sum(FAILURE_CAUSES, (MESSAGE_LIFE,), failure_causes),
    Sum(COST_DAY, (TURNS,), cost_day),
    Sum(CHANNEL_DAY, (TRACES, SPANS), channel_day),
    # Hand-offs have no number of their own.
    Sum(HANDOFF_GRAPH, (HANDOFFS,), handoff_graph, days=(TRACES,)),
)
_BY_TABLE = {each.table.name: each for each in SUMS}
NEEDED = {
    MESSAGE_LIFE.name: (
        "message_id", "tenant", "scope", "queue", "agent", "outcome", "published_at", "failures", "claims",
        "wait_us", "work_us", "total_us", "error_class", "error_reason", "last_seq", "day",
    ),
    TURNS.name: (
        "tenant", "agent", "outcome", "provider", "model", "duration_us", "input_tokens",
        "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_usd", "day",
    ),
    TRACES.name: ("tenant", "trace_id", "channel", "started_at", "day"),
    SPANS.name: ("tenant", "trace_id", "name", "parent_id", "started_at"),
    HANDOFFS.name: ("tenant", "from_agent", "to_agent", "latency_us", "outcome", "day"),
}  # fmt: skip
"""The columns that sums are made of."""


class DaysOfSilver(msgspec.Struct, frozen=True):
    """Some days: the gold tables that want each, and the files of silver that hold them."""

    wanted: dict[str, frozenset[str]]
    files: dict[str, list[LakeFile]]

    def read(self, table: str, days: frozenset[str]) -> pa.Table:
        return scan_rows(
            [file for file in self.files[table] if file.cut in days], BY_NAME[table], NEEDED[table]
        )


class SumTasks(msgspec.Struct, frozen=True):
    portions: list[DaysOfSilver]

    def __call__(self, number: int) -> Iterator[Parcel]:
        days = self.portions[number]
        read: dict[tuple[str, frozenset[str]], pa.Table] = {}
        for name, wanted in days.wanted.items():
            each = _BY_TABLE[name]
            tables = []
            for table in each.inputs:
                if (table.name, wanted) not in read:
                    read[table.name, wanted] = days.read(table.name, wanted)
                tables.append(read[table.name, wanted])
            yield name, each.make(*tables).select(each.table.schema.names).cast(each.table.schema)
