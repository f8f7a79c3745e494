"""Which of the waiting messages are answered together, so that every person gets an answer.

Of each person's conversation the first message is the one to answer, and what else came for that person rides
along as context; threads of a person are apart. What failed in company is tried alone.
"""

from collections.abc import Sequence

import msgspec

from postroom.kernel.model import Message

BETWEEN = "\n\n------\n\n"
# Whoever was away or has just joined reads the last posts of a room, not all of them.
POSTS = 20
POST_CHARS = 4_000
COMPANY = 50
COMPANY_CHARS = 200_000


class Batch(msgspec.Struct, frozen=True):
    primary: Message
    company: tuple[Message, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        return (self.primary, *self.company)

    def without(self, message_id: str) -> "Batch | None":
        """The batch without one that rode along; None if it was not one of those."""
        company = tuple(message for message in self.company if message.id != message_id)
        return Batch(self.primary, company) if len(company) < len(self.company) else None

    @property
    def prompt(self) -> str:
        """What else there is comes first, and last what is to be answered."""
        mail = (*self.company, self.primary)
        posts = [message for message in mail if message.subscription is not None]
        left_out = {message.id for message in posts[:-POSTS]}
        texts = [f"[{_some_posts(len(left_out))} left out]"] if left_out else []
        for message in mail:
            if message.id not in left_out:
                text = text_of(message)
                texts.append(text if message.subscription is None else _short(text))
        return BETWEEN.join(texts)


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


def group(messages: Sequence[Message]) -> list[Batch]:
    """In the order in which the first of each came."""
    alone = [message for message in messages if message.attempts > 1]
    posts = [message for message in messages if message.attempts == 1 and message.subscription is not None]
    people: dict[tuple[str | None, str | None, str], list[Message]] = {}
    for message in messages:
        if message.attempts == 1 and message.subscription is None:
            person = (message.channel, message.sender_id or message.sender, thread_of(message))
            people.setdefault(person, []).append(message)
    batches = [Batch(message) for message in alone]
    for mail in people.values():
        for some in _portions(mail):
            # A person's own words are answered before what a teammate says on the person's behalf.
            primary = next((message for message in some if message.from_agent is None), some[0])
            company = [message for message in some if message is not primary]
            batches.append(Batch(primary, (*posts, *company)))
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
