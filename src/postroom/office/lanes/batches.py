"""Which of the waiting messages are answered together, so that every person gets an answer.

Of each person's conversation the first message is the one to answer, and what else came for that person rides
along as context; threads of a person are apart. What failed in company is tried alone.
"""

from collections.abc import Container, Sequence

import msgspec

from postroom.kernel.model import Message
from postroom.office.chat_preferences import BusyMode

BETWEEN = "\n\n------\n\n"
# Whoever was away or has just joined reads the last posts of a room, not all of them.
POSTS = 20
POST_CHARS = 4_000
COMPANY = 50
COMPANY_CHARS = 200_000
# How the reason begins of what was cancelled because another agent has it now.
PASSED_ON = "passed on to "

# Channel, sender and thread.
Person = tuple[str | None, str | None, str]


class Batch(msgspec.Struct, frozen=True):
    """`primary` is what is answered; what rides along stands before or after it in the prompt."""

    primary: Message
    earlier: tuple[Message, ...] = ()
    later: tuple[Message, ...] = ()

    def with_later(self, messages: Sequence[Message]) -> "Batch":
        return Batch(self.primary, self.earlier, (*self.later, *messages))

    @property
    def company(self) -> tuple[Message, ...]:
        return (*self.earlier, *self.later)

    @property
    def messages(self) -> tuple[Message, ...]:
        return (self.primary, *self.company)

    def without(self, message_id: str) -> "Batch | None":
        """The batch without one that rode along; None if it was not one of those."""
        kept = self.only({message.id for message in self.company} - {message_id})
        return kept if len(kept.company) < len(self.company) else None

    def only(self, kept: Container[str]) -> "Batch":
        """With those of its company that are still wanted."""
        earlier, later = (
            tuple(message for message in part if message.id in kept) for part in (self.earlier, self.later)
        )
        return Batch(self.primary, earlier, later)

    @property
    def prompt(self) -> str:
        """Posts of rooms first, then what a person wrote and what was written for them, the oldest first."""
        mail = (*self.earlier, self.primary, *self.later)
        posts = [message for message in mail if message.subscription is not None]
        left_out = {message.id for message in posts[:-POSTS]}
        texts = [f"[{_some_posts(len(left_out))} left out]"] if left_out else []
        for message in mail:
            if message.id not in left_out:
                text = address_text(message)
                texts.append(text if message.subscription is None else _short(text))
        return BETWEEN.join(texts)


def address_text(message: Message) -> str:
    """A leader reads for which team it is asked; what a teammate wrote says so itself."""
    team = team_of(message)
    if message.from_agent is not None or message.subscription is not None or team is None:
        return text_of(message)
    return f"[For team #{team}]:\n{text_of(message)}"


def _some_posts(count: int) -> str:
    return "1 earlier post" if count == 1 else f"{count} earlier posts"


def _short(text: str) -> str:
    return text if len(text) <= POST_CHARS else text[:POST_CHARS] + "…"


def text_of(message: Message) -> str:
    body = message.body
    return str(body.get("text", "")) if isinstance(body, dict) else str(body)


def team_of(message: Message) -> str | None:
    body = message.body
    return body.get("team") if isinstance(body, dict) else None


def thread_of(message: Message) -> str:
    """The thread of its chat, as the channel names it; empty where there is none."""
    return str(message.metadata.get("thread") or "")


def is_combined(message: Message) -> bool:
    """Whether the answer waits for the others of its conversation, to go out as one."""
    return isinstance(message.body, dict) and message.body.get("replies") == "combined"


def is_alone(message: Message) -> bool:
    """Whether its chat wants an answer to each message."""
    return message.from_agent is None and message.metadata.get("busy") == BusyMode.QUEUE


def person_of(message: Message) -> Person:
    """Whom an answer is for, and in which thread of theirs."""
    return (message.channel, message.sender_id or message.sender, thread_of(message))


def join(first: Message, waiting: Sequence[Message]) -> list[Message]:
    """What is answered together with `first`, of what waits behind it: as much as one prompt may hold."""
    if first.attempts > 1 or first.subscription is not None or is_alone(first):
        return []
    mail = [
        each
        for each in waiting
        if each.id != first.id and person_of(each) == person_of(first) and not is_alone(each)
    ]
    return _portions([first, *(each for each in mail if not each.attempts)])[0][1:]


def group(messages: Sequence[Message]) -> list[Batch]:
    """In the order in which the first of each came."""
    alone = [message for message in messages if message.attempts > 1]
    posts = [message for message in messages if message.attempts == 1 and message.subscription is not None]
    people: dict[Person, list[Message]] = {}
    for message in messages:
        if message.attempts == 1 and message.subscription is None:
            people.setdefault(person_of(message), []).append(message)
    batches = [Batch(message) for message in alone]
    for mail in people.values():
        for some in _portions(mail):
            # A person's own words are answered before what a teammate says on the person's behalf.
            own = (place for place, message in enumerate(some) if message.from_agent is None)
            place = next(own, 0)
            batches.append(Batch(some[place], (*posts, *some[:place]), tuple(some[place + 1 :])))
            posts = []
    if posts:
        batches.append(Batch(posts[-1], tuple(posts[:-1])))
    return batches


def _portions(mail: list[Message]) -> list[list[Message]]:
    """As many together as one prompt may hold."""
    portions: list[list[Message]] = []
    chars = 0
    for message in mail:
        length = len(text_of(message))
        if not portions or len(portions[-1]) > COMPANY or chars + length > COMPANY_CHARS:
            portions.append([])
            chars = 0
        portions[-1].append(message)
        chars += length
    return portions
