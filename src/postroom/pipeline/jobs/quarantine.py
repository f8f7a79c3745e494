"""Rows that broke an expectation, kept with the reason. The run goes on; the same finding is kept once."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from postroom.clock import SECOND, Clock
from postroom.pipeline.jobs.run_log import append_rows
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import QUARANTINE

MOST = 1000


class QuarantineFinding(msgspec.Struct, frozen=True, kw_only=True):
    table: str
    key: str
    reason: str
    row: dict[str, Any] = {}
    seq: int | None = None


def known(lake: Lake) -> set[tuple[str, str, str]]:
    names = ["table", "key", "reason"]
    return {
        (row["table"], row["key"], row["reason"])
        for file in lake.files(QUARANTINE)
        for batch in read_batches(file.uri, names)
        for row in batch.to_pylist()
    }


def bad_events(lake: Lake) -> list[int]:
    """Numbers of events whose content is not what their hash says: nothing may be built on them."""
    return sorted(
        row["seq"]
        for file in lake.files(QUARANTINE)
        for batch in read_batches(file.uri, ["table", "seq", "reason"])
        for row in batch.to_pylist()
        if row["table"] == "bronze/ledger" and row["seq"] is not None and "hash" in row["reason"]
    )


def keep(lake: Lake, findings: Sequence[QuarantineFinding], run_id: str, clock: Clock) -> int:
    """How many of them are new."""
    before = known(lake) if findings else set()
    moment = datetime.fromtimestamp(clock.now() / SECOND, UTC)
    rows = [
        {
            "table": each.table,
            "key": each.key,
            "reason": each.reason,
            "row": json.dumps(each.row, default=str),
            "seq": each.seq,
            "found_at": moment,
            "run_id": run_id,
        }
        for each in findings[:MOST]
        if (each.table, each.key, each.reason) not in before
    ]
    if rows:
        append_rows(lake, QUARANTINE, rows)
    return len(rows)
