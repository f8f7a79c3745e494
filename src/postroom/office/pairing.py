"""Pairing: who may write. A stranger gets a code once, and silence until the owner has approved it.

Everything is bounded: how long a code lives, how many strangers may wait, and how many codes an hour gives.
"""

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from postroom.clock import SECOND, Clock, iso
from postroom.errors import InvalidField, NotFound
from postroom.kernel import commands as c
from postroom.kernel.checks import is_text
from postroom.kernel.model import Document
from postroom.office.documents import everything, persistently
from postroom.office.ports import RoomPort

log = logging.getLogger("postroom.pairing")

PAIRING = "pairing"
PACE = "pairing.pace"
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_CHARS = 8
NAME_CHARS = 200


class CodeNotFound(NotFound):
    """There is no pairing code "{code}". It may have expired: let the person write again."""

    code = "PAIRING_CODE_NOT_FOUND"


class PairingNotFound(NotFound):
    """Nobody is paired as "{sender_id}" on {channel}."""

    code = "PAIRING_NOT_FOUND"


class SenderRole(StrEnum):
    """What somebody on a channel may do: everything, talk to everybody about their own, or only talk."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"


class PairingLimits(msgspec.Struct, frozen=True, kw_only=True):
    lifetime_s: float = 24 * 3600
    waiting: int = 100
    codes_an_hour: int = 20
    seen_every_s: float = 60


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody on a channel who asked to write, and may since `approved_at`."""

    channel: str
    sender_id: str
    sender: str
    code: str
    created_at: int
    seen_at: int
    approved_at: int | None = None
    role: SenderRole = SenderRole.MEMBER

    def document(self) -> dict[str, Any]:
        """In the shape clients know."""
        who = {"channel": self.channel, "senderId": self.sender_id, "sender": self.sender}
        if self.approved_at is not None:
            approved = {"approvedAt": self.approved_at // 1000, "approvedCode": self.code}
            return {**who, **approved, "approved_at": iso(self.approved_at), "role": self.role.value}
        return {
            **who,
            "code": self.code,
            "createdAt": self.created_at // 1000,
            "lastSeenAt": self.seen_at // 1000,
            "created_at": iso(self.created_at),
            "last_seen_at": iso(self.seen_at),
        }


class Admission(msgspec.Struct, frozen=True):
    """Whether somebody may write and as whom, and what to tell them; usually nothing."""

    approved: bool
    reply: str | None = None
    role: SenderRole | None = None


def reply_with(code: str) -> str:
    return (
        "This sender is not paired yet.\n"
        f"Your pairing code: {code}\n"
        "Ask the owner of this post room to approve you with:\n"
        f"postroom pairing approve {code}"
    )


class Pairings:
    def __init__(self, room: RoomPort, clock: Clock, bounds: PairingLimits | None = None) -> None:
        self._room = room
        self._clock = clock
        self._bounds = bounds or PairingLimits()

    async def admit(
        self,
        channel: str,
        sender_id: str,
        sender: str,
        tell: Callable[[str], Sequence[c.Command]] = lambda reply: (),
    ) -> Admission:
        """Ask this before anything is done for a message: files are fetched only for who is approved.

        What `tell` makes of the reply to a stranger commits with the code."""
        _check(channel, sender_id)
        sender = _short(sender)

        async def step() -> Admission:
            now = self._clock.now()
            document = await self._room.document(PAIRING, _key(channel, sender_id))
            known = _pairing(document) if document else None
            if document is None or known is None or self._expired(known, now):
                return await self._stranger(document, channel, sender_id, sender, now, tell)
            stale = now - known.seen_at >= self._bounds.seen_every_s * SECOND
            if known.sender != sender or (known.approved_at is None and stale):
                seen = msgspec.structs.replace(known, sender=sender, seen_at=max(now, known.seen_at))
                await self._room.run(self._put(seen, document.version))
            return Admission(known.approved_at is not None, role=known.role if known.approved_at else None)

        return await persistently(step)

    async def waiting(self) -> list[Pairing]:
        """Those with a code that still holds, oldest first."""
        return [pairing for pairing in await self._all() if pairing.approved_at is None]

    async def approved(self) -> list[Pairing]:
        return [pairing for pairing in await self._all() if pairing.approved_at is not None]

    async def find_role(self, channel: str, sender_id: str) -> SenderRole | None:
        """None: they may not write."""
        document = await self._room.document(PAIRING, _key(channel, sender_id))
        known = _pairing(document) if document else None
        return known.role if known is not None and known.approved_at is not None else None

    async def approve(self, code: str, role: SenderRole | None = None) -> Pairing:
        """The first person of all becomes an owner, since nobody else could be it; later ones are members."""

        async def step() -> Pairing:
            document, known = await self._waiting_with(code)
            given = role or (SenderRole.MEMBER if await self.approved() else SenderRole.OWNER)
            done = msgspec.structs.replace(known, approved_at=self._clock.now(), role=given)
            await self._room.run(self._put(done, document.version))
            return done

        return await persistently(step)

    async def change_role(self, channel: str, sender_id: str, role: SenderRole) -> Pairing:
        async def step() -> Pairing:
            document, known = await self._approved_as(channel, sender_id)
            changed = msgspec.structs.replace(known, role=role)
            await self._room.run(self._put(changed, document.version))
            return changed

        return await persistently(step)

    async def dismiss(self, code: str) -> Pairing:
        """Forget a stranger; another message begins anew."""

        async def step() -> Pairing:
            document, known = await self._waiting_with(code)
            await self._room.run(self._drop(document))
            return known

        return await persistently(step)

    async def revoke(self, channel: str, sender_id: str) -> Pairing:
        async def step() -> Pairing:
            document, known = await self._approved_as(channel, sender_id)
            await self._room.run(self._drop(document))
            return known

        return await persistently(step)

    async def _approved_as(self, channel: str, sender_id: str) -> tuple[Document, Pairing]:
        there = is_text(channel) and is_text(sender_id)
        document = await self._room.document(PAIRING, _key(channel, sender_id)) if there else None
        known = _pairing(document) if document else None
        if document is None or known is None or known.approved_at is None:
            raise PairingNotFound(channel=channel, sender_id=sender_id)
        return document, known

    async def _stranger(
        self,
        before: Document | None,
        channel: str,
        sender_id: str,
        sender: str,
        now: int,
        tell: Callable[[str], Sequence[c.Command]],
    ) -> Admission:
        waiting, codes, expired = 0, set[str](), list[Document]()
        async for document, pairing in self._documents():
            codes.add(pairing.code)
            if self._expired(pairing, now):
                expired.append(document)
            elif pairing.approved_at is None:
                waiting += 1
        pace = await self._pace(channel, now)
        if waiting >= self._bounds.waiting or pace is None:
            log.warning("a stranger on %s gets no code: too many have asked", channel)
            return Admission(False)
        code = _new_code(codes)
        pairing = Pairing(
            channel=channel, sender_id=sender_id, sender=sender, code=code, created_at=now, seen_at=now
        )
        version = before.version if before else 0
        forgotten = [
            self._drop(document) for document in expired if before is None or document.key != before.key
        ]
        reply = reply_with(code)
        commands = (self._put(pairing, version), pace, *forgotten, *tell(reply))
        await self._room.run(c.Unit(commands=commands, actor=self._room.actor))
        return Admission(False, reply)

    async def _pace(self, channel: str, now: int) -> c.Command | None:
        """What counts another code of this hour; None when the hour has given enough."""
        document = await self._room.document(PACE, channel)
        begun, given = (document.data["begun"], document.data["given"]) if document else (now, 0)
        if not 0 <= now - begun < 3600 * SECOND:
            begun, given = now, 0
        if given >= self._bounds.codes_an_hour:
            return None
        data = {"begun": begun, "given": given + 1}
        version = document.version if document else 0
        return c.PutDocument(
            kind=PACE, key=channel, data=data, expect=version, actor=self._room.actor, history=False
        )

    async def _waiting_with(self, code: str) -> tuple[Document, Pairing]:
        wanted, now = str(code).strip().upper(), self._clock.now()
        async for document, pairing in self._documents():
            open_ = pairing.approved_at is None and not self._expired(pairing, now)
            if open_ and secrets.compare_digest(pairing.code.encode(), wanted.encode("utf-8", "replace")):
                return document, pairing
        raise CodeNotFound(code=wanted[:50])

    async def _all(self) -> list[Pairing]:
        now = self._clock.now()
        found = [pairing async for _, pairing in self._documents() if not self._expired(pairing, now)]
        found.sort(key=lambda pairing: (pairing.approved_at or pairing.created_at, pairing.code))
        return found

    async def _documents(self) -> AsyncIterator[tuple[Document, Pairing]]:
        async for document in everything(self._room, PAIRING):
            yield document, _pairing(document)

    def _expired(self, pairing: Pairing, now: int) -> bool:
        return pairing.approved_at is None and now - pairing.created_at >= self._bounds.lifetime_s * SECOND

    def _put(self, pairing: Pairing, version: int) -> c.Command:
        key, data = _key(pairing.channel, pairing.sender_id), msgspec.to_builtins(pairing)
        return c.PutDocument(kind=PAIRING, key=key, data=data, expect=version, actor=self._room.actor)

    def _drop(self, document: Document) -> c.Command:
        return c.DropDocument(kind=PAIRING, key=document.key, expect=document.version, actor=self._room.actor)


def _pairing(document: Document) -> Pairing:
    return msgspec.convert(document.data, Pairing)


def _key(channel: str, sender_id: str) -> str:
    return f"{channel}/{sender_id}"


def _check(channel: str, sender_id: str) -> None:
    for field, value in (("channel", channel), ("sender_id", sender_id)):
        if not isinstance(value, str) or not is_text(value) or not 0 < len(value.strip()) <= NAME_CHARS:
            raise InvalidField(field, f"must be a text of 1 to {NAME_CHARS} characters")
    if "/" in channel:
        raise InvalidField("channel", "is not the name of a channel")


def _short(sender: object) -> str:
    return str(sender).encode("utf-8", "replace").decode()[:NAME_CHARS]


def _new_code(taken: set[str]) -> str:
    while True:
        code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
        if code not in taken:
            return code
