"""The mailbox of the bot: mails under numbers that only grow, until the provider numbers them anew."""

import asyncio
from dataclasses import dataclass, field


@dataclass
class StoredMail:
    uid: int
    raw: bytes = field(repr=False)
    flags: set[str] = field(default_factory=set)


class Mailbox:
    def __init__(self) -> None:
        self.validity = 1_700_000_001
        self.mails: list[StoredMail] = []
        self._next_uid = 1
        self._changed = asyncio.Event()

    @property
    def next_uid(self) -> int:
        return self._next_uid

    def add(self, raw: bytes) -> StoredMail:
        mail = StoredMail(self._next_uid, raw)
        self._next_uid += 1
        self.mails.append(mail)
        self._changed.set()
        self._changed = asyncio.Event()
        return mail

    def renumber(self) -> None:
        """The provider moved the mailbox: the old numbers mean nothing any more, as the new validity says."""
        self.validity += 1
        for number, mail in enumerate(self.mails, 1):
            mail.uid = number
        self._next_uid = len(self.mails) + 1

    async def wait_for_change(self) -> None:
        await self._changed.wait()

    def select(self, numbers: str, *, by_uid: bool) -> list[StoredMail]:
        """`4`, `2,7`, `3:9`, `5:*`: by uid, or by place counted from one."""
        chosen = []
        for place, mail in enumerate(self.mails, 1):
            number = mail.uid if by_uid else place
            highest = self.mails[-1].uid if by_uid else len(self.mails)
            if any(_contains(part, number, highest) for part in numbers.split(",")):
                chosen.append(mail)
        return chosen


def _contains(part: str, number: int, highest: int) -> bool:
    first, _, last = part.partition(":")
    ends = sorted(highest if end == "*" else int(end) for end in (first, last or first))
    return ends[0] <= number <= ends[1]
