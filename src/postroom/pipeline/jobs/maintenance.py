"""Keeping a lake in shape: few large files instead of many small ones, and nothing that nobody needs."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from postroom.pipeline.lake.lake import Lake, named
from postroom.pipeline.lake.tables import ALL, CHUNKS, MESSAGE_LIFE, MESSAGES, SPANS, Table

Told = Callable[[str, dict[str, Any]], None]
TARGET_BYTES = 128 << 20
# What is looked for by conversation or message lies together.
_ORDER = {
    MESSAGES.name: ["correlation_id"],
    MESSAGE_LIFE.name: ["correlation_id"],
    SPANS.name: ["trace_id"],
    CHUNKS.name: ["correlation_id"],
}


def compact(lake: Lake, told: Told | None = None, *, sort: bool = False) -> dict[str, dict[str, Any]]:
    """Small files become large ones; with `sort`, rows that are looked up together also lie together."""
    done = {}
    for table, found in _tables(lake):
        with named(lake, table):
            columns = _ORDER.get(table.name) or []
            if sort and columns:
                metrics = found.optimize.z_order(columns, target_size=TARGET_BYTES)
            else:
                metrics = found.optimize.compact(target_size=TARGET_BYTES)
        done[table.name] = {
            "files_removed": metrics.get("numFilesRemoved", 0),
            "files_added": metrics.get("numFilesAdded", 0),
        }
        if told is not None:
            told(table.name, done[table.name])
    return done


def vacuum(
    lake: Lake, told: Told | None = None, *, keep: timedelta = timedelta(days=7), dry_run: bool = False
) -> dict[str, dict[str, Any]]:
    """Delete files that no version of the last days uses, also those that a killed run left behind."""
    done = {}
    hours = int(keep.total_seconds() // 3600)
    for table, found in _tables(lake):
        with named(lake, table):
            gone = found.vacuum(hours, dry_run=dry_run, enforce_retention_duration=False, full=True)
            if not dry_run:
                found.create_checkpoint()
        done[table.name] = {"files": len(gone)}
        if told is not None:
            told(table.name, done[table.name])
    return done


def _tables(lake: Lake) -> list[tuple[Table, Any]]:
    opened = [(table, lake.open(table)) for table in ALL]
    return [(table, found) for table, found in opened if found is not None]
