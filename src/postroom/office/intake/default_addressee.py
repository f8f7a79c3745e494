"""The default addressee of a chat: who was last addressed with an `@` gets what comes without one.

It is kept with the ledger, so it outlives restarts. Where a chat has none, the settings may have one.
"""

from collections.abc import Mapping

import msgspec

from postroom.kernel import commands as c
from postroom.office.intake.routing import CLEAR, OfficeDirectory, Stuck, stick
from postroom.office.ports import RoomPort

KIND = "sticky"


class Sticky(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is an agent or a team. `by` is the platform's id of the message that chose it."""

    target: str | None = None
    by: str | None = None


class Defaults:
    """The defaults of all chats; `settings` has those of chats that never chose."""

    def __init__(self, room: RoomPort, settings: Mapping[str, str] | None = None) -> None:
        self._room = room
        self._settings = dict(settings or {})

    async def of(self, channel: str, chat: str) -> Sticky:
        record = await self._room.latest_record(KIND, _key(channel, chat))
        if record is not None:
            return msgspec.convert(record.data, Sticky)
        return Sticky(target=self._settings.get(chat))

    async def read(
        self, text: str, directory: OfficeDirectory, channel: str, chat: str, by: str | None
    ) -> tuple[Stuck, list[c.Command]]:
        """What the chat's default makes of a message, and the change to commit with it, if there is one."""
        before = await self.of(channel, chat)
        if by is not None and before.by == by:
            # The platform sends again what has switched already, maybe long ago.
            stuck = stick(text, directory, {chat: before.target} if before.target else {}, chat)
            return msgspec.structs.replace(stuck, notice=None), []
        defaults = {chat: before.target} if before.target else {}
        stuck = stick(text, directory, defaults, chat)
        after = defaults.get(chat)
        if after == before.target:
            return stuck, []
        return stuck, [self._change(channel, chat, Sticky(target=after, by=by))]

    async def choose(self, directory: OfficeDirectory, channel: str, chat: str, word: str | None) -> str:
        """Change it without a message, as a command like `/default coder` does; None clears. Says what is."""
        stuck, commands = await self.read(f"@{word or CLEAR}", directory, channel, chat, None)
        if commands:
            await self._room.run(c.Unit(commands=tuple(commands), actor=self._room.actor))
        if stuck.notice is not None:
            return stuck.notice
        known = stuck.sticky
        return f"@{known} has your messages already." if known else f'There is no agent or team "{word}".'

    def _change(self, channel: str, chat: str, sticky: Sticky) -> c.Command:
        data = msgspec.to_builtins(sticky)
        return c.AddRecord(kind=KIND, key=_key(channel, chat), data=data, actor=self._room.actor)


def _key(channel: str, chat: str) -> str:
    return f"{channel}/{chat}"
