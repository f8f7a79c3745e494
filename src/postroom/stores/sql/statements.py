"""SQL by name, read from `.sql` files. A dialect's own file replaces what the shared one says otherwise.

`$ROW` and the like stand for column lists. `@among(column, kind)`, `@upsert(table; key; columns)` and `@lock`
stand for what the dialect says. Each is filled in once, when a store is opened.
"""

import re
from importlib import resources
from string import Template

from postroom.kernel.ports import AuditEntry
from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS
from postroom.stores.sql.dialect import Dialect, Statements

# Columns that may change while a message stays in its queue.
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
# And those that change when it moves to another one.
MOVED = ("queue_id", "line", "origin_queue_id", "scope_id", "message_type", "hop", "idempotency_key")
AUDIT_FIELDS = AuditEntry.__struct_fields__


def columns(names: tuple[str, ...], table: str = "") -> str:
    return ", ".join(f"{table}{name}" for name in names)


def marks(names: tuple[str, ...]) -> str:
    return ", ".join("?" * len(names))


def assignments(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = ?" for name in names)


_LISTS = {
    "ROW": columns(ROW_FIELDS, "m."),
    "CONTENT": columns(CONTENT_FIELDS, "c."),
    "ARCHIVED_CONTENT": columns(CONTENT_FIELDS, "m."),
    "ROW_NAMES": columns(ROW_FIELDS),
    "ROW_MARKS": marks(ROW_FIELDS),
    "CONTENT_NAMES": columns(CONTENT_FIELDS),
    "CONTENT_MARKS": marks(CONTENT_FIELDS),
    "SET_CONTENT": assignments(CONTENT_FIELDS),
    "SET_MUTABLE": assignments(MUTABLE),
    "SET_MOVED": assignments((*MUTABLE, *MOVED)),
    "AUDIT_NAMES": columns(AUDIT_FIELDS),
    "AUDIT_MARKS": marks(AUDIT_FIELDS),
}


def load(dialect: Dialect, *packages: str, lists: dict[str, str] | None = None) -> Statements:
    """The statements of `queries.sql` in these packages, later ones in place of earlier ones."""
    found: Statements = {}
    for package in ("postroom.stores.sql", *packages):
        text = resources.files(package).joinpath("queries.sql").read_text("utf-8")
        blocks = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
        for name, block in zip(blocks[::2], blocks[1::2], strict=True):
            body = re.sub(r"^--.*\n", "", block, flags=re.MULTILINE).strip().removesuffix(";")
            filled = Template(body).substitute(_LISTS, **(lists or {}))
            found[name] = _expand(filled, dialect)
    return found


def _expand(sql: str, dialect: Dialect) -> str:
    sql = re.sub(r"@among\(([^,]+), (\w+)\)", lambda m: dialect.among(m[1], m[2]), sql)
    sql = re.sub(r"@upsert\(([^;]+);([^;]+);([^)]+)\)", lambda m: _upsert(dialect, m), sql)
    return sql.replace("@lock", dialect.lock).rstrip()


def _upsert(dialect: Dialect, match: re.Match[str]) -> str:
    table, key, rest = (part.strip() for part in match.groups())
    return dialect.upsert(table, key.split(", "), rest.split(", "))
