"""Documents: one row each, found by kind and key."""

from collections.abc import Sequence
from typing import Any

import apsw

from postroom.kernel import jsontext
from postroom.kernel.model import Document
from postroom.stores.sqlite.statements import one

LAST_KEY = "\U0010ffff"


def read_document(db: apsw.Connection, tenant: str, kind: str, key: str) -> Document | None:
    """Also one that is gone."""
    found = db.execute(
        "SELECT kind, key, version, data, created_at, updated_at, gone FROM documents"
        " WHERE tenant = ? AND kind = ? AND key = ?",
        (tenant, kind, key),
    ).fetchone()
    return to_document(found) if found else None


# Bounded below once only: of two bounds SQLite would choose one to search by, and walk past the other.
LISTED = """
SELECT kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE tenant = ?1 AND kind = ?2 AND key >= ?3 AND key < ?4 AND key <> ?5 AND NOT gone ORDER BY key LIMIT ?6
"""


def read_documents(
    db: apsw.Connection, tenant: str, kind: str, prefix: str, after: str, limit: int
) -> list[Document]:
    """Those that are there, by key."""
    bounds = (max(prefix, after), prefix + LAST_KEY, after)
    return [to_document(row) for row in db.execute(LISTED, (tenant, kind, *bounds, limit))]


def count_changes(db: apsw.Connection, tenant: str, kind: str) -> int:
    """Also of those that were forgotten, so that the number never goes back."""
    found = db.execute(
        "SELECT coalesce(sum(version), 0) FROM documents WHERE tenant = ? AND kind = ?", (tenant, kind)
    )
    forgotten = db.execute("SELECT value FROM memos WHERE name = ?", (count_memo(tenant, kind),)).fetchone()
    return one(found)[0] + (int(forgotten[0]) if forgotten else 0)


def count_memo(tenant: str, kind: str) -> str:
    return f"changes:{kind}/{tenant}"


def write_document(db: apsw.Connection, tenant: str, document: Document) -> None:
    db.execute(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tenant,
            document.kind,
            document.key,
            document.version,
            jsontext.text(document.data),
            document.created_at,
            document.updated_at,
            document.gone,
        ),
    )


def to_document(row: Sequence[Any]) -> Document:
    kind, key, version, data, created_at, updated_at, gone = row
    return Document(
        kind=kind,
        key=key,
        version=version,
        data=jsontext.decode(data),
        created_at=created_at,
        updated_at=updated_at,
        gone=bool(gone),
    )
