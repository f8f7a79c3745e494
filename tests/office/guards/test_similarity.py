"""Texts that say nearly the same are found, and what people say often is not taken for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.office import tags
from postroom.office.guards.similarity import TextFingerprint

ASKED = "Please look at the failing login test and tell me what you find in the log of the server."


def alike(one: str, other: str) -> bool:
    forward, back = (
        TextFingerprint(one).like(TextFingerprint(other)),
        TextFingerprint(other).like(TextFingerprint(one)),
    )
    assert forward == back
    return forward


@pytest.mark.parametrize(
    "other",
    [
        ASKED,
        ASKED.upper(),
        ASKED.replace(" ", "\n  "),
        ASKED + " Thanks!",
        ASKED.replace("Please look", "please, look"),
        tags.from_teammate("lead", ASKED),
        tags.from_room("dev", "lead", ASKED),
    ],
)
def test_the_same_in_other_clothes_is_alike(other: str) -> None:
    assert alike(ASKED, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("yes", "yes"),
        ("ok, done", "ok, done"),
        ("Sounds good to me!", "Sounds good to me!"),
        ("", ""),
        ("👍👍👍👍👍👍👍👍👍👍", "👍👍👍👍👍👍👍👍👍👍"),
        (
            "Please review pull request #12 of the shop and report what you find there.",
            "Please review pull request #13 of the shop and report what you find there.",
        ),
        (ASKED, "Now that the login works, write the release notes and send them to everybody in the team."),
        (
            ASKED,
            ASKED.replace("failing login test", "slow search page").replace("log of the server", "profile"),
        ),
    ],
)
def test_short_words_other_numbers_and_other_tasks_are_not(one: str, other: str) -> None:
    assert not alike(one, other)


def test_the_same_background_may_go_with_many_questions() -> None:
    background = "We are moving the shop to the new server this week. " * 20
    one = tags.compose(background, "Copy the pictures.")
    other = tags.compose(background, "Copy the orders.")
    assert not alike(one, other)
    assert alike(one, tags.compose(background, "copy the pictures!"))


def test_scripts_without_spaces_are_compared_by_what_they_have() -> None:
    text = "ログイン 試験 が 失敗 した ので サーバー の ログ を 見て ください"
    assert alike(text, text)
    assert not alike(text, "新しい 版 の 説明 を 書いて 皆 に 送って ください お願い します")


def test_long_texts_are_compared_in_bounded_time() -> None:
    long = "word " * 2_000_000
    assert len(TextFingerprint(long).shingles) < 5_000
    different = " ".join(f"w{n}x" for n in range(300_000))
    assert len(TextFingerprint(different).shingles) < 5_000


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_compared(one: str, other: str) -> None:
    assert isinstance(alike(one, other), bool)
    assert alike(one, one) == TextFingerprint(one).long_enough
