"""Accounts: what was spent of something countable, how much is reserved for work under way, and the limit.

An account counts whole units of its own (micro-dollars, messages, tokens). Folding the ledger
gives every one. A frozen account takes no reservation, and messages can be held until it thaws.
"""

from collections.abc import Iterable

import msgspec

from postroom.kernel.ledger import Event

LARGEST = 2**53
Key = tuple[str, str]
# The largest recent amount fades by this part with every smaller one.
FADING = 10


class Charge(msgspec.Struct, frozen=True):
    """An amount on an account. `limit` holds for a reservation, unless the account has one of its own."""

    account: str
    amount: int
    limit: int | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """`reserved` is what reservations hold at the moment of reading; `peak` is the largest recent amount.

    One that is frozen and `final` is done with: nobody is waited for, and it is forgotten in time."""

    name: str
    limit: int | None = None
    spent: int = 0
    peak: int | None = None
    frozen: str | None = None
    final: bool = False
    updated_at: int = 0
    reserved: int = 0
    reserved_since: int | None = None

    def after(self, amount: int, now: int) -> "Budget":
        """With an amount spent."""
        peak = self.peak
        if amount:
            faded = 0 if peak is None else peak - peak // FADING
            peak = max(amount, faded)
        return msgspec.structs.replace(self, spent=self.spent + amount, peak=peak, updated_at=now)

    def frozen_for(self, reason: str, now: int, *, final: bool) -> "Budget":
        return msgspec.structs.replace(self, frozen=reason, final=final, updated_at=now)

    def thawed(self, now: int) -> "Budget":
        return msgspec.structs.replace(self, frozen=None, final=False, updated_at=now)


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    holder: str
    account: str
    amount: int
    since: int
    expires_at: int


class HeldMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that waits for an account. It is the same wait only while nobody claimed it since."""

    message_id: str
    claims: int
    until: int


class Holdings(msgspec.Struct, frozen=True):
    """What one holder has reserved, and others like it; whether its work is settled already."""

    settled: bool
    reservations: list[Reservation]


class BudgetFilter(msgspec.Struct, frozen=True, kw_only=True):
    """These names, or all that begin so after a name."""

    tenant: str
    names: tuple[str, ...] | None = None
    prefix: str = ""
    frozen: bool = False
    after: str = ""
    limit: int = 2**31 - 1


class BudgetChanges(msgspec.Struct, kw_only=True):
    """What a transaction changes about budgets, by tenant and name. In this order it is written."""

    budgets: dict[Key, Budget] = msgspec.field(default_factory=dict)
    released: list[Key] = msgspec.field(default_factory=list)
    """Holders whose reservations end."""
    reserved: list[tuple[str, Reservation]] = msgspec.field(default_factory=list)
    settled: list[tuple[str, str, int]] = msgspec.field(default_factory=list)
    """Tenants, holders and moments of work that is settled."""
    thawed: list[Key] = msgspec.field(default_factory=list)
    """Budgets whose held messages go on."""
    held: list[tuple[str, str, HeldMessage]] = msgspec.field(default_factory=list)

    def __bool__(self) -> bool:
        return any(msgspec.structs.astuple(self))

    def add(self, later: "BudgetChanges") -> None:
        self.budgets |= later.budgets
        for field in ("released", "reserved", "settled", "thawed", "held"):
            getattr(self, field).extend(getattr(later, field))


def fold_accounts(events: Iterable[Event], start: dict[Key, Budget] | None = None) -> dict[Key, Budget]:
    """Every account by tenant and name, from the events alone and without what is reserved."""
    accounts: dict[Key, Budget] = {} if start is None else start
    for event in events:
        kind = event.type
        if kind == "accounts.pruned":
            for tenant, name in event.details["accounts"]:
                accounts.pop((tenant, name), None)
        if not kind.startswith("account."):
            continue
        details = event.details
        charges: dict[str, int] = details.get("charges") or {details["account"]: 0}
        for name, amount in charges.items():
            key = (event.tenant, name)
            account = accounts.get(key) or Budget(name=name, updated_at=event.time)
            if kind == "account.settled":
                account = account.after(amount, event.time)
            elif kind == "account.limited":
                account = msgspec.structs.replace(account, limit=details["limit"], updated_at=event.time)
            elif kind == "account.frozen":
                account = account.frozen_for(details["reason"], event.time, final=details.get("final", False))
            elif kind == "account.thawed":
                account = account.thawed(event.time)
            elif kind == "account.released":
                continue
            accounts[key] = account
    return accounts
