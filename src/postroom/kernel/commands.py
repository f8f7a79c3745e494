"""Everything that can be asked of the kernel, as data. A `Unit` asks several things that commit together."""

from typing import Any, Literal

import msgspec

from postroom.kernel.budgets.model import Charge
from postroom.kernel.model import LifecycleState, NewMessage
from postroom.kernel.ports import AuditEntry


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What every command says: who asks, and for which tenant.

    `audit` is kept in the same transaction when the command is carried out; not when it is refused.
    """

    actor: str = "local"
    tenant: str = "default"
    audit: AuditEntry | None = None


class CreateScope(Command, frozen=True):
    slug: str
    display_name: str = ""
    description: str = ""
    exist_ok: bool = False


class UpdateScope(Command, frozen=True):
    slug: str
    display_name: str | None = None
    description: str | None = None


class SetScopeState(Command, frozen=True):
    slug: str
    state: LifecycleState


class DeleteScope(Command, frozen=True):
    slug: str


class CreateQueue(Command, frozen=True):
    """`at_most`: refused when its scope has so many queues already."""

    queue: str
    settings: dict[str, Any] = {}
    exist_ok: bool = False
    at_most: int | None = None


class UpdateQueue(Command, frozen=True):
    queue: str
    settings: dict[str, Any]


class SetQueueState(Command, frozen=True):
    queue: str
    state: LifecycleState


class DeleteQueue(Command, frozen=True):
    queue: str


class Publish(Command, frozen=True):
    queue: str
    messages: list[NewMessage]


class PublishLike(Command, frozen=True):
    """Bodies that are alike in everything else; what is said about them is checked once.

    Without `like` nothing is said about them; then the actor is their source.
    """

    queue: str
    bodies: list[Any]
    like: NewMessage | None = None


class Claim(Command, frozen=True):
    """Take up to `limit` messages (None: all waiting) from the first of these queues that have any.

    Of several queues, `subscription` is for those that broadcast. `labels`: only messages that carry them.
    `ids`: only these, in this order.
    """

    queues: tuple[str, ...]
    limit: int | None = 1
    lease_s: float | None = None
    worker: str = ""
    subscription: str | None = None
    labels: tuple[tuple[str, Any], ...] = ()
    ids: tuple[str, ...] = ()


class ClaimCommand(Command, frozen=True):
    """A command of the holder of a claim."""

    message_id: str
    token: str


class Complete(ClaimCommand, frozen=True):
    result: Any = None


class CompleteMany(Command, frozen=True):
    """Several claims, each a message, its token and the result. One that is refused keeps no other from being
    completed: of each the outcome is told."""

    done: tuple[tuple[str, str, Any], ...]


class Fail(ClaimCommand, frozen=True):
    reason: str
    kind: str | None = None
    retry: bool = True
    delay_s: float | None = None


class Release(ClaimCommand, frozen=True):
    pass


class Extend(ClaimCommand, frozen=True):
    lease_s: float | None = None


class ExtendMany(Command, frozen=True):
    """Keep several claims, each a message and its token, alive at once: the heartbeat of who holds many."""

    claims: tuple[tuple[str, str], ...]
    lease_s: float | None = None


class Snooze(ClaimCommand, frozen=True):
    """Until a moment, or for some seconds."""

    until: int | None = None
    seconds: float | None = None
    reason: str | None = None


class Cancel(Command, frozen=True):
    message_id: str
    reason: str = "cancelled"


class Kill(Command, frozen=True):
    """End an open message as a dead letter: a guard or an operator decided that it must not go on."""

    message_id: str
    reason: str


class DeadLetterCommand(Command, frozen=True):
    """These ids, or up to `limit` of a scope; with `origins`, only those that came from these queues."""

    message_ids: tuple[str, ...] = ()
    scope: str | None = None
    limit: int = 1000
    origins: tuple[int, ...] | None = None


class Replay(DeadLetterCommand, frozen=True):
    """Send dead letters back to the queues they came from."""


class Discard(DeadLetterCommand, frozen=True):
    """Give dead letters up for good."""


class Reprioritise(Command, frozen=True):
    message_id: str
    tier: str | None = None
    score: int | None = None


class Subscribe(Command, frozen=True):
    queue: str
    name: str
    earliest: bool = False
    exist_ok: bool = True


class Unsubscribe(Command, frozen=True):
    queue: str
    name: str


class CheckSeen(Command, frozen=True):
    """Has this subscription seen this key? Remembers it when not."""

    queue: str
    name: str
    key: str


class RegisterSchema(Command, frozen=True):
    scope: str
    name: str
    document: dict[str, Any]
    version: int | None = None


class AddRecord(Command, frozen=True):
    kind: str
    key: str
    data: dict[str, Any]
    correlation_id: str | None = None
    message_id: str | None = None


class PutSchedule(Command, frozen=True):
    """Make a schedule of a queue, or change it whole; `fields` are those of `QueueSchedule`."""

    name: str
    fields: dict[str, Any]


class DropSchedule(Command, frozen=True):
    name: str


class RunSchedule(Command, frozen=True):
    name: str


class PutDocument(Command, frozen=True):
    """Write a document whole; with `expect`, only in place of that version (0: it must not be there).

    With `history`, what it says is also kept among the records; progress and counters need none."""

    kind: str
    key: str
    data: dict[str, Any]
    expect: int | None = None
    history: bool = True


class DropDocument(Command, frozen=True):
    kind: str
    key: str
    expect: int | None = None


class ExpectDocument(Command, frozen=True):
    """Go on only if a document is in this version (0: is not there)."""

    kind: str
    key: str
    version: int


class BudgetCommand(Command, frozen=True, kw_only=True):
    """A command about accounts, and what it is about."""

    correlation_id: str | None = None
    message_id: str | None = None


class Reserve(BudgetCommand, frozen=True):
    """Set amounts aside on several accounts, all or none, for some seconds. `holder` names the work.

    It takes the place of all reservations whose holders begin with `supersedes`: of work of which there can
    be only one, the others are dead.
    """

    holder: str
    charges: tuple[Charge, ...]
    seconds: float
    supersedes: str | None = None


class Settle(BudgetCommand, frozen=True):
    """What the holder's work came to, once."""

    holder: str
    charges: tuple[Charge, ...]


class ReleaseReservation(BudgetCommand, frozen=True):
    holder: str


class SetLimit(BudgetCommand, frozen=True):
    account: str
    limit: int | None


class Freeze(BudgetCommand, frozen=True):
    """Let an account take no more reservations; `replace` the reason of one that is frozen already.

    `final`: nobody is asked whether it goes on, so it need not be remembered for ever."""

    account: str
    reason: str
    replace: bool = False
    final: bool = False


class Thaw(BudgetCommand, frozen=True):
    account: str


class Hold(ClaimCommand, frozen=True):
    """Wait until an account thaws, at most until a moment or for some seconds; no attempt is counted."""

    account: str
    until: int | None = None
    seconds: float | None = None
    reason: str | None = None


class CancelConversation(Command, frozen=True):
    correlation_id: str
    reason: str = "cancelled"
    keep: tuple[str, ...] = ()


class SetPosition(Command, frozen=True):
    """How far a reader of the ledger has come. With `expect`, only if it still stands there: another process
    may read for it by now."""

    name: str
    seq: int
    hold: bool = False
    expect: int | None = None


class Unit(Command, frozen=True):
    """All of these, or none."""

    commands: tuple[Command, ...]


class Housekeep(Command, frozen=True):
    """One bounded step of a housekeeper."""

    name: str
    limit: int = 1000
    cursor: int = 0


class PruneHistory(Command, frozen=True):
    """One bounded step: drop archived messages, or events, that are older than some seconds and that a
    reader has passed who came to the event `up_to`. Answers with how many."""

    what: Literal["messages", "events"]
    keep_s: float
    up_to: int
    limit: int = 1000


class ReportRun(Command, frozen=True):
    """What runs of a housekeeper did since the last report, for the registry."""

    name: str
    started_at: int
    duration_us: int
    items: int
    runs: int = 1
    error: str | None = None


class SetTimeBack(Command, frozen=True):
    """The ledger's time is ahead of the clock, which is right: time goes on from `to`."""

    to: int


class TakeOver(Command, frozen=True):
    """A process is surely dead: what it led is free at once, and its leases have run out."""

    dead: str
    limit: int = 1000


class Lead(Command, frozen=True):
    """Take or renew a named leadership for a while; with `seconds` 0, give it up."""

    name: str
    holder: str
    seconds: float
