"""IMAP as mail clients speak it: one folder, searched and fetched by uid, watched by IDLE."""

import asyncio
import re
import shlex
from collections.abc import Callable

from postroom.testing.platforms.email.mailbox import Mailbox, StoredMail
from postroom.testing.platforms.faults import (
    CallHeld,
    ConnectionDropped,
    FaultPlan,
    RateLimited,
    ServerFailed,
)
from postroom.testing.platforms.http import NotImplementedByFake
from postroom.testing.platforms.line_server import LineServer

CAPABILITIES = "IMAP4rev1 IDLE UIDPLUS"
FETCHABLE = {"UID", "FLAGS", "RFC822.SIZE", "BODY.PEEK[]", "BODY[]", "RFC822", "BODY.PEEK[HEADER]"}


class ImapServer:
    """Calls are named `IMAP LOGIN`, `IMAP UID FETCH` and so on."""

    def __init__(
        self,
        mailbox: Mailbox,
        faults: FaultPlan,
        user: str,
        password: str,
        record_failure: Callable[[str], None],
    ) -> None:
        self._mailbox = mailbox
        self._faults = faults
        self._user = user
        self._password = password
        self._record_failure = record_failure
        self.server = LineServer(self._serve, lambda error: record_failure(f"failed in IMAP: {error!r}"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _ImapConversation(self, reader, writer).run()

    async def answer(self, conversation: "_ImapConversation", tag: str, command: str, rest: str) -> bool:
        """Answers one command; false when the conversation is over."""
        call = f"IMAP {command}"
        fault = self._faults.take(call, RateLimited, ServerFailed, ConnectionDropped, CallHeld)
        match fault:
            case RateLimited():
                await conversation.write(f"{tag} NO [LIMIT] Too many requests, try again later")
                return True
            case ServerFailed():
                await conversation.write(f"{tag} NO [UNAVAILABLE] Server error, please try again later")
                return True
            case ConnectionDropped(when="before"):
                conversation.abort()
                return False
            case CallHeld(when="before"):
                await fault.stop_here()
        try:
            final = await conversation.execute(command, rest)
        except NotImplementedByFake as missing:
            self._record_failure(f"does not implement {missing}")
            final = f"BAD the fake does not implement {missing}"
        if isinstance(fault, ConnectionDropped):
            conversation.abort()
            return False
        if isinstance(fault, CallHeld) and fault.when == "after":
            await fault.stop_here()
        await conversation.write(f"{tag} {final}")
        return command != "LOGOUT"

    def check_login(self, user: str, password: str) -> bool:
        return (user, password) == (self._user, self._password)

    @property
    def mailbox(self) -> Mailbox:
        return self._mailbox


class _ImapConversation:
    def __init__(self, imap: ImapServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._imap = imap
        self._box = imap.mailbox
        self._reader = reader
        self._writer = writer
        self._signed_in = False
        self._selected = False
        self._told = 0

    async def run(self) -> None:
        await self.write(f"* OK [CAPABILITY {CAPABILITIES}] ready")
        while line := await self._reader.readline():
            tag, _, rest = line.decode().strip().partition(" ")
            command, _, rest = rest.partition(" ")
            command = command.upper()
            if command == "UID":
                verb, _, rest = rest.partition(" ")
                command = f"UID {verb.upper()}"
            if command == "IDLE":
                await self._idle(tag)
            elif not await self._imap.answer(self, tag, command, rest):
                return

    def abort(self) -> None:
        self._writer.transport.abort()

    async def write(self, line: str | bytes) -> None:
        self._writer.write((line.encode() if isinstance(line, str) else line) + b"\r\n")
        await self._writer.drain()

    async def execute(self, command: str, rest: str) -> str:
        match command:
            case "CAPABILITY":
                await self.write(f"* CAPABILITY {CAPABILITIES}")
                return "OK done"
            case "NOOP" | "CHECK":
                await self._tell_news()
                return "OK done"
            case "LOGIN":
                user, password = shlex.split(rest)
                if not self._imap.check_login(user, password):
                    return "NO [AUTHENTICATIONFAILED] Invalid credentials"
                self._signed_in = True
                return "OK signed in"
            case "LOGOUT":
                await self.write("* BYE")
                return "OK bye"
        if not self._signed_in:
            return "BAD sign in first"
        if command in ("SELECT", "EXAMINE"):
            return await self._select(rest)
        if command in ("CLOSE", "UNSELECT"):
            self._selected = False
            return "OK closed"
        if not self._selected:
            return "BAD select a folder first"
        match command:
            case "UID SEARCH" | "SEARCH":
                return await self._search(rest, by_uid=command.startswith("UID"))
            case "UID FETCH" | "FETCH":
                return await self._fetch(rest, by_uid=command.startswith("UID"))
            case "UID STORE":
                return await self._store(rest)
            case "EXPUNGE":
                return await self._expunge()
        raise NotImplementedByFake(f"IMAP {command}")

    async def _select(self, rest: str) -> str:
        if shlex.split(rest)[0].upper() != "INBOX":
            return "NO [NONEXISTENT] there is no such folder"
        self._selected = True
        self._told = len(self._box.mails)
        await self.write(f"* {self._told} EXISTS")
        await self.write("* 0 RECENT")
        await self.write(r"* FLAGS (\Seen \Answered \Flagged \Deleted)")
        await self.write(f"* OK [UIDVALIDITY {self._box.validity}] valid")
        await self.write(f"* OK [UIDNEXT {self._box.next_uid}] next")
        return "OK [READ-WRITE] selected"

    async def _search(self, rest: str, *, by_uid: bool) -> str:
        criteria = re.sub(r"^CHARSET\s+\S+\s*", "", rest, flags=re.IGNORECASE).strip().strip("()").upper()
        if criteria == "ALL":
            found = self._box.mails
        elif criteria in ("UNSEEN", "SEEN"):
            found = [mail for mail in self._box.mails if (r"\Seen" in mail.flags) == (criteria == "SEEN")]
        elif match := re.fullmatch(r"UID ([\d:*,]+)", criteria):
            found = self._box.select(match[1], by_uid=True)
        else:
            raise NotImplementedByFake(f"IMAP SEARCH {criteria}")
        places = {id(mail): place for place, mail in enumerate(self._box.mails, 1)}
        numbers = [mail.uid if by_uid else places[id(mail)] for mail in found]
        await self.write("* SEARCH" + "".join(f" {number}" for number in numbers))
        return "OK done"

    async def _fetch(self, rest: str, *, by_uid: bool) -> str:
        numbers, _, parts = rest.partition(" ")
        items = parts.strip().strip("()").upper().split()
        if unknown := sorted(set(items) - FETCHABLE):
            raise NotImplementedByFake(f"IMAP FETCH {' '.join(unknown)}")
        for mail in self._box.select(numbers, by_uid=by_uid):
            place = self._box.mails.index(mail) + 1
            if {"BODY[]", "RFC822"} & set(items):
                mail.flags.add(r"\Seen")
            await self.write(b"* %d FETCH (" % place + _describe(mail, items, by_uid) + b")")
        return "OK done"

    async def _store(self, rest: str) -> str:
        match = re.fullmatch(r"([\d:*,]+) ([+-])FLAGS(\.SILENT)? \(([^)]*)\)", rest, re.IGNORECASE)
        if match is None:
            raise NotImplementedByFake(f"IMAP UID STORE {rest}")
        flags = set(match[4].split())
        for mail in self._box.select(match[1], by_uid=True):
            mail.flags = mail.flags | flags if match[2] == "+" else mail.flags - flags
            place = self._box.mails.index(mail) + 1
            if not match[3]:
                await self.write(f"* {place} FETCH (UID {mail.uid} FLAGS ({' '.join(sorted(mail.flags))}))")
        return "OK done"

    async def _expunge(self) -> str:
        for place, mail in reversed(list(enumerate(self._box.mails, 1))):
            if r"\Deleted" in mail.flags:
                self._box.mails.remove(mail)
                await self.write(f"* {place} EXPUNGE")
        self._told = len(self._box.mails)
        return "OK done"

    async def _tell_news(self) -> None:
        if self._selected and len(self._box.mails) != self._told:
            self._told = len(self._box.mails)
            await self.write(f"* {self._told} EXISTS")

    async def _idle(self, tag: str) -> None:
        await self.write("+ idling")
        done = asyncio.create_task(self._reader.readline())
        try:
            while not done.done():
                await self._tell_news()
                changed = asyncio.create_task(self._box.wait_for_change())
                await asyncio.wait({done, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            if done.result().strip().upper() == b"DONE":
                await self.write(f"{tag} OK idle ended")
        finally:
            done.cancel()


def _describe(mail: StoredMail, items: list[str], by_uid: bool) -> bytes:
    parts: list[bytes] = []
    if by_uid or "UID" in items:
        parts.append(b"UID %d" % mail.uid)
    if "FLAGS" in items:
        parts.append(b"FLAGS (" + " ".join(sorted(mail.flags)).encode() + b")")
    if "RFC822.SIZE" in items:
        parts.append(b"RFC822.SIZE %d" % len(mail.raw))
    for name, content in (
        (b"BODY[]", mail.raw),
        (b"RFC822", mail.raw),
        (b"BODY[HEADER]", mail.raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"),
    ):
        if {name.decode(), name.decode().replace("BODY[", "BODY.PEEK[")} & set(items):
            parts.append(b"%s {%d}\r\n" % (name, len(content)) + content)
    return b" ".join(parts)
