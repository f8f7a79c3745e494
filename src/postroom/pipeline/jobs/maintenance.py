"""Keeping a lake in shape: few large files instead of many small ones, and nothing that nobody needs."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from postroom.pipeline.lake.lake import Lake, LakeFile, named
from postroom.pipeline.lake.rewrite import merge_files
from postroom.pipeline.lake.tables import ALL, Table

Told = Callable[[str, dict[str, Any]], None]
TARGET_BYTES = 128 << 20


def compact(
    lake: Lake,
    told: Told | None = None,
    *,
    sort: bool = False,
    least: int = 2,
    most_bytes: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Small files become large, sorted ones; with `sort`, large ones are sorted anew too.

    Each group of files is a commit of its own, so nothing is lost when this is broken off. Groups of fewer
    files than `least` are left as they are; after `most_bytes` the rest waits for the next time.
    """
    done = {}
    left = most_bytes
    for table, _ in _tables(lake):
        removed = added = 0
        with named(lake, table):
            for group in groups_of(lake.files(table), every=sort):
                size = sum(file.size for file in group)
                if (len(group) < least and not sort) or (left is not None and size > left):
                    continue
                left = None if left is None else left - size
                written = merge_files(lake, table, group)
                lake.commit(
                    table, [written], None, removed=group, about={"reason": "compaction"}, changes_data=False
                )
                removed, added = removed + len(group), added + 1
        done[table.name] = {"files_removed": removed, "files_added": added}
        if told is not None:
            told(table.name, done[table.name])
    return done


def groups_of(files: list[LakeFile], *, every: bool = False) -> list[list[LakeFile]]:
    """Files of one part each that together make one of the size wanted."""
    groups: list[list[LakeFile]] = []
    size, part = 0, None
    for file in sorted(files, key=lambda file: (file.cut or "", *_bounds(file), file.path)):
        if file.size >= TARGET_BYTES // 2 and not every:
            continue
        if not groups or file.cut != part or size + file.size > TARGET_BYTES:
            groups.append([])
            size, part = 0, file.cut
        groups[-1].append(file)
        size += file.size
    return [group for group in groups if len(group) > 1 or every]


def _bounds(file: LakeFile) -> tuple[str, ...]:
    return tuple(f"{value!s:>24}" for value in file.low.values())


def vacuum(
    lake: Lake, told: Told | None = None, *, keep: timedelta = timedelta(days=7), dry_run: bool = False
) -> dict[str, dict[str, Any]]:
    """Delete files that no version of the last days uses, also those that a killed run left behind."""
    done = {}
    hours = int(keep.total_seconds() // 3600)
    for table, found in _tables(lake):
        with named(lake, table):
            if not dry_run:
                lake.fence(table)
                found.update_incremental()
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
