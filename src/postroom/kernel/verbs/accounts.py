"""Money and counts: reserved before the work, settled with its outcome, and never counted twice."""

from collections import Counter

import msgspec

from postroom.clock import micros
from postroom.errors import AccountFrozen, AlreadyFrozen, AlreadySettled, InvalidField, LimitReached
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.accounts import LARGEST, Account, Charge, Reservation
from postroom.kernel.desk import Desk
from postroom.kernel.ledger import Draft

MOST_CHARGES = 1000


def _tell(desk: Desk, kind: str, command: c.Accounting, data: dict[str, object]) -> None:
    desk.tx.append(
        Draft(
            desk.now,
            kind,
            desk.tenant,
            None,
            None,
            command.message_id,
            command.correlation_id,
            None,
            desk.actor,
            jsontext.text(data),
        )
    )


def _check(desk: Desk, command: c.Accounting) -> None:
    checks.check_text("message_id", command.message_id, desk.limits)
    checks.check_text("correlation_id", command.correlation_id, desk.limits)


def _amounts(desk: Desk, charges: tuple[Charge, ...]) -> dict[str, Charge]:
    """One charge per account, by name: in this order locks are taken on stores that lock."""
    if len(charges) > MOST_CHARGES:
        raise InvalidField("charges", f"has {len(charges)} entries, at most {MOST_CHARGES} are allowed")
    found: dict[str, Charge] = {}
    for charge in charges:
        checks.check_name("account", charge.account, desk.limits)
        checks.check_count("amount", charge.amount, least=0, most=LARGEST)
        if charge.limit is not None:
            checks.check_count("limit", charge.limit, least=0, most=LARGEST)
        if charge.account in found:
            raise InvalidField("charges", f'names the account "{charge.account}" twice')
        found[charge.account] = charge
    return dict(sorted(found.items()))


def _account(desk: Desk, name: str) -> Account | None:
    return desk.tx.account(desk.tenant, name, desk.now)


def reserve(desk: Desk, command: c.Reserve) -> None:
    """All accounts or none. The same holder may reserve again: the new amounts take the place of the old."""
    _check(desk, command)
    checks.check_name("holder", command.holder, desk.limits)
    checks.check_seconds("seconds", command.seconds, least=0.001, most=desk.limits.lease_s * 7)
    charges = _amounts(desk, command.charges)
    if not charges:
        raise InvalidField("charges", "is empty")
    if desk.tx.is_settled(desk.tenant, command.holder):
        raise AlreadySettled(holder=command.holder)
    known = {name: _account(desk, name) for name in charges}
    for name, account in known.items():
        if account is not None and account.frozen is not None:
            raise AccountFrozen(account=name, reason=account.frozen)
    before = _replaced(desk, command)
    own: Counter[str] = Counter()
    for held in before:
        own[held.account] += held.amount if held.expires_at > desk.now else 0
    for name, charge in charges.items():
        _check_limit(charge, known[name], own[name])
    replaced = sorted({held.holder for held in before})
    for holder in replaced:
        desk.tx.drop_reservations(desk.tenant, holder)
    expires_at = desk.now + micros(command.seconds)
    for name, charge in charges.items():
        if known[name] is None:
            desk.tx.save_account(desk.tenant, Account(name=name, updated_at=desk.now))
        desk.tx.reserve(
            desk.tenant,
            Reservation(
                holder=command.holder,
                account=name,
                amount=charge.amount,
                since=desk.now,
                expires_at=expires_at,
            ),
        )
    amounts = {name: charge.amount for name, charge in charges.items()}
    data = {"holder": command.holder, "charges": amounts, "expires_at": expires_at, "replaced": replaced}
    _tell(desk, "account.reserved", command, data)


def _replaced(desk: Desk, command: c.Reserve) -> list[Reservation]:
    """What the holder has reserved before, and those it takes the place of."""
    own = desk.tx.reservations(desk.tenant, command.holder)
    if command.supersedes is None:
        return own
    checks.check_name("supersedes", command.supersedes, desk.limits)
    others = desk.tx.reservations_like(desk.tenant, command.supersedes)
    return [*own, *(held for held in others if held.holder != command.holder)]


def _check_limit(charge: Charge, account: Account | None, own: int) -> None:
    known = account or Account(name=charge.account)
    limit = charge.limit if known.limit is None else known.limit
    reserved = known.reserved - own
    if limit is None or known.spent + reserved + charge.amount <= limit:
        return
    raise LimitReached(
        account=charge.account,
        amount=charge.amount,
        limit=limit,
        spent=known.spent,
        reserved=reserved,
        since=known.reserved_since,
    )


def settle(desk: Desk, command: c.Settle) -> bool:
    """What it really was takes the place of what was reserved; what is not named is released.

    Once per holder: said again, it changes nothing. Too late, or without a reservation, it still counts,
    also on a frozen account and beyond the limit: it has happened.
    """
    _check(desk, command)
    checks.check_name("holder", command.holder, desk.limits)
    charges = _amounts(desk, command.charges)
    if desk.tx.is_settled(desk.tenant, command.holder):
        return False
    for name, charge in charges.items():
        account = _account(desk, name) or Account(name=name)
        desk.tx.save_account(desk.tenant, account.after(charge.amount, desk.now))
    desk.tx.drop_reservations(desk.tenant, command.holder)
    desk.tx.mark_settled(desk.tenant, command.holder, desk.now)
    amounts = {name: charge.amount for name, charge in charges.items()}
    _tell(desk, "account.settled", command, {"holder": command.holder, "charges": amounts})
    return True


def release(desk: Desk, command: c.ReleaseReservation) -> bool:
    """Nothing came of it. Whether there was anything to release."""
    _check(desk, command)
    checks.check_name("holder", command.holder, desk.limits)
    held = desk.tx.reservations(desk.tenant, command.holder)
    if not held:
        return False
    desk.tx.drop_reservations(desk.tenant, command.holder)
    charges = {reservation.account: reservation.amount for reservation in held}
    _tell(desk, "account.released", command, {"holder": command.holder, "charges": charges})
    return True


def set_limit(desk: Desk, command: c.SetLimit) -> Account:
    """A limit of its own, which goes before the one a reservation brings; None takes it away."""
    _check(desk, command)
    checks.check_name("account", command.account, desk.limits)
    if command.limit is not None:
        checks.check_count("limit", command.limit, least=0, most=LARGEST)
    account = _account(desk, command.account)
    if account is not None and account.limit == command.limit:
        return account
    account = msgspec.structs.replace(
        account or Account(name=command.account), limit=command.limit, updated_at=desk.now
    )
    desk.tx.save_account(desk.tenant, account)
    _tell(desk, "account.limited", command, {"account": command.account, "limit": command.limit})
    return account


def freeze(desk: Desk, command: c.Freeze) -> None:
    """Of many who want to freeze an account, one does, and the others learn that it is done."""
    _check(desk, command)
    checks.check_name("account", command.account, desk.limits)
    checks.check_name("reason", command.reason, desk.limits)
    account = _account(desk, command.account) or Account(name=command.account)
    if account.frozen is not None and (not command.replace or account.frozen == command.reason):
        raise AlreadyFrozen(account=command.account, reason=account.frozen)
    account = account.frozen_for(command.reason, desk.now, final=command.final)
    desk.tx.save_account(desk.tenant, account)
    data: dict[str, object] = {"account": command.account, "reason": command.reason}
    if command.final:
        data["final"] = True
    _tell(desk, "account.frozen", command, data)
