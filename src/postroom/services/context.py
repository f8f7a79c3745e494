"""What all services stand on: the room, the clock, whose mail is the office's own, and what is remembered."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from postroom.clock import Clock
from postroom.errors import SlugTaken
from postroom.kernel import service_commands
from postroom.kernel.access import keys
from postroom.kernel.erasure.subject import ErasableLake
from postroom.kernel.model import Scope
from postroom.kernel.reader import Reader
from postroom.runtime import Room
from postroom.services import public_ids
from postroom.services.public_ids import PublicIds
from postroom.services.rights import RightsCache

OWN_SCOPES = frozenset({"office"})
# Queues of the default scope in which people are asked: no agent is given them, whatever the settings say.
ASKING = frozenset({"reviews"})


EraseFiles = Callable[[Sequence[str]], None]


class ServiceContext:
    """`closing` is set when nobody is to wait any more. `own_scopes` of the room's own tenant are for the
    owner, and for keys that are bound to them. `agent_queues` tells which work queues an agent was given;
    `erase_files` removes files of the office's own messages, and blocks."""

    def __init__(
        self,
        room: Room,
        *,
        clock: Clock | None = None,
        lake: ErasableLake | None = None,
        closing: asyncio.Event | None = None,
        own_scopes: frozenset[str] = OWN_SCOPES,
        agent_queues: Callable[[str], Sequence[str]] = lambda agent: (),
        erase_files: EraseFiles = lambda refs: None,
    ) -> None:
        self.room = room
        self.clock = clock or room.clock
        self.lake = lake
        self.closing = closing or asyncio.Event()
        self.rights = RightsCache()
        self.agent_queues = agent_queues
        self.erase_files = erase_files
        self._own_scopes = own_scopes
        self._names: dict[int, tuple[str, str]] = {}
        self._ids: PublicIds | None = None
        self._making = asyncio.Lock()

    def is_own(self, scope: Scope) -> bool:
        return scope.slug in self._own_scopes and scope.tenant == self.room.tenant

    def is_given(self, agent: str, slug: str) -> bool:
        """Whether an agent's tools reach this queue of the default scope."""
        return slug not in ASKING and any(fnmatchcase(slug, name) for name in self.agent_queues(agent))

    def queue_name(self, reader: Reader, queue_id: int) -> tuple[str, str]:
        """Scope and slug of a queue, also of one that was deleted: they never change."""
        if queue_id not in self._names:
            self._names.update(reader.queue_names())
        return self._names[queue_id]

    def known_ids(self, reader: Reader) -> PublicIds | None:
        """None while no id was ever given out: then no name can be one."""
        if self._ids is None:
            found = reader.document(keys.NOBODY, public_ids.SECRETS, public_ids.NAME)
            if found is not None:
                self._ids = PublicIds(bytes.fromhex(found.data["hex"]))
        return self._ids

    async def public_ids(self) -> PublicIds:
        """With a secret of this store, made when it is first needed."""
        if self._ids is None:
            async with self._making:
                if await self.room.look(self.known_ids) is None:
                    await self._make_secret()
        assert self._ids is not None
        return self._ids

    async def _make_secret(self) -> None:
        command = service_commands.PutServiceDocument(
            kind=public_ids.SECRETS,
            key=public_ids.NAME,
            data={"hex": secrets.token_hex(32)},
            tenant=keys.NOBODY,
            actor="service",
            new=True,
        )
        with contextlib.suppress(SlugTaken):  # another process was first
            await self.room.run(command)
        await self.room.look(self.known_ids)
