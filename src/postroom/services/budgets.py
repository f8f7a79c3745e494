"""What the guards have stopped, today's budgets, and the switch that pauses everybody."""

import msgspec

from postroom.errors import InvalidField, NotFound, ScopeNotFound
from postroom.office import queues
from postroom.office.guards import pauses
from postroom.office.guards.pauses import BudgetStatus, PausedConversation
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_member, require_owner, require_viewer


class ConversationNotFound(NotFound):
    """There is no conversation "{conversation}". See postroom guards list, or postroom trace."""


class GuardOverview(msgspec.Struct, frozen=True):
    """`paused`: no agent begins a turn. The conversations wait for a person; the budgets are today's."""

    paused: bool
    conversations: tuple[PausedConversation, ...]
    budgets: tuple[BudgetStatus, ...]


class BudgetService(OfficeService):
    """Where a number is returned, it is that of the messages that go on, or were cancelled."""

    async def overview(self, caller: Caller) -> GuardOverview:
        require_viewer(caller)
        control, room = await self._context.control(), await self._context.room()
        return GuardOverview(
            await pauses.paused(room),
            tuple(await pauses.paused_conversations(room)),
            tuple(await pauses.budgets(room, control.office.guards, self._context.clock.now())),
        )

    async def resume(self, caller: Caller, conversation: str) -> int:
        """As far again as the guard that stopped it allows."""
        require_member(caller)
        await self._check_known(conversation)
        return await pauses.resume(await self._context.room(), conversation)

    async def stop(self, caller: Caller, conversation: str) -> int:
        """For good: what is open of it is cancelled."""
        require_member(caller)
        await self._check_known(conversation)
        count = await pauses.stop(await self._context.room(), conversation)
        (await self._context.control()).office.look_up()
        return count

    async def raise_limits(
        self,
        caller: Caller,
        conversation: str,
        *,
        usd: float | None = None,
        messages: int | None = None,
        hops: int | None = None,
    ) -> int:
        """New limits for one conversation; if it was paused, it goes on."""
        require_owner(caller)
        await self._check_known(conversation)
        room = await self._context.room()
        return await pauses.raise_limit(room, conversation, usd=usd, messages=messages, hops=hops)

    async def raise_budget(self, caller: Caller, account: str, usd: float) -> int:
        """A higher limit for one of today's budgets."""
        require_owner(caller)
        return await pauses.raise_budget(await self._context.room(), account, usd)

    async def raise_named(
        self,
        caller: Caller,
        name: str,
        *,
        usd: float,
        messages: int | None = None,
        hops: int | None = None,
    ) -> int:
        """Of whatever has this name: a budget of today, else a conversation."""
        found = await self.overview(caller)
        if name not in {each.account for each in found.budgets}:
            return await self.raise_limits(caller, name, usd=usd, messages=messages, hops=hops)
        if messages is not None or hops is not None:
            raise InvalidField("limit", "is money only for a budget; messages and hops are for conversations")
        return await self.raise_budget(caller, name, usd)

    async def pause_all(self, caller: Caller) -> bool:
        """No agent begins a turn any more; messages are still accepted. False: it was so already."""
        require_owner(caller)
        return await pauses.pause_all(await self._context.room())

    async def resume_all(self, caller: Caller) -> int:
        require_owner(caller)
        return await pauses.resume_all(await self._context.room())

    async def _check_known(self, conversation: str) -> None:
        room = await self._context.room()
        try:
            page = await room.messages(scope=queues.SCOPE, correlation_id=conversation, limit=1)
        except ScopeNotFound:  # an office that never ran has had no conversation
            raise ConversationNotFound(conversation=conversation) from None
        if not page.messages:
            raise ConversationNotFound(conversation=conversation)
