"""What a person reads when a guard has stopped something: what happened, what it cost, what can be done."""

import msgspec

from postroom.clock import iso
from postroom.office.guards.budgets import BudgetGuard, dollars

CODE_CHARS = 6


class Trip(msgspec.Struct, frozen=True, kw_only=True):
    """A guard that was reached, with the figures it is told and continued by."""

    guard: BudgetGuard
    account: str
    agent: str
    talk: str | None = None
    limit: int | None = None
    wanted: int = 0
    spent: int = 0
    served: int = 0
    hop: int = 0
    sender: str = ""
    receiver: str = ""
    times: int = 0
    until: int | None = None
    allowance: int = 0


def code(talk: str) -> str:
    """The end of a conversation's id, short enough to type."""
    return talk[-CODE_CHARS:]


def notice(trip: Trip, zone: str) -> str:
    if trip.talk is None:
        return _shared(trip, zone)
    what = _WHAT[trip.guard](trip)
    served = "1 message was" if trip.served == 1 else f"{trip.served} messages were"
    mark = code(trip.talk)
    lines = [
        f"I have paused this conversation: {what}",
        f"So far {served} worked on, for {dollars(trip.spent)}. What is not done waits, and nothing is lost.",
        f"Answer /continue {mark} to let it go on, or /stop {mark} to end it.",
    ]
    if trip.guard is BudgetGuard.COST:
        more = _raised(trip)
        lines.append(f"/raise {more} {mark} would set its limit to ${more}.")
    return "\n".join(lines)


def list_answers(trip: Trip) -> dict[str, str]:
    """What a person can decide about it: a button, and the words it stands for."""
    if trip.talk is None:
        return {}
    mark = code(trip.talk)
    answers = {"Continue": f"/continue {mark}", "Stop": f"/stop {mark}"}
    if trip.guard is BudgetGuard.COST:
        answers[f"Raise to ${_raised(trip)}"] = f"/raise {_raised(trip)} {mark}"
    return answers


def _raised(trip: Trip) -> str:
    return dollars(2 * (trip.limit or 0) or 10_000_000).removeprefix("$")


def _hops(trip: Trip) -> str:
    return f"it was handed on {trip.hop} times in a row, and {trip.limit} is the limit."


def _messages(trip: Trip) -> str:
    return f"it has reached its limit of {trip.limit} messages."


def _cost(trip: Trip) -> str:
    return (
        f"the next turn of @{trip.agent} may cost {dollars(trip.wanted)}, which its limit of "
        f"{dollars(trip.limit or 0)} does not allow."
    )


def _cycle(trip: Trip) -> str:
    return f"@{trip.sender} has written to {_name(trip.receiver)} {trip.times} times without a word from you."


def _repeats(trip: Trip) -> str:
    return f"@{trip.sender} has written nearly the same to {_name(trip.receiver)} {trip.times} times."


def _name(receiver: str) -> str:
    return f"#{receiver.removeprefix('room/')}" if receiver.startswith("room/") else f"@{receiver}"


_WHAT = {
    BudgetGuard.HOPS: _hops,
    BudgetGuard.MESSAGES: _messages,
    BudgetGuard.COST: _cost,
    BudgetGuard.CYCLE: _cycle,
    BudgetGuard.REPEATS: _repeats,
}


def _shared(trip: Trip, zone: str) -> str:
    kind, _, rest = trip.account.partition("/")
    name = rest.rpartition("/")[0]
    whose = {"agent": f"@{name}", "team": f"The team {name}"}.get(kind, "The office")
    until = f" It goes on by itself at {iso(trip.until)} (midnight, {zone})." if trip.until else ""
    return (
        f"{whose} has used up its budget for today: {dollars(trip.spent)} of {dollars(trip.limit or 0)} are "
        f"spent, and the next turn may cost {dollars(trip.wanted)}. Your message waits, and nothing is lost."
        f"{until}\n"
        f"To go on today, raise the limit: postroom guards raise {trip.account} AMOUNT"
    )


def warning(account: str, spent: int, limit: int) -> str:
    kind, _, rest = account.partition("/")
    name = rest.rpartition("/")[0]
    whose = {"agent": f"@{name}'s budget for today", "team": f"the budget of the team {name} for today"}
    what = whose.get(kind, "this conversation's limit" if kind == "conversation" else "the budget for today")
    return f"{dollars(spent)} of {what}, {dollars(limit)}, are spent."
