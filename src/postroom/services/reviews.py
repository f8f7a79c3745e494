"""Reviews: questions that wait for a person, shown with the mark of what is seen, answered once."""

from typing import Any

import msgspec

from postroom.kernel import jsontext, service_commands
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Record
from postroom.kernel.ports import MessageFilter
from postroom.kernel.reviews import answering
from postroom.kernel.rows import Stored
from postroom.services.access import Access
from postroom.services.callers import Caller, CallerKind
from postroom.services.calls import Operation, ServiceCall
from postroom.services.errors import AclDenied, ReviewForPeople
from postroom.services.messages import FoundMessage, MessageService

MOST_LOOKED = 5000
NEVER = 2**62
# What keys that were made for agents call themselves (`actor_type`).
AGENT_TYPES = frozenset({"agent", "system_agent"})


class Review(msgspec.Struct, frozen=True):
    """A message that asks a person. `seen` stands for exactly what is shown of it."""

    found: FoundMessage
    spec: dict[str, Any]
    seen: str
    due_at: int | None
    decided: dict[str, Any] | None = None
    """Who decided what, when (`at`), seeing what."""

    @property
    def assignee(self) -> str | None:
        return self.spec.get("assignee")

    @property
    def is_escalated(self) -> bool:
        return bool(self.spec.get("escalated"))


class Reviews(MessageService):
    LIST = Operation("review.list", Permission.VIEW)
    READ = Operation("review.read", Permission.VIEW)
    ANSWER = Operation("review.answer", Permission.CONSUME)

    async def list_open(self, caller: Caller, scope: str, *, mine: bool = False) -> list[Review]:
        """What waits for an answer, the most urgent first; `mine`: what is assigned to this caller."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[Stored]:
                place = access.scope(scope)
                wanted = MessageFilter(
                    tenant=access.tenant, scope=place.slug, states=("pending", "claimed"), reviews=True
                )
                return access.messages(place, wanted, None, MOST_LOOKED)

            stored = await call.look(find, quick=False)
            stored.sort(key=lambda each: (each.row.expires_at or NEVER, each.row.seq))
            found = [self._review(each) for each in stored]
            return [each for each in found if not mine or _is_assigned(caller, each.assignee)]

    async def list_everywhere(self, caller: Caller, limit: int = 200) -> list[Review]:
        """What waits for an answer in any scope, the oldest first. For the owner."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[Stored]:
                access.require_owner()
                wanted = MessageFilter(tenant=access.tenant, states=("pending", "claimed"), reviews=True)
                return access.reader.page(wanted, None, limit)

            return [self._review(each) for each in await call.look(find, quick=False)]

    async def read(self, caller: Caller, message_id: str, *, scope: str | None = None) -> Review:
        """What a reviewer sees, and when it is answered, who decided what, when, seeing what."""
        async with self._call(caller, self.READ) as call:

            def find(access: Access) -> tuple[Stored, Record | None]:
                stored = access.message(scope, message_id)
                answering.spec_of(stored.row, stored.content)
                return stored, access.reader.latest_record(access.tenant, answering.RECORD, message_id)

            stored, record = await call.look(find)
            return self._review(stored, record)

    async def answer(
        self,
        caller: Caller,
        message_id: str,
        values: dict[str, Any],
        *,
        scope: str | None = None,
        seen: str | None = None,
        token: str | None = None,
    ) -> FoundMessage:
        """Decide. A second answer, and one that comes too late, is refused and changes nothing."""
        async with self._call(caller, self.ANSWER) as call:
            stored = await call.look(lambda access: access.message(scope, message_id))
            await call.commit(answer_command(call, stored, values, seen=seen, token=token), review=True)
            return (await self._read(message_id))[0]

    def _review(self, stored: Stored, record: Record | None = None) -> Review:
        return Review(
            self._found(stored),
            jsontext.decode_any(stored.content.hitl_spec, {}),
            answering.seen_mark(stored.content),
            stored.row.expires_at,
            dict(record.data) if record is not None else None,
        )


def answer_command(
    call: ServiceCall, stored: Stored, values: Any, *, seen: str | None = None, token: str | None = None
) -> service_commands.AnswerReview:
    """An answer of this caller, if the review is for everybody or for them."""
    require_person(call.caller, stored)
    assignee = answering.spec_of(stored.row, stored.content).get("assignee")
    if assignee and not call.caller.is_admin and not _is_assigned(call.caller, assignee):
        raise AclDenied(place=f"this review, which is assigned to {assignee},", permission="answer")
    return service_commands.AnswerReview(
        message_id=stored.row.id,
        answer=values,
        reviewer=f"user:{call.caller.user_id}" if call.caller.user_id else call.caller.actor,
        token=token,
        seen=seen,
        **call.who,
    )


def require_person(caller: Caller, stored: Stored) -> None:
    """Agents, and whoever asked, decide nothing about a review. The owner is always a person."""
    asker = (stored.content.source_type, stored.content.source_id)
    who = ""
    if is_agent(caller):
        who = "agents"
    elif not caller.is_owner and asker == (caller.source_type, caller.author):
        who = "whoever asked"
    if who:
        raise ReviewForPeople(message_id=stored.row.id, who=who)


def is_agent(caller: Caller) -> bool:
    """An agent of the office, or the holder of a key that was made for one."""
    return caller.kind is CallerKind.AGENT or caller.source_type in AGENT_TYPES


def _is_assigned(caller: Caller, assignee: str | None) -> bool:
    """`user:…`, `group:…`, `role:…`; a bare name is a user."""
    kind, colon, name = (assignee or "").partition(":")
    return bool(assignee) and ((kind, name) if colon else ("user", assignee)) in caller.principals
