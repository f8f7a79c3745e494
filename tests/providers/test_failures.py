"""Failures read like sentences, and carry no secret."""

import itertools

import pytest

from postroom.providers import Cause, ErrorKind
from postroom.providers.failures import DETAIL_CHARS, Hints, Product, failure, redact, tidy

PRODUCT = Product(label="Thing", install="pip install thing", login="run `thing login`")


@pytest.mark.parametrize(("kind", "cause"), list(itertools.product(ErrorKind, Cause)))
def test_every_kind_and_cause_has_a_sentence_for_the_person(kind: ErrorKind, cause: Cause) -> None:
    failed = failure(PRODUCT, kind, cause=cause, detail="{braces} % $x")
    assert (failed.kind, failed.cause) == (kind, cause)
    assert failed.message[0].isupper()
    assert failed.message.endswith((".", "thing", "{braces} % $x"))


def test_the_person_is_told_what_to_do() -> None:
    assert "run `thing login`" in failure(PRODUCT, ErrorKind.AUTH).message
    assert "pip install thing" in failure(PRODUCT, ErrorKind.NOT_INSTALLED).message
    assert (
        "until 2027-01-15T08:00:00"
        in failure(PRODUCT, ErrorKind.RATE_LIMIT, retry_at=1_800_000_000_000_000).message
    )
    assert (
        "90 s"
        in failure(PRODUCT, ErrorKind.TIMED_OUT, cause=Cause.WALL_CLOCK, hints=Hints(seconds=90.0)).message
    )


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefghijkl.",
        "key sk-ant-api03-AbCdEf_0123456789 refused",
        "Authorization: Bearer abcdefgh.ijklmnop",
        "token my-own-password in use",
    ],
)
def test_keys_are_taken_out(text: str) -> None:
    shown = redact(text, ["my-own-password"])
    assert "[secret]" in shown
    for part in ("abcdefghijkl", "0123456789", "ijklmnop", "my-own-password"):
        assert part not in shown


def test_control_characters_cannot_reach_a_terminal() -> None:
    assert tidy("\x1b[91m\x1b[1mError: \x1b[0mSession not found\x07\r") == "Error: Session not found"


def test_a_long_detail_keeps_its_end() -> None:
    text = tidy("x" * DETAIL_CHARS + "the reason")
    assert text.endswith("the reason")
    assert len(text) == DETAIL_CHARS + 1


def test_only_kinds_that_pass_by_themselves_say_so() -> None:
    assert {kind for kind in ErrorKind if kind.may_pass} == {
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.CRASHED,
        ErrorKind.TIMED_OUT,
    }


def test_a_failure_is_not_called_what_it_is_not() -> None:
    def said(cause: Cause) -> str:
        return failure(PRODUCT, ErrorKind.OVERLOADED, cause=cause).message

    assert "overloaded" in said(Cause.UNKNOWN)
    for cause in (Cause.SERVER, Cause.STREAM_CUT):
        assert "overloaded" not in said(cause)
        assert "network" not in said(cause)
    assert "model may write" in failure(PRODUCT, ErrorKind.INVALID, cause=Cause.TOKEN_LIMIT).message
