"""Every error a user can meet: one class each, whose docstring is the sentence the person reads.

Braces in a docstring are filled from the error's data, which stays readable as attributes of `data`.
"""

import inspect
from typing import Any, ClassVar


class PostroomError(Exception):
    """Something went wrong in the post room."""

    code: ClassVar[str] = "POSTROOM_ERROR"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    # Which of several messages that came together is meant, counted from 0, and its key if it has one.
    item: int | None = None
    item_key: str | None = None

    def __init__(self, **data: Any) -> None:
        self.data = data
        super().__init__(self._sentence(data))

    def of_item(self, number: int, key: str | None = None) -> None:
        self.item, self.item_key = number, key

    def __str__(self) -> str:
        if self.item is None:
            return super().__str__()
        key = "" if self.item_key is None else f' (key "{self.item_key}")'
        return f"Message {self.item + 1}{key}: {super().__str__()} None of them was published."

    @classmethod
    def _sentence(cls, data: dict[str, Any]) -> str:
        template = " ".join(inspect.cleandoc(cls.__doc__ or cls.__name__).split())
        return template.format(**data)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.data), self.__dict__


def _rebuild(kind: type[PostroomError], data: dict[str, Any]) -> PostroomError:
    return kind(**data)


class NotFound(PostroomError):
    """There is no such thing in the post room."""

    code = "NOT_FOUND"
    http_status = 404
    exit_code = 4


class ScopeNotFound(NotFound):
    """There is no scope "{scope}". Create it first, or check the spelling."""

    code = "SCOPE_NOT_FOUND"


class QueueNotFound(NotFound):
    """There is no queue "{queue}". Create it first, or check the spelling."""

    code = "QUEUE_NOT_FOUND"


class MessageNotFound(NotFound):
    """There is no message with the id "{message_id}"."""

    code = "MESSAGE_NOT_FOUND"


class SubscriptionNotFound(NotFound):
    """The queue "{queue}" has no subscription "{subscription}". Subscribe first."""

    code = "SUBSCRIPTION_NOT_FOUND"


class SchemaNotFound(NotFound):
    """The scope "{scope}" has no schema "{name}" in version {version}. Register it first."""

    code = "SCHEMA_NOT_FOUND"


class DocumentNotFound(NotFound):
    """There is no {kind} "{key}"."""

    code = "DOCUMENT_NOT_FOUND"


class Invalid(PostroomError):
    """The request is not valid."""

    code = "VALIDATION_ERROR"
    http_status = 422
    exit_code = 2


class InvalidField(Invalid):
    """{field}: {problem}."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field=field, problem=problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidField, (self.data["field"], self.data["problem"]), self.__dict__


class BodyTooLarge(Invalid):
    """The {what} has {size} bytes; at most {limit} are allowed. Keep large data elsewhere and send a link."""

    code = "BODY_TOO_LARGE"
    http_status = 413


class SchemaViolation(Invalid):
    """The body does not match the schema "{schema}": {problems}."""

    code = "SCHEMA_VIOLATION"


class Conflict(PostroomError):
    """The request does not fit the present state."""

    code = "CONFLICT"
    http_status = 409
    exit_code = 5


class SlugTaken(Conflict):
    """The {kind} "{slug}" exists already."""

    code = "SLUG_CONFLICT"


class SchemaTaken(Conflict):
    """Version {version} of the schema "{name}" exists already, and a published version never changes."""

    code = "SCHEMA_CONFLICT"


class ScopeClosed(Conflict):
    """The scope "{scope}" is {state} and takes no new messages. Resume or unarchive it first."""

    code = "SCOPE_PAUSED"


class QueueClosed(Conflict):
    """The queue "{queue}" is {state} and takes no new messages. Resume or unarchive it first."""

    code = "QUEUE_PAUSED"


class QueueFull(Conflict):
    """The queue "{queue}" holds {depth} of {limit} messages. Let consumers catch up, or raise max_depth."""

    code = "QUEUE_FULL"
    http_status = 429


class IdempotencyConflict(Conflict):
    """The idempotency key "{key}" was used for another body in message {message_id}. Use a new key."""

    code = "IDEMPOTENCY_CONFLICT"


class ClaimLost(Conflict):
    """The claim on message {message_id} is no longer yours: the message is {state}. Drop this work."""

    code = "CLAIM_LOST"


class WrongState(Conflict):
    """Message {message_id} is {state}, so it cannot be {verb}."""

    code = "INVALID_STATE"


class WrongPlaceState(Conflict):
    """The {kind} "{slug}" is {state}, so it cannot be changed to {wanted}."""

    code = "INVALID_STATE"


class SystemQueue(Conflict):
    """The queue "{queue}" belongs to the system and cannot be {verb}."""

    code = "SYSTEM_QUEUE"


class NotEmpty(Conflict):
    """The {kind} "{slug}" still holds {count} open messages. Drain or cancel them first."""

    code = "NOT_EMPTY"


class DocumentChanged(Conflict):
    """The {kind} "{key}" was changed meanwhile: it is in version {found}, not {expected}. Read it again."""

    code = "DOCUMENT_CHANGED"


class PositionMoved(Conflict):
    """The reader "{name}" stands at event {seq} by now: another process reads for it. Go on from there."""

    code = "POSITION_MOVED"


class LimitReached(Conflict):
    """The account "{account}" has no room for {amount}: of {limit}, {spent} are spent and {reserved} are
    reserved. Wait until running work has ended, or raise the limit."""

    code = "LIMIT_REACHED"
    http_status = 429


class AccountFrozen(Conflict):
    """The account "{account}" is frozen ({reason}). Thaw it to go on."""

    code = "ACCOUNT_FROZEN"


class AlreadyFrozen(Conflict):
    """The account "{account}" is frozen already ({reason})."""

    code = "ALREADY_FROZEN"


class AlreadySettled(Conflict):
    """The work "{holder}" is settled, so nothing can be reserved for it. Use a new holder."""

    code = "ALREADY_SETTLED"


class StoreError(PostroomError):
    """The store cannot be used."""

    code = "STORE_ERROR"
    http_status = 503
    exit_code = 6


class StoreInUse(StoreError):
    """The store {path} is owned by another process (pid {pid}). Stop it, or talk to it over HTTP."""

    code = "STORE_IN_USE"


class StoreTooNew(StoreError):
    """The store {path} has schema version {found}; this program knows up to {known}. Upgrade Postroom."""

    code = "STORE_TOO_NEW"


class StoreReadOnly(StoreError):
    """The store {path} cannot be written: {reason}. Check the permissions of the file and its folder."""

    code = "STORE_READ_ONLY"


class StoreFull(StoreError):
    """The disk of {path} is full; nothing was written. Free some space and try again."""

    code = "STORE_FULL"
    http_status = 507


class StoreCorrupt(StoreError):
    """The store {path} is damaged: {problem}. Restore the newest backup."""

    code = "STORE_CORRUPT"


class StoreMoved(StoreError):
    """The file {path} was moved or deleted while in use: nothing is accepted. Put it back, and restart."""

    code = "STORE_MOVED"


class StoreVanished(StoreError):
    """The store {path} is gone; {heads} knows it up to event {seq}. Put it back, or restore a backup with
    postroom restore; to begin with an empty one, remove {heads}."""

    code = "STORE_VANISHED"


class StoreMissing(StoreError):
    """There is no store at {path}. Check the spelling."""

    code = "STORE_MISSING"


class StoreHalfMoved(StoreError):
    """The store {path} is half of another one: a move into it was cut off. Run postroom store move again,
    with the same two addresses; or use the store that it was moved from."""

    code = "STORE_HALF_MOVED"


class StoreNotEmpty(StoreError):
    """The store {path} is not empty. Move into a new one, or into one whose move was cut off, from the same
    address as before."""

    code = "STORE_NOT_EMPTY"


class StoreDiffers(StoreError):
    """The table {table} of {path} is not what it was copied from. Nothing was lost: go on with the store it
    was moved from, and use the same version of Postroom for both."""

    code = "STORE_DIFFERS"


class StoreRolledBack(StoreError):
    """The store {path} ends at event {seq}, but {heads} knows event {noted}: {missing} events are missing.
    Put the newer file back, or restore a backup with postroom restore; to go on as it is, remove {heads}."""

    code = "STORE_ROLLED_BACK"


class StoreRewritten(StoreError):
    """The store {path} has another event {seq} than the one that {heads} knows: it was rewritten, or is
    another store. Restore a backup with postroom restore; to go on as it is, remove {heads}."""

    code = "STORE_REWRITTEN"


class StoreFailed(StoreError):
    """The store {path} failed: {reason}. It may not have been accepted; retry with an idempotency key."""

    code = "STORE_FAILED"


class StoreClosed(StoreError):
    """The store is closed. Open it again before you use it."""

    code = "STORE_CLOSED"


class UnknownStore(StoreError):
    """The store address "{url}" is not known. Use sqlite:///path/to/file.db, postgresql://…, mariadb://… or memory://."""

    code = "STORE_UNKNOWN"
    http_status = 500
    exit_code = 2


class StoreNeedsExtra(StoreError):
    """A store at {url} needs {module}, which is not installed. Type: pip install "postroom[{extra}]"."""

    code = "STORE_NEEDS_EXTRA"
    http_status = 500
    exit_code = 2


class EventsPruned(Conflict):
    """Events after {after} are gone: the ledger now begins with event {first}. Start again from 0."""

    code = "EVENTS_PRUNED"


class LedgerBroken(StoreError):
    """The ledger is broken at event {seq}: {problem}."""

    code = "LEDGER_BROKEN"
    exit_code = 7
