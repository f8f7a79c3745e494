"""Accounts, reservations and holds in memory."""

from collections.abc import Iterable
from heapq import nsmallest

import msgspec

from postroom.kernel.budgets.model import Budget, HeldMessage, Reservation
from postroom.stores.memory.journal import Journal

Key = tuple[str, str]


class MemoryBudgets:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._accounts: dict[Key, Budget] = {}
        self._reservations: dict[Key, tuple[Reservation, ...]] = {}
        self._settled: dict[Key, int] = {}
        self._holds: dict[Key, tuple[HeldMessage, ...]] = {}

    def account(self, tenant: str, name: str, now: int) -> Budget | None:
        kept = self._accounts.get((tenant, name))
        if kept is None:
            return None
        live = [
            held
            for (owner, _), reservations in self._reservations.items()
            for held in reservations
            if owner == tenant and held.account == name and held.expires_at > now
        ]
        return msgspec.structs.replace(
            kept,
            reserved=sum(held.amount for held in live),
            reserved_since=min((held.since for held in live), default=None),
        )

    def save_account(self, tenant: str, account: Budget) -> None:
        plain = msgspec.structs.replace(account, reserved=0, reserved_since=None)
        self._journal.set(self._accounts, (tenant, account.name), plain)

    def reservations(self, tenant: str, holder: str) -> list[Reservation]:
        return list(self._reservations.get((tenant, holder), ()))

    def reservations_like(self, tenant: str, prefix: str) -> list[Reservation]:
        return [
            held
            for (owner, holder), reservations in sorted(self._reservations.items())
            for held in reservations
            if owner == tenant and holder.startswith(prefix)
        ]

    def reserve(self, tenant: str, reservation: Reservation) -> None:
        key = (tenant, reservation.holder)
        others = [held for held in self._reservations.get(key, ()) if held.account != reservation.account]
        self._journal.set(self._reservations, key, (*others, reservation))

    def drop_reservations(self, tenant: str, holder: str) -> None:
        if (tenant, holder) in self._reservations:
            self._journal.delete(self._reservations, (tenant, holder))

    def is_settled(self, tenant: str, holder: str) -> bool:
        return (tenant, holder) in self._settled

    def mark_settled(self, tenant: str, holder: str, now: int) -> None:
        self._journal.set(self._settled, (tenant, holder), now)

    def hold(self, tenant: str, account: str, hold: HeldMessage) -> None:
        for key, held in list(self._holds.items()):
            if key[0] == tenant and any(one.message_id == hold.message_id for one in held):
                rest = tuple(one for one in held if one.message_id != hold.message_id)
                self._journal.set(self._holds, key, rest)
        key = (tenant, account)
        self._journal.set(self._holds, key, (*self._holds.get(key, ()), hold))

    def take_holds(self, tenant: str, account: str) -> list[HeldMessage]:
        if (tenant, account) not in self._holds:
            return []
        return list(self._journal.delete(self._holds, (tenant, account)))

    def prune_settled(self, before: int, limit: int) -> int:
        old = nsmallest(limit, ((at, key) for key, at in self._settled.items() if at < before))
        for _, key in old:
            self._journal.delete(self._settled, key)
        dropped = len(old)
        for key, reservations in list(self._reservations.items()):
            if all(held.expires_at < before for held in reservations):
                self._journal.delete(self._reservations, key)
                dropped += len(reservations)
        for key, held in list(self._holds.items()):
            kept = tuple(one for one in held if one.until >= before)
            if len(kept) < len(held):
                self._journal.set(self._holds, key, kept)
                dropped += len(held) - len(kept)
        return dropped

    def prune_accounts(self, before: int, limit: int) -> list[Key]:
        reserved = {
            (tenant, held.account)
            for (tenant, _), reservations in self._reservations.items()
            for held in reservations
        }
        old = [
            (account.updated_at, key)
            for key, account in self._accounts.items()
            if account.updated_at < before
            and (account.frozen is None or account.final)
            and key not in reserved
        ]
        chosen = [key for _, key in nsmallest(limit, old)]
        for key in chosen:
            self._journal.delete(self._accounts, key)
        return chosen

    # reading

    def named(self, tenant: str, names: Iterable[str], now: int) -> list[Budget]:
        found = (self.account(tenant, name, now) for name in dict.fromkeys(names))
        return [account for account in found if account is not None]

    def listed(
        self, tenant: str, prefix: str, now: int, *, frozen: bool, after: str, limit: int
    ) -> list[Budget]:
        names = sorted(
            name
            for (owner, name), account in self._accounts.items()
            if owner == tenant
            and name.startswith(prefix)
            and name > after
            and not (frozen and account.frozen is None)
        )
        return self.named(tenant, names[:limit], now)


class MemoryBudgetWrites:
    """The part of a transaction that is about accounts."""

    _accounts: MemoryBudgets

    def account(self, tenant: str, name: str, now: int) -> Budget | None:
        return self._accounts.account(tenant, name, now)

    def save_account(self, tenant: str, account: Budget) -> None:
        self._accounts.save_account(tenant, account)

    def reservations(self, tenant: str, holder: str) -> list[Reservation]:
        return self._accounts.reservations(tenant, holder)

    def reservations_like(self, tenant: str, prefix: str) -> list[Reservation]:
        return self._accounts.reservations_like(tenant, prefix)

    def reserve(self, tenant: str, reservation: Reservation) -> None:
        self._accounts.reserve(tenant, reservation)

    def drop_reservations(self, tenant: str, holder: str) -> None:
        self._accounts.drop_reservations(tenant, holder)

    def is_settled(self, tenant: str, holder: str) -> bool:
        return self._accounts.is_settled(tenant, holder)

    def mark_settled(self, tenant: str, holder: str, now: int) -> None:
        self._accounts.mark_settled(tenant, holder, now)

    def hold(self, tenant: str, account: str, hold: HeldMessage) -> None:
        self._accounts.hold(tenant, account, hold)

    def take_holds(self, tenant: str, account: str) -> list[HeldMessage]:
        return self._accounts.take_holds(tenant, account)

    def prune_settled(self, before: int, limit: int) -> int:
        return self._accounts.prune_settled(before, limit)

    def prune_accounts(self, before: int, limit: int) -> list[Key]:
        return self._accounts.prune_accounts(before, limit)


class MemoryBudgetReads:
    _accounts: MemoryBudgets

    def accounts(self, tenant: str, names: Iterable[str], now: int) -> list[Budget]:
        return self._accounts.named(tenant, names, now)

    def list_accounts(
        self, tenant: str, prefix: str, now: int, *, frozen: bool, after: str, limit: int
    ) -> list[Budget]:
        return self._accounts.listed(tenant, prefix, now, frozen=frozen, after=after, limit=limit)
