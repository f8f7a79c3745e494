"""What one caller may see and do, asked at the data: every path that reads, moves or erases asks here.

Whatever a caller may not know of answers exactly like what does not exist.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from postroom.errors import InvalidField, MessageNotFound, PostroomError, QueueNotFound, ScopeNotFound
from postroom.kernel import checks
from postroom.kernel.access import acl, trust
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import DEAD_LETTER, EVENTS_QUEUE, INTEGRITY, Queue, Scope
from postroom.kernel.ports import MessageFilter
from postroom.kernel.reader import Reader
from postroom.kernel.rows import Row, Stored
from postroom.services.callers import Caller, CallerKind
from postroom.services.context import ServiceContext
from postroom.services.errors import AclDenied, OwnerOnly, QueueNotGiven, ScopeNotYours, TrustRequired
from postroom.services.public_ids import is_public_id

# What lies in them tells of messages in all queues of their scope.
TELLING = frozenset({EVENTS_QUEUE, INTEGRITY})


class CallSubject(msgspec.Struct):
    """What a call turned out to be about, for the audit."""

    scope_id: int = 0
    queue_id: int = 0
    message_id: str | None = None
    correlation_id: str | None = None

    def set_message(self, row: Row) -> None:
        self.message_id, self.correlation_id = row.id, row.correlation_id


class Sight(msgspec.Struct, frozen=True):
    """Which queues of a scope a caller may look into: those named, and whether the others."""

    others: bool
    named: dict[int, bool]

    @property
    def is_whole(self) -> bool:
        return self.others and all(self.named.values())

    def covers(self, queue_id: int) -> bool:
        return self.named.get(queue_id, self.others)

    def covers_row(self, row: Row) -> bool:
        """A dead letter is for those who may know of where it lies, and of where it came from."""
        origin = row.origin_queue_id
        return self.covers(row.queue_id) and (origin is None or self.covers(origin))


EVERYTHING = Sight(True, {})
_STRICTNESS = (AccessVerdict.ALLOWED, AccessVerdict.REFUSED, AccessVerdict.HIDDEN)


class Access:
    """`refusal` is why the caller may not do this at all: it is told before anything a name would tell."""

    def __init__(
        self,
        reader: Reader,
        caller: Caller,
        wanted: Permission,
        context: ServiceContext,
        *,
        subject: CallSubject | None = None,
        refusal: PostroomError | None = None,
    ) -> None:
        self.reader = reader
        self.caller = caller
        self.wanted = wanted
        self.now = context.clock.now()
        self.rights = context.rights.at(reader)
        self._context = context
        self._subject = subject or CallSubject()
        self._refusal = refusal

    @property
    def tenant(self) -> str:
        return self.caller.tenant

    def require_owner(self) -> None:
        if not self.caller.is_owner:
            raise OwnerOnly

    # what a call is about, by name or public id

    def scope(self, name: str) -> Scope:
        """The scope the call is about, if the caller may know of it and do there what it wants."""
        return self._entered(lambda: self._enter(name, None))[0]

    def queue(self, scope: str, name: str) -> Queue:
        found = self._entered(lambda: self._enter(scope, name))[1]
        assert found is not None
        return found

    def message(self, scope: str | None, message_id: str) -> Stored:
        """A message of a scope; without one, of whichever scope of the tenant it is in."""
        return self._entered(lambda: self._enter_message(scope, message_id))

    def each_message(self, scope: str, message_ids: Sequence[str]) -> list[Stored | PostroomError]:
        """As `message`, for many with one question: each of them, or why it is not told."""
        self._entered(lambda: self._known_scope(scope))
        known = self.reader.get_many({each for each in message_ids if checks.is_text(each)})
        found: list[Stored | PostroomError] = []
        for message_id in message_ids:
            try:
                found.append(self._entered(partial(self._enter_known, scope, message_id, known)))
            except PostroomError as error:
                found.append(error)
        return found

    def _entered(self, enter: Callable[[], Any]) -> Any:
        try:
            found = enter()
        except PostroomError as error:
            raise self._refusal or error from None
        if self._refusal is not None:
            raise self._refusal
        return found

    def _enter(self, scope_name: str, queue_name: str | None) -> tuple[Scope, Queue | None]:
        scope = self._known_scope(scope_name)
        queue = None
        if queue_name is not None:
            queue = self.find_queue(scope, queue_name)
            self._check_given(queue.slug)
            verdict = self.verdict(scope, queue, self.wanted)
            if verdict is AccessVerdict.HIDDEN:
                raise _no_queue(scope, queue_name)
        else:
            verdict = self.verdict(scope, None, self.wanted)
        self._set_subject(scope, queue)
        if verdict is not AccessVerdict.ALLOWED:
            raise AclDenied(place=queue.path if queue else scope.slug, permission=self.wanted)
        return scope, queue

    def _enter_message(self, scope_name: str | None, message_id: str) -> Stored:
        stored = self.reader.get(message_id) if checks.is_text(message_id) else None
        return self._enter_known(scope_name, message_id, {message_id: stored} if stored else {})

    def _enter_known(self, scope_name: str | None, message_id: str, known: Mapping[str, Stored]) -> Stored:
        scope = self._known_scope(scope_name) if scope_name is not None else None
        stored = known.get(message_id) if checks.is_text(message_id) else None
        if stored is None or stored.row.tenant != self.tenant:
            raise MessageNotFound(message_id=message_id)
        row = stored.row
        place, slug = self._context.queue_name(self.reader, row.queue_id)
        if scope is None and (scope := self.reader.scope(self.tenant, place)) is not None:
            self._known_scope(scope.slug)
        if scope is None and self.caller.is_owner:
            return stored  # its scope was deleted; the archive is still the owner's
        if scope is None or row.scope_id != scope.id:
            raise MessageNotFound(message_id=message_id)
        self._check_given(slug)
        verdict = self.message_verdict(scope, row, self.wanted)
        if verdict is AccessVerdict.HIDDEN:
            raise MessageNotFound(message_id=message_id)
        self._subject.scope_id, self._subject.queue_id = scope.id, row.queue_id
        self._subject.set_message(row)
        if verdict is not AccessVerdict.ALLOWED:
            raise AclDenied(place=f"{place}/{slug}", permission=self.wanted)
        return stored

    def _known_scope(self, name: str) -> Scope:
        if self.caller.scope not in (None, name):
            raise ScopeNotYours(agent=self.caller.name, scope=self.caller.scope)
        scope = self.find_scope(name)
        if self.verdict(scope, None, self.wanted) is AccessVerdict.HIDDEN and not self.is_named_in(scope):
            raise ScopeNotFound(scope=name)
        return scope

    def _check_given(self, slug: str) -> None:
        caller = self.caller
        if caller.kind is CallerKind.AGENT and not self._context.is_given(caller.name, slug):
            raise QueueNotGiven(agent=caller.name, queue=slug)

    def _set_subject(self, scope: Scope, queue: Queue | None) -> None:
        self._subject.scope_id = scope.id
        self._subject.queue_id = queue.id if queue is not None else 0

    # names

    def find_scope(self, name: str) -> Scope:
        """By its slug or its id, whether the caller may know of it or not."""
        found = self.reader.scope(self.tenant, name) if checks.is_text(name) else None
        if found is None and is_public_id(name):
            known = {scope.id: scope for scope in self.reader.scopes(self.tenant)}
            number = self.find_number("scope", name, known)
            found = known[number] if number is not None else None
        if found is None:
            raise ScopeNotFound(scope=name)
        return found

    def find_queue(self, scope: Scope, name: str) -> Queue:
        found = self.reader.queue(self.tenant, scope.slug, name) if checks.is_text(name) else None
        if found is None and is_public_id(name):
            known = {queue.id: queue for queue in self.reader.queues(self.tenant, scope.slug)}
            number = self.find_number("queue", name, known)
            found = known[number] if number is not None else None
        if found is None:
            raise _no_queue(scope, name)
        return found

    def scopes(self, name: str | None) -> list[Scope]:
        """The scope of this name; without one, all that the caller may do this in."""
        if name is not None:
            return [self.scope(name)]
        return [
            scope
            for scope in self.reader.scopes(self.tenant)
            if self.caller.scope in (None, scope.slug)
            and (self.verdict(scope, None, self.wanted) is AccessVerdict.ALLOWED or self.is_named_in(scope))
        ]

    def find_number(self, kind: str, public_id: str, numbers: Iterable[int]) -> int | None:
        """The one of these numbers that has this id."""
        ids = self._context.known_ids(self.reader) if is_public_id(public_id) else None
        return ids.find(kind, public_id, numbers) if ids is not None else None

    def queue_path(self, queue_id: int) -> str:
        """Also of a queue that was deleted."""
        return "/".join(self._context.queue_name(self.reader, queue_id))

    def queue_by_id(self, queue_id: int) -> Queue:
        scope, slug = self._context.queue_name(self.reader, queue_id)
        found = self.reader.queue(self.tenant, scope, slug)
        if found is None:
            raise QueueNotFound(queue=f"{scope}/{slug}")
        return found

    # verdicts

    def verdict(self, scope: Scope, queue: Queue | None, wanted: Permission) -> AccessVerdict:
        if queue is None:
            return self._judge(scope, None, wanted)
        return self._judge(scope, queue.id, wanted, tells=queue.slug in TELLING)

    def _judge(
        self, scope: Scope, queue_id: int | None, wanted: Permission, *, tells: bool = False
    ) -> AccessVerdict:
        if not self._is_reached(scope, wanted):
            return AccessVerdict.HIDDEN
        if self.caller.is_admin:
            return AccessVerdict.ALLOWED
        found: Iterable[acl.AclEntry] = ()
        if queue_id is not None:
            found = self.rights.entries(self.reader, self.tenant, acl.ENTRY, f"{scope.id}/{queue_id}/")
        found = found or self.rights.entries(self.reader, self.tenant, acl.GRANT, f"{scope.id}/")
        verdict = acl.judge(found, self.caller.principals, wanted, self.now)
        if tells and verdict is AccessVerdict.ALLOWED and not self.sight(scope).is_whole:
            return AccessVerdict.HIDDEN
        return verdict

    def _is_reached(self, scope: Scope, wanted: Permission) -> bool:
        """Whether the key leads here at all: it may be bound elsewhere, and the office's own mail is for keys
        that were made for it alone."""
        bound = self.caller.scope_id
        if bound not in (0, scope.id) and not (
            wanted is Permission.PUBLISH
            and trust.may_cross(self.reader, self.tenant, bound, scope.id, "publish")
        ):
            return False
        return self.caller.key is None or bound == scope.id or not self._context.is_own(scope)

    def message_verdict(self, scope: Scope, row: Row, wanted: Permission) -> AccessVerdict:
        """A dead letter is for those who may know of where it lies, and of where it came from."""
        _, slug = self._context.queue_name(self.reader, row.queue_id)
        found = {self._judge(scope, row.queue_id, wanted, tells=slug in TELLING)}
        if slug == DEAD_LETTER and row.origin_queue_id is not None:
            found.add(self._judge(scope, row.origin_queue_id, wanted))
        return max(found, key=_STRICTNESS.index)

    def is_named_in(self, scope: Scope) -> bool:
        """Whether a queue's list lets them in although the scope's does not."""
        if self.caller.scope_id not in (0, scope.id) or not self._is_reached(scope, self.wanted):
            return False
        found = self.rights.entries(self.reader, self.tenant, acl.ENTRY, f"{scope.id}/")
        return any((entry.principal_type, entry.principal_id) in self.caller.principals for entry in found)

    def sight(self, scope: Scope, wanted: Permission = Permission.VIEW) -> Sight:
        """Which queues of a scope the caller may look into (or do `wanted` in)."""
        if self.caller.is_admin and self._is_reached(scope, wanted):
            return EVERYTHING
        others = self._judge(scope, None, wanted) is AccessVerdict.ALLOWED
        principals = self.caller.principals
        named = {
            queue_id: self._is_reached(scope, wanted)
            and acl.judge(entries, principals, wanted, self.now) is AccessVerdict.ALLOWED
            for queue_id, entries in self.rights.queue_lists(self.reader, self.tenant, scope.id).items()
        }
        sight = Sight(others, named)
        if sight.is_whole:
            return sight
        for slug in TELLING:
            queue = self.reader.queue(self.tenant, scope.slug, slug)
            if queue is not None:
                named[queue.id] = False
        return sight

    def list_queues(self, scope: Scope, wanted: Permission = Permission.VIEW) -> list[Queue]:
        """The queues of a scope in which the caller may do this."""
        sight = self.sight(scope, wanted)
        queues = self.reader.queues(self.tenant, scope.slug)
        return queues if sight.is_whole else [queue for queue in queues if sight.covers(queue.id)]

    def queue_ids(self, scope: Scope, wanted: Permission) -> tuple[int, ...] | None:
        """The numbers of the queues in which the caller may do this; None: in all, also in deleted ones."""
        sight = self.sight(scope, wanted)
        if sight.is_whole:
            return None
        return tuple(queue.id for queue in self.list_queues(scope, wanted))

    # messages

    def visible_message(self, scope: Scope, message_id: str) -> Stored | None:
        """A message of a scope, if the caller may look at it."""
        stored = self.reader.get(message_id) if checks.is_text(message_id) else None
        if stored is None or (stored.row.tenant, stored.row.scope_id) != (self.tenant, scope.id):
            return None
        verdict = self.message_verdict(scope, stored.row, Permission.VIEW)
        return stored if verdict is AccessVerdict.ALLOWED else None

    def messages(self, scope: Scope, wanted: MessageFilter, after: int | None, limit: int) -> list[Stored]:
        """A page, without what lies in queues that the caller may not look into, or died in them."""
        sight = self.sight(scope)
        if sight.is_whole:
            return self.reader.page(wanted, after, limit)
        seen = [queue.id for queue in self.reader.queues(self.tenant, scope.slug) if sight.covers(queue.id)]
        wanted = msgspec.structs.replace(wanted, queue_ids=tuple(seen))
        found: list[Stored] = []
        while True:
            part = self.reader.page(wanted, after, limit)
            found += [each for each in part if sight.covers_row(each.row)]
            if len(part) < limit or len(found) >= limit:
                return found[:limit]
            after = part[-1].row.seq

    # what a call names besides

    def target(self, source: Scope, name: str, field: str) -> Queue:
        """A queue that messages of a scope may be led to: by slug in the scope itself, by id or
        `scope/queue` in any other that trusts it."""
        queue = self._named_queue(source, name)
        if queue is None:
            raise InvalidField(field, f"there is no queue {name!r}")
        if not trust.may_cross(self.reader, self.tenant, source.id, queue.scope_id, "route"):
            raise TrustRequired(source=source.slug, target=queue.scope, crossing="route")
        return queue

    def _named_queue(self, source: Scope, name: str) -> Queue | None:
        for scope, slug in self._meanings(source, name):
            try:
                queue = self.find_queue(scope, slug)
            except QueueNotFound:
                continue
            if self.verdict(scope, queue, Permission.VIEW) is not AccessVerdict.HIDDEN:
                return queue
        return None

    def _meanings(self, source: Scope, name: str) -> Iterator[tuple[Scope, str]]:
        """Where a name may lead. A key that is bound to a scope leads nowhere else."""
        bound = bool(self.caller.scope_id)
        place, slash, slug = name.partition("/")
        if slash and (place == source.slug or not bound):
            scope = self.reader.scope(self.tenant, place)
            if scope is not None:
                yield scope, slug
        yield source, name
        if is_public_id(name) and not bound:
            yield from ((scope, name) for scope in self.reader.scopes(self.tenant))


def _no_queue(scope: Scope, name: str) -> QueueNotFound:
    return QueueNotFound(queue=name if is_public_id(name) else f"{scope.slug}/{name}")
