"""Accounts, reservations and holds on SQLite: for the transaction, and for readers."""

from collections.abc import Iterable
from typing import Any

import apsw

from postroom.kernel import jsontext
from postroom.kernel.budgets.model import Budget, HeldMessage, Reservation
from postroom.kernel.rows import ROW_FIELDS, Row

# An account with what is reserved of it at a moment (parameter 1).
_ACCOUNT = """
SELECT a.name, a.own_limit, a.spent, a.peak, a.frozen, a.updated_at, a.final,
    (SELECT sum(r.amount) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?1),
    (SELECT min(r.since) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?1)
FROM accounts a
"""
_ONE = _ACCOUNT + "WHERE a.tenant = ?2 AND a.name = ?3"
_NAMED = _ACCOUNT + "WHERE a.tenant = ?2 AND a.name IN (SELECT value FROM json_each(?3))"  # noqa: S608 - constants
_LISTED = _ACCOUNT + "WHERE a.tenant = ?2 AND a.name >= ?3 AND a.name > ?4 ORDER BY a.name LIMIT ?5"
_FROZEN = _ACCOUNT + (
    "WHERE a.tenant = ?2 AND a.name >= ?3 AND a.name > ?4 AND a.frozen IS NOT NULL ORDER BY a.name LIMIT ?5"
)
_SAVE = """
INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET own_limit = excluded.own_limit, spent = excluded.spent, peak = excluded.peak,
    frozen = excluded.frozen, updated_at = excluded.updated_at, final = excluded.final
"""
_ROW = ", ".join(f"m.{name}" for name in ROW_FIELDS)
# What began the conversation is found by its id, what belongs to it by an index that leaves that one out.
OPEN_OF = f"""
SELECT {_ROW} FROM messages m WHERE m.id = ?2 AND m.correlation_id = ?2 AND m.tenant = ?1
    AND m.state IN ('pending', 'delayed', 'claimed')
UNION ALL
SELECT {_ROW} FROM messages m WHERE m.correlation_id = ?2 AND m.correlation_id <> m.id AND m.tenant = ?1
    AND m.state IN ('pending', 'delayed', 'claimed')
"""  # noqa: S608 - column names only
_PRUNE = (
    "DELETE FROM settlements WHERE (tenant, holder) IN"
    " (SELECT tenant, holder FROM settlements WHERE at < ?1 LIMIT ?2)",
    "DELETE FROM reservations WHERE (tenant, holder, account) IN"
    " (SELECT tenant, holder, account FROM reservations WHERE expires_at < ?1 LIMIT ?2)",
    "DELETE FROM holds WHERE id IN (SELECT id FROM holds WHERE until < ?1 LIMIT ?2)",
)


def _account(row: tuple[Any, ...]) -> Budget:
    name, limit, spent, peak, frozen, updated_at, final, reserved, since = row
    return Budget(
        name=name,
        limit=limit,
        spent=spent,
        peak=peak,
        frozen=frozen,
        final=bool(final),
        updated_at=updated_at,
        reserved=reserved or 0,
        reserved_since=since,
    )


class SqliteBudgetWrites:
    """The part of a transaction that is about accounts."""

    _db: apsw.Connection

    def account(self, tenant: str, name: str, now: int) -> Budget | None:
        found = self._db.execute(_ONE, (now, tenant, name)).fetchone()
        return _account(found) if found else None

    def save_account(self, tenant: str, account: Budget) -> None:
        self._db.execute(
            _SAVE,
            (
                tenant,
                account.name,
                account.limit,
                account.spent,
                account.peak,
                account.frozen,
                account.updated_at,
                account.final,
            ),
        )

    def reservations(self, tenant: str, holder: str) -> list[Reservation]:
        rows = self._db.execute(
            "SELECT account, amount, since, expires_at FROM reservations WHERE tenant = ? AND holder = ?",
            (tenant, holder),
        )
        return [
            Reservation(holder=holder, account=account, amount=amount, since=since, expires_at=expires_at)
            for account, amount, since, expires_at in rows
        ]

    def reservations_like(self, tenant: str, prefix: str) -> list[Reservation]:
        rows = self._db.execute(
            "SELECT holder, account, amount, since, expires_at FROM reservations"
            " WHERE tenant = ?1 AND holder >= ?2 AND substr(holder, 1, length(?2)) = ?2"
            " AND holder < ?2 || char(1114111)",
            (tenant, prefix),
        )
        return [
            Reservation(holder=holder, account=account, amount=amount, since=since, expires_at=expires_at)
            for holder, account, amount, since, expires_at in rows
        ]

    def reserve(self, tenant: str, reservation: Reservation) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO reservations VALUES (?, ?, ?, ?, ?, ?)",
            (
                tenant,
                reservation.holder,
                reservation.account,
                reservation.amount,
                reservation.since,
                reservation.expires_at,
            ),
        )

    def drop_reservations(self, tenant: str, holder: str) -> None:
        self._db.execute("DELETE FROM reservations WHERE tenant = ? AND holder = ?", (tenant, holder))

    def is_settled(self, tenant: str, holder: str) -> bool:
        found = self._db.execute(
            "SELECT 1 FROM settlements WHERE tenant = ? AND holder = ?", (tenant, holder)
        ).fetchone()
        return found is not None

    def mark_settled(self, tenant: str, holder: str, now: int) -> None:
        self._db.execute("INSERT INTO settlements VALUES (?, ?, ?)", (tenant, holder, now))

    def hold(self, tenant: str, account: str, hold: HeldMessage) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO holds (tenant, account, message_id, claims, until)"
            " VALUES (?, ?, ?, ?, ?)",
            (tenant, account, hold.message_id, hold.claims, hold.until),
        )

    def take_holds(self, tenant: str, account: str) -> list[HeldMessage]:
        rows = self._db.execute(
            "SELECT message_id, claims, until FROM holds WHERE tenant = ? AND account = ? ORDER BY id",
            (tenant, account),
        )
        found = [HeldMessage(message_id=id_, claims=claims, until=until) for id_, claims, until in rows]
        if found:
            self._db.execute("DELETE FROM holds WHERE tenant = ? AND account = ?", (tenant, account))
        return found

    def open_of(self, tenant: str, correlation_id: str) -> list[Row]:
        rows = [Row(*row) for row in self._db.execute(OPEN_OF, (tenant, correlation_id))]
        rows.sort(key=lambda row: row.seq)
        return rows

    def prune_settled(self, before: int, limit: int) -> int:
        dropped = 0
        for statement in _PRUNE:
            self._db.execute(statement, (before, limit))
            dropped += self._db.changes()
        return dropped

    def prune_accounts(self, before: int, limit: int) -> list[tuple[str, str]]:
        rows = self._db.execute(
            "SELECT tenant, name FROM accounts a WHERE updated_at < ? AND (frozen IS NULL OR final)"
            " AND NOT EXISTS (SELECT 1 FROM reservations r WHERE r.tenant = a.tenant AND r.account = a.name)"
            " ORDER BY updated_at LIMIT ?",
            (before, limit),
        ).fetchall()
        self._db.executemany("DELETE FROM accounts WHERE tenant = ? AND name = ?", rows)
        return [(str(tenant), str(name)) for tenant, name in rows]


class SqliteBudgetReads:
    _db: apsw.Connection

    def accounts(self, tenant: str, names: Iterable[str], now: int) -> list[Budget]:
        rows = self._db.execute(_NAMED, (now, tenant, jsontext.text(list(names))))
        return [_account(row) for row in rows]

    def list_accounts(
        self, tenant: str, prefix: str, now: int, *, frozen: bool, after: str, limit: int
    ) -> list[Budget]:
        found: list[Budget] = []
        for row in self._db.execute(_FROZEN if frozen else _LISTED, (now, tenant, prefix, after, limit)):
            # Names are in order, so the first that begins otherwise ends the list.
            if not row[0].startswith(prefix):
                break
            found.append(_account(row))
        return found
