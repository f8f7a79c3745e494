"""What was found, as a page of the reference."""

from typing import Any

from benchmarks.steadily.samples import Part

HEAD = """# Steady load beside long questions

Measured on {date} with `scripts/bench steady`: {cpus} CPUs, {file_system}, Python {python}, PostgreSQL
{postgres} with its defaults. One process published {rate} messages a second for {minutes} minutes,
{consumers} others claimed and completed them, and the server shared the machine with all of them and, by the
load of {load:.1f}, with other programs. Of {messages:,} messages each was completed once, nothing was left
over, and every hash of the ledger was checked afterwards. The database had {megabytes:,.0f} MB then.

![dead rows and the time of claims](../../benchmarks/results/steady.png)

| {columns} |
| --- {lines}|"""
COLUMNS = (
    "",
    "minutes",
    "completed",
    "claim p50",
    "claim p99",
    "of the first third",
    "of the last third",
    "wait p99",
    "dead rows at first",
    "most",
    "at the end",
    "most that waited",
)

TAIL = """
*Wait* is the time from publish until a consumer has the message; consumers that find nothing look again
after 50 ms.

What a long transaction may still see cannot be cleaned away: that is how PostgreSQL works, and no table whose
rows change can avoid it. So dead rows stay within bounds while questions take turns, each two minutes long,
and grow while one transaction stays open all the time; they go when it ends. Claims do not pass over them
([decision 254](../decisions/254-nothing-changes-with-every-commit.md)), so their time does not grow with
them. The pipeline reads in short transactions and is never such a transaction."""


def render(parts: list[Part], conditions: dict[str, Any]) -> str:
    head = HEAD.format(columns=" | ".join(COLUMNS), lines="| ---: " * (len(COLUMNS) - 1), **conditions)
    return "\n".join([head, *map(_row, parts), TAIL, ""])


def _row(part: Part) -> str:
    times = (part.claim_p50, part.claim_p99, part.claim_first, part.claim_last, part.wait_p99)
    rows = (part.dead_first, part.dead_most, part.dead_last, part.pending_most)
    told = [f"{ms:.1f} ms" for ms in times] + [f"{count:,}" for count in rows]
    return f"| {part.name} | {part.minutes:.0f} | {part.rate:.0f}/s | {' | '.join(told)} |"
