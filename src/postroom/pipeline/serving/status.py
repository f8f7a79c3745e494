"""How the lake stands beside the store: what it has, what it lacks, and what its last run did."""

import contextlib
from typing import Any

import msgspec

from postroom.pipeline.jobs.expect import standing
from postroom.pipeline.jobs.progress import RunProgress
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.lease import LeaseHolder, read_holder
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import ALL, LEDGER, QUARANTINE, RUNS
from postroom.pipeline.serving.insights import plain
from postroom.pipeline.sources.sqlite import SqliteSource


def status(lake: Lake, source: SqliteSource | None) -> dict[str, Any]:
    tables = []
    for table in ALL:
        found = lake.snapshot(table)
        if not found.exists:
            continue
        files, positions = found.files, found.positions
        tables.append(
            {
                "table": table.name,
                "version": found.version,
                "rows": sum(file.rows for file in files),
                "files": len(files),
                "bytes": sum(file.size for file in files),
                "position": positions.ledger or positions.records,
            }
        )
    snapshot = source.snapshot() if source is not None else None
    taken = lake.positions(LEDGER).ledger
    running = read_holder(lake)
    return {
        "lake": lake.location,
        "position": taken,
        "head": snapshot.head if snapshot else None,
        "behind": snapshot.head - taken if snapshot else None,
        "quarantined": sum(file.rows for file in lake.files(QUARANTINE)),
        "expectations": _expectations(lake),
        "running": _running(running) if running else None,
        "last_run": last_run(lake),
        "tables": tables,
    }


def _expectations(lake: Lake) -> dict[str, Any]:
    """How many there are, and those that are broken."""
    found = [plain(row) for row in standing(lake)]
    return {"checked": len(found), "broken": [row for row in found if row["broken"]]}


def _running(holder: LeaseHolder) -> dict[str, Any]:
    step = None
    if holder.progress is not None:
        with contextlib.suppress(msgspec.ValidationError):
            told = msgspec.convert(holder.progress, RunProgress)
            step = {**msgspec.structs.asdict(told), "left": told.left}
    return {"pid": holder.pid, "since": holder.since, "progress": step}


def last_run(lake: Lake) -> list[dict[str, Any]]:
    files = sorted(lake.files(RUNS), key=lambda file: str(file.high.get("started_at")))
    if not files:
        return []
    rows = [row for batch in read_batches(files[-1].uri) for row in batch.to_pylist()]
    # Files of several runs may have been put together.
    newest = max(rows, key=lambda row: row["started_at"])["run_id"]
    return [plain(row) for row in rows if row["run_id"] == newest]
