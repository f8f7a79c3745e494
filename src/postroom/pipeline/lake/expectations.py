"""What every table must be like, declared: keys, what is never missing, ranges, sums and references."""

import msgspec

from postroom.pipeline.lake.tables import (
    AGENT_DAY,
    BRONZE,
    CHANNEL_DAY,
    CHUNKS,
    COST_DAY,
    FAILURE_CAUSES,
    GOLD,
    HANDOFF_GRAPH,
    HANDOFFS,
    LEDGER,
    MESSAGE_LIFE,
    MESSAGES,
    QUEUE_HOUR,
    RECORDS,
    SILVER,
    SLA,
    SPANS,
    TRACES,
    TURNS,
    Table,
)

LATEST_US = 7_258_118_400_000_000
"""The year 2200: a later time is none."""
UNIQUE = "key is unique"
UP_TO_DATE = "is as far as the store was"


class Expectation(msgspec.Struct, frozen=True):
    """A name for people, and the rows that break it, as a condition in SQL."""

    name: str
    broken: str


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """Of one table. `refers` names columns that a row of another table, of the same day, must have too."""

    never_null: tuple[str, ...] = ()
    at_least: dict[str, int] = {}
    at_most: dict[str, int] = {}
    one_of: dict[str, tuple[str, ...]] = {}
    sums: dict[str, tuple[str, ...]] = {}
    refers: tuple[tuple[str, ...], Table] | None = None

    def conditions(self) -> list[Expectation]:
        found = [Expectation(f"{name} is there", f"{name} IS NULL") for name in self.never_null]
        found += [
            Expectation(f"{name} is at least {low}", f"{name} < {low}") for name, low in self.at_least.items()
        ]
        found += [
            Expectation(f"{name} is at most {high}", f"{name} > {high}")
            for name, high in self.at_most.items()
        ]
        for name, values in self.one_of.items():
            listed = ", ".join(f"'{value}'" for value in values)
            found.append(Expectation(f"{name} is known", f"{name} NOT IN ({listed})"))
        for name, parts in self.sums.items():
            found.append(Expectation(f"{name} is the sum of its parts", f"{name} <> {' + '.join(parts)}"))
        return found


_ENDED = ("completed", "dead", "expired", "cancelled")
_COUNTS = {"messages": (*_ENDED, "open")}
_TRACE = (("tenant", "trace_id"), TRACES)

EXPECTED: dict[str, Expected] = {
    LEDGER.name: Expected(
        never_null=("seq", "time", "type", "tenant", "hash"), at_least={"seq": 1, "time": 0},
        at_most={"time": LATEST_US},
    ),
    MESSAGES.name: Expected(
        never_null=("id", "seq", "ended_seq", "state"), at_least={"attempts": 0, "claims": 0},
        one_of={"state": _ENDED},
    ),
    RECORDS.name: Expected(never_null=("id", "kind"), at_least={"id": 1}),
    MESSAGE_LIFE.name: Expected(
        never_null=("message_id", "state", "outcome", "last_seq", "day"),
        at_least={"attempts": 0, "claims": 0, "failures": 0},
        one_of={"outcome": (*_ENDED, "open")},
    ),
    TURNS.name: Expected(
        never_null=("record_id", "day"),
        at_least={"input_tokens": 0, "output_tokens": 0, "cost_usd": 0, "duration_us": 0},
    ),
    SPANS.name: Expected(
        never_null=("trace_id", "span_id", "state"), at_least={"depth": 0, "children": 0, "turns": 0},
        refers=_TRACE,
    ),
    TRACES.name: Expected(never_null=("trace_id", "root_id"), at_least={"messages": 1, "fan_out": 0}),
    HANDOFFS.name: Expected(
        never_null=("trace_id", "message_id", "from_agent", "to_agent"), refers=_TRACE
    ),
    AGENT_DAY.name: Expected(never_null=("day", "agent"), at_least={"turns": 0, "cost_usd": 0}, sums=_COUNTS),
    QUEUE_HOUR.name: Expected(never_null=("day", "hour", "queue"), at_least={"messages": 1}, sums=_COUNTS),
    CHANNEL_DAY.name: Expected(never_null=("day", "channel"), at_least={"conversations": 0, "answered": 0}),
    COST_DAY.name: Expected(never_null=("day",), at_least={"turns": 1, "cost_usd": 0}),
    FAILURE_CAUSES.name: Expected(never_null=("day", "queue"), at_least={"messages": 1, "failures": 0}),
    HANDOFF_GRAPH.name: Expected(never_null=("day", "from_agent", "to_agent"), at_least={"handoffs": 1}),
    SLA.name: Expected(never_null=("day", "queue"), at_least={"ended": 0, "failed": 0}),
    CHUNKS.name: Expected(never_null=("message_id", "text"), at_least={"part": 0}),
}  # fmt: skip

CHECKED = (*BRONZE, *SILVER, *GOLD, CHUNKS)
