"""Which of the waiting messages are answered together, so that every person gets an answer.

Of each person's conversation the first message is the one to answer, and what else came for that person rides
along as context. What failed in company is tried alone.
"""

from collections.abc import Sequence

import msgspec

from postroom.kernel.model import Message

BETWEEN = "\n\n------\n\n"


class Batch(msgspec.Struct, frozen=True):
    primary: Message
    company: tuple[Message, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        return (self.primary, *self.company)

    @property
    def prompt(self) -> str:
        """What else there is comes first, and last what is to be answered."""
        return BETWEEN.join(text_of(message) for message in (*self.company, self.primary))


def text_of(message: Message) -> str:
    body = message.body
    return str(body.get("text", "")) if isinstance(body, dict) else str(body)


def team_of(message: Message) -> str | None:
    body = message.body
    return body.get("team") if isinstance(body, dict) else None


def group(messages: Sequence[Message]) -> list[Batch]:
    """In the order in which the first of each came."""
    alone = [message for message in messages if message.attempts > 1]
    posts = [message for message in messages if message.attempts == 1 and message.subscription is not None]
    people: dict[tuple[str | None, str | None], list[Message]] = {}
    for message in messages:
        if message.attempts == 1 and message.subscription is None:
            person = (message.channel, message.sender_id or message.sender)
            people.setdefault(person, []).append(message)
    batches = [Batch(message) for message in alone]
    for number, mail in enumerate(people.values()):
        # A person's own words are answered before what a teammate says on the person's behalf.
        primary = next((message for message in mail if message.from_agent is None), mail[0])
        company = [message for message in mail if message is not primary]
        batches.append(Batch(primary, (*(posts if number == 0 else ()), *company)))
    if posts and not people:
        batches.append(Batch(posts[0], tuple(posts[1:])))
    return batches
