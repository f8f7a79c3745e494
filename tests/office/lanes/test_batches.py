"""Whatever waits is served once, in an order that is fair, and nobody is forgotten."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from postroom.kernel.model import Message
from postroom.office.lanes.batches import COMPANY, POSTS, Batch, group

PLAIN = dict.fromkeys(Message.__struct_fields__)


def message(number: int, **fields: Any) -> Message:
    given_ = {
        **PLAIN,
        "id": f"m{number}",
        "state": "claimed",
        "priority_tier": "normal",
        "labels": {},
        "files": [],
        "metadata": {},
        "body": {"text": f"text {number}"},
        "attempts": 1,
        "channel": "web",
        "sender": "Ann",
        "sender_id": "ann",
        **fields,
    }
    return Message(**given_)


@st.composite
def mail(draw: st.DrawFn) -> list[Message]:
    found = []
    for number in range(draw(st.integers(0, 120))):
        person = draw(st.sampled_from(["ann", "bob", "cy"]))
        post = draw(st.booleans())
        found.append(
            message(
                number,
                sender_id=person,
                attempts=draw(st.sampled_from([1, 1, 1, 2, 3])),
                subscription="coder" if post else None,
                from_agent="lead" if post else draw(st.sampled_from([None, "lead"])),
            )
        )
    return found


@given(mail())
def test_every_message_is_in_one_batch(waiting: list[Message]) -> None:
    served = [each.id for batch in group(waiting) for each in batch.messages]
    assert sorted(served) == sorted(each.id for each in waiting)


@given(mail())
def test_what_failed_before_is_alone_and_people_are_apart(waiting: list[Message]) -> None:
    for batch in group(waiting):
        if any(each.attempts > 1 for each in batch.messages):
            assert batch.company == ()
        people = {each.sender_id for each in batch.messages if each.subscription is None}
        assert len(people) <= 1
        assert len([each for each in batch.messages if each.subscription is None]) <= COMPANY + 1


@given(mail())
def test_a_persons_own_words_are_answered_before_a_mates(waiting: list[Message]) -> None:
    for batch in group(waiting):
        own = [each for each in batch.messages if each.from_agent is None]
        if own:
            assert batch.primary.id == own[0].id


@given(mail())
def test_all_that_rides_along_is_read_but_for_the_oldest_posts(waiting: list[Message]) -> None:
    for batch in group(waiting):
        posts = [each for each in (*batch.company, batch.primary) if each.subscription is not None]
        unread = {each.id for each in posts[:-POSTS]}
        parts = batch.prompt.split("\n\n------\n\n")
        read = {f"text {each.id[1:]}" for each in batch.messages if each.id not in unread}
        assert read <= set(parts)
        assert len(parts) == len(read) + bool(unread)


def test_threads_of_one_person_are_answered_apart() -> None:
    """What is written in one thread must not be answered in another, nor only there."""
    threads = ("a", "b", "a", None)
    waiting = [
        message(number, metadata={"thread": thread} if thread else {})
        for number, thread in enumerate(threads)
    ]
    served = [[each.id for each in batch.messages] for batch in group(waiting)]
    assert served == [["m0", "m2"], ["m1"], ["m3"]]


def test_long_mail_is_served_in_portions() -> None:
    waiting = [message(number, body={"text": "x" * 90_000}) for number in range(5)]
    assert [len(batch.messages) for batch in group(waiting)] == [2, 2, 1]


def test_a_body_that_is_no_object_is_its_own_text() -> None:
    plain = msgspec.structs.replace(message(1), body="just words")
    assert Batch(plain).prompt == "just words"
