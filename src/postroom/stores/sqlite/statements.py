"""The store's SQL by name, read from `queries.sql`. Column lists are filled in from the row types."""

import re
from importlib import resources
from string import Template
from typing import Any

import apsw

from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS

HERE = "postroom.stores.sqlite"

MUTABLE = (
    "state",
    "sort_key",
    "due_at",
    "priority_tier",
    "priority_score",
    "updated_at",
    "expires_at",
    "visible_at",
    "attempts",
    "claims",
    "token",
    "claimed_by",
    "claimed_at",
    "lease_until",
    "failure_reason",
    "failure_kind",
    "result",
    "finished_at",
)


def _columns(names: tuple[str, ...], table: str = "") -> str:
    return ", ".join(f"{table}{name}" for name in names)


def _alike(name: str, place: int) -> str:
    """A column of many rows that are alike: only the id and what hangs on it are each one's own."""
    special = {
        "id": "wanted.value",
        "correlation_id": f"coalesce(?{place}, wanted.value)",
        "seq": f"?{place} + wanted.key",
    }
    return special.get(name, f"?{place}")


def _load() -> dict[str, str]:
    text = resources.files(HERE).joinpath("queries.sql").read_text("utf-8")
    filled = Template(text).substitute(
        ROW=_columns(ROW_FIELDS, "m."),
        CONTENT=_columns(CONTENT_FIELDS, "c."),
        ARCHIVED_CONTENT=_columns(CONTENT_FIELDS, "m."),
        ROW_NAMES=_columns(ROW_FIELDS),
        CONTENT_NAMES=_columns(CONTENT_FIELDS),
        ROW_MARKS=", ".join("?" * len(ROW_FIELDS)),
        ROW_ALIKE=", ".join(_alike(name, place) for place, name in enumerate(ROW_FIELDS, 1)),
        ROW_NEXT=str(len(ROW_FIELDS) + 1),
        CONTENT_MARKS=", ".join("?" * len(CONTENT_FIELDS)),
        MUTABLE=", ".join(f"{name} = ?" for name in MUTABLE),
    )
    blocks = re.split(r"^-- name: (\w+)\n", filled, flags=re.MULTILINE)[1:]
    names, bodies = blocks[::2], blocks[1::2]
    return {
        name: re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).strip()
        for name, body in zip(names, bodies, strict=True)
    }


SQL = _load()


def one(cursor: apsw.Cursor) -> Any:
    """The row that a query like count(*) always has."""
    found = cursor.fetchone()
    assert found is not None
    return found
