"""Money and counts: reserved before the work, settled with its outcome, and never counted twice."""

from collections import Counter
from typing import Any

import msgspec

from postroom.clock import micros
from postroom.errors import AccountFrozen, AlreadyFrozen, AlreadySettled, InvalidField, LimitReached
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import LARGEST, Budget, Charge, Reservation
from postroom.kernel.transitions.context import TransitionContext

MOST_CHARGES = 1000


def emit_budget(ctx: TransitionContext, kind: str, command: c.BudgetCommand, data: dict[str, Any]) -> None:
    ctx.emit(kind, data=data, message_id=command.message_id, correlation_id=command.correlation_id)


def _check(ctx: TransitionContext, command: c.BudgetCommand) -> None:
    checks.check_text("message_id", command.message_id, ctx.limits)
    checks.check_text("correlation_id", command.correlation_id, ctx.limits)


def _amounts(ctx: TransitionContext, charges: tuple[Charge, ...]) -> dict[str, Charge]:
    """One charge per account, by name: in this order locks are taken on stores that lock."""
    if len(charges) > MOST_CHARGES:
        raise InvalidField("charges", f"has {len(charges)} entries, at most {MOST_CHARGES} are allowed")
    found: dict[str, Charge] = {}
    for charge in charges:
        checks.check_name("account", charge.account, ctx.limits)
        checks.check_count("amount", charge.amount, least=0, most=LARGEST)
        if charge.limit is not None:
            checks.check_count("limit", charge.limit, least=0, most=LARGEST)
        if charge.account in found:
            raise InvalidField("charges", f'names the account "{charge.account}" twice')
        found[charge.account] = charge
    return dict(sorted(found.items()))


def reserve(ctx: TransitionContext, command: c.Reserve) -> None:
    """All accounts or none. The same holder may reserve again: the new amounts take the place of the old."""
    _check(ctx, command)
    checks.check_name("holder", command.holder, ctx.limits)
    checks.check_seconds("seconds", command.seconds, least=0.001, most=ctx.limits.lease_s * 7)
    charges = _amounts(ctx, command.charges)
    if not charges:
        raise InvalidField("charges", "is empty")
    if command.supersedes is not None:
        checks.check_name("supersedes", command.supersedes, ctx.limits)
    held_before = ctx.session.holdings(ctx.tenant, command.holder, command.supersedes)
    if held_before.settled:
        raise AlreadySettled(holder=command.holder)
    ctx.session.load_budgets(ctx.tenant, charges)
    known = {name: ctx.session.budget(ctx.tenant, name) for name in charges}
    for name, account in known.items():
        if account is not None and account.frozen is not None:
            raise AccountFrozen(account=name, reason=account.frozen)
    own: Counter[str] = Counter()
    for held in held_before.reservations:
        own[held.account] += held.amount if held.expires_at > ctx.now else 0
    for name, charge in charges.items():
        _check_limit(charge, known[name], own[name])
    replaced = sorted({held.holder for held in held_before.reservations})
    expires_at = ctx.now + micros(command.seconds)
    for name in charges:
        if known[name] is None:
            ctx.session.save_budget(ctx.tenant, Budget(name=name, updated_at=ctx.now))
    changes = ctx.session.budget_changes
    changes.released += [(ctx.tenant, holder) for holder in replaced]
    for name, charge in charges.items():
        reservation = Reservation(
            holder=command.holder, account=name, amount=charge.amount, since=ctx.now, expires_at=expires_at
        )
        changes.reserved.append((ctx.tenant, reservation))
    amounts = {name: charge.amount for name, charge in charges.items()}
    data = {"holder": command.holder, "charges": amounts, "expires_at": expires_at, "replaced": replaced}
    emit_budget(ctx, "account.reserved", command, data)


def _check_limit(charge: Charge, account: Budget | None, own: int) -> None:
    known = account or Budget(name=charge.account)
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


def settle(ctx: TransitionContext, command: c.Settle) -> bool:
    """What it really was takes the place of what was reserved; what is not named is released.

    Once per holder: said again, it changes nothing. Too late, or without a reservation, it still counts,
    also on a frozen account and beyond the limit: it has happened.
    """
    _check(ctx, command)
    checks.check_name("holder", command.holder, ctx.limits)
    charges = _amounts(ctx, command.charges)
    if ctx.session.holdings(ctx.tenant, command.holder).settled:
        return False
    ctx.session.load_budgets(ctx.tenant, charges)
    for name, charge in charges.items():
        budget = ctx.session.budget(ctx.tenant, name) or Budget(name=name)
        ctx.session.save_budget(ctx.tenant, budget.after(charge.amount, ctx.now))
    changes = ctx.session.budget_changes
    changes.released.append((ctx.tenant, command.holder))
    changes.settled.append((ctx.tenant, command.holder, ctx.now))
    amounts = {name: charge.amount for name, charge in charges.items()}
    emit_budget(ctx, "account.settled", command, {"holder": command.holder, "charges": amounts})
    return True


def release(ctx: TransitionContext, command: c.ReleaseReservation) -> bool:
    """Nothing came of it. Whether there was anything to release."""
    _check(ctx, command)
    checks.check_name("holder", command.holder, ctx.limits)
    held = ctx.session.holdings(ctx.tenant, command.holder).reservations
    if not held:
        return False
    ctx.session.budget_changes.released.append((ctx.tenant, command.holder))
    charges = {reservation.account: reservation.amount for reservation in held}
    emit_budget(ctx, "account.released", command, {"holder": command.holder, "charges": charges})
    return True


def set_limit(ctx: TransitionContext, command: c.SetLimit) -> Budget:
    """A limit of its own, which goes before the one a reservation brings; None takes it away."""
    _check(ctx, command)
    checks.check_name("account", command.account, ctx.limits)
    if command.limit is not None:
        checks.check_count("limit", command.limit, least=0, most=LARGEST)
    account = ctx.session.budget(ctx.tenant, command.account)
    if account is not None and account.limit == command.limit:
        return account
    account = msgspec.structs.replace(
        account or Budget(name=command.account), limit=command.limit, updated_at=ctx.now
    )
    ctx.session.save_budget(ctx.tenant, account)
    emit_budget(ctx, "account.limited", command, {"account": command.account, "limit": command.limit})
    return account


def freeze(ctx: TransitionContext, command: c.Freeze) -> None:
    """Of many who want to freeze an account, one does, and the others learn that it is done."""
    _check(ctx, command)
    checks.check_name("account", command.account, ctx.limits)
    checks.check_name("reason", command.reason, ctx.limits)
    account = ctx.session.budget(ctx.tenant, command.account) or Budget(name=command.account)
    if account.frozen is not None and (not command.replace or account.frozen == command.reason):
        raise AlreadyFrozen(account=command.account, reason=account.frozen)
    account = account.frozen_for(command.reason, ctx.now, final=command.final)
    ctx.session.save_budget(ctx.tenant, account)
    data: dict[str, Any] = {"account": command.account, "reason": command.reason}
    if command.final:
        data["final"] = True
    emit_budget(ctx, "account.frozen", command, data)
