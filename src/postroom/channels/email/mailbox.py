"""The mailbox by IMAP, one connection in one thread. Mails are found by uid, and nothing in it is changed."""

import contextlib
import ssl
from collections.abc import Mapping
from typing import Any

import msgspec
from imap_tools import BaseMailBox, MailBox, MailBoxStartTls, MailBoxUnencrypted

CONNECT_S = 30


class MailboxPlace(msgspec.Struct, frozen=True):
    """Which numbering of the mailbox, and the first uid that nobody has yet."""

    validity: int
    next_uid: int


class ImapMailbox:
    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._box: BaseMailBox | None = None

    def open(self) -> MailboxPlace:
        options = self._options
        host, security = str(options["imap_host"]), options.get("security", "tls")
        port = int(options.get("imap_port") or (993 if security == "tls" else 143))
        if security == "tls":
            box: BaseMailBox = MailBox(host, port, CONNECT_S, ssl_context=ssl.create_default_context())
        elif security == "starttls":
            box = MailBoxStartTls(host, port, CONNECT_S, ssl_context=ssl.create_default_context())
        else:
            box = MailBoxUnencrypted(host, port, CONNECT_S)
        self._box = box
        box.login(str(options["address"]), str(options["password"]), initial_folder=None)
        box.client.select(str(options.get("folder") or "INBOX"), readonly=True)
        return self._read_place(box)

    def find_new(self, since: int) -> list[int]:
        """In the order of their uids."""
        assert self._box is not None
        found = [int(uid) for uid in self._box.uids(f"UID {since}:*")]
        # `*` is the last mail, also when it is older.
        return sorted(uid for uid in found if uid >= since)

    def fetch(self, uid: int) -> bytes | None:
        assert self._box is not None
        _, parts = self._box.client.uid("fetch", str(uid), "(BODY.PEEK[])")
        return next((part[1] for part in parts if isinstance(part, tuple)), None)

    def wait(self, seconds: float) -> None:
        """Until something changes, at most so long."""
        assert self._box is not None
        self._box.idle.wait(timeout=seconds)

    def close(self) -> None:
        """Also while another thread waits: it ends with an error."""
        box, self._box = self._box, None
        if box is not None:
            with contextlib.suppress(Exception):
                box.client.shutdown()

    def _read_place(self, box: BaseMailBox) -> MailboxPlace:
        numbers = {}
        for name in ("UIDVALIDITY", "UIDNEXT"):
            _, [value] = box.client.response(name)
            numbers[name] = int(value) if value else 1
        return MailboxPlace(numbers["UIDVALIDITY"], numbers["UIDNEXT"])
