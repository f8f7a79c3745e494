"""Budgets, reservations and holds in SQL."""

from typing import Any

from postroom.kernel.budgets.model import (
    Budget,
    BudgetChanges,
    BudgetFilter,
    HeldMessage,
    Holdings,
    Reservation,
)
from postroom.stores.sql.dialect import SqlReads, SqlWrites
from postroom.stores.sql.filters import LAST


def _to_budget(row: tuple[Any, ...]) -> Budget:
    name, limit, spent, peak, frozen, updated_at, final, reserved, since = row
    return Budget(
        name=name,
        limit=limit,
        spent=spent,
        peak=peak,
        frozen=frozen,
        final=bool(final),
        updated_at=updated_at,
        reserved=int(reserved or 0),
        reserved_since=since,
    )


def _from_budget(tenant: str, budget: Budget) -> tuple[Any, ...]:
    return (
        tenant,
        budget.name,
        budget.limit,
        budget.spent,
        budget.peak,
        budget.frozen,
        budget.updated_at,
        budget.final,
    )


class BudgetReads(SqlReads):
    def budgets(self, wanted: BudgetFilter, now: int) -> list[Budget]:
        if wanted.names is not None:
            bindings = (now, now, wanted.tenant, self._dialect.bind_list(wanted.names))
            return [_to_budget(row) for row in self._db.fetch(self._sql["budgets_by_name"], bindings)]
        bounds = (max(wanted.prefix, wanted.after), wanted.prefix + LAST, wanted.after)
        name = "frozen_budgets" if wanted.frozen else "budgets"
        rows = self._db.fetch(self._sql[name], (now, now, wanted.tenant, *bounds, wanted.limit))
        return [_to_budget(row) for row in rows]

    def holdings(self, tenant: str, holder: str, prefix: str | None = None) -> Holdings:
        rows = self._db.fetch(self._sql["reservations"], (tenant, holder, tenant, holder))
        settled = any(budget is None for _, budget, *_ in rows)
        if prefix is not None:
            like = self._db.fetch(self._sql["reservations_like"], (tenant, prefix, prefix + LAST))
            rows += [row for row in like if row[0] != holder]
        found = [
            Reservation(holder=who, account=budget, amount=amount, since=since, expires_at=expires_at)
            for who, budget, amount, since, expires_at in rows
            if budget is not None
        ]
        return Holdings(settled, found)

    def holds(self, tenant: str, budget: str) -> list[HeldMessage]:
        rows = self._db.fetch(self._sql["holds"], (tenant, budget))
        return [HeldMessage(message_id=id_, claims=claims, until=until) for id_, claims, until in rows]


class BudgetWrites(BudgetReads, SqlWrites):
    def save_budgets(self, changes: BudgetChanges) -> None:
        rows: dict[str, list[tuple[Any, ...]]] = {
            "put_budget": [_from_budget(tenant, each) for (tenant, _), each in changes.budgets.items()],
            "drop_reservations": list(changes.released),
            "put_reservation": [
                (tenant, each.holder, each.account, each.amount, each.since, each.expires_at)
                for tenant, each in changes.reserved
            ],
            "put_settlement": list(changes.settled),
            "drop_holds": list(changes.thawed),
            "drop_hold": [(held.message_id,) for _, _, held in changes.held],
            "put_hold": [
                (tenant, budget, held.message_id, held.claims, held.until)
                for tenant, budget, held in changes.held
            ],
        }
        for name, bindings in rows.items():
            if bindings:
                self._out.write_many(self._sql[name], bindings)

    def prune_budgets(
        self, unused_since: int | None, settled_before: int, limit: int
    ) -> tuple[int, list[tuple[str, str]]]:
        names = ("prune_settlements", "prune_reservations", "prune_holds")
        dropped = sum(self._out.change(self._sql[name], (settled_before, limit)) for name in names)
        unused: list[tuple[str, str]] = []
        if unused_since is not None:
            rows = self._db.fetch(self._sql["unused_budgets"], (unused_since, limit))
            unused = [(tenant, name) for tenant, name in rows]
        if unused:
            self._out.write_many(self._sql["drop_budget"], unused)
        return dropped, unused
