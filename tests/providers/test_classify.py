"""Each recorded failure is of the kind that tells what to do about it."""

import pytest

from postroom.providers import Cause, ErrorKind
from postroom.providers.classify import classify

K, C = ErrorKind, Cause


@pytest.mark.parametrize(
    ("text", "status", "code", "kind", "cause"),
    [
        ("Invalid API key · Fix external API key", 401, "", K.AUTH, C.UNKNOWN),
        ("whatever", 403, "", K.AUTH, C.UNKNOWN),
        ("Not logged in · Please run /login", None, "", K.AUTH, C.UNKNOWN),
        ("Missing environment variable: `LOC_KEY`.", None, "", K.AUTH, C.UNKNOWN),
        ("API key not valid. Please pass a valid API key.", 400, "", K.AUTH, C.UNKNOWN),
        ("Credit balance is too low", 400, "", K.AUTH, C.QUOTA),
        ("You exceeded your current quota", 429, "insufficient_quota", K.AUTH, C.QUOTA),
        ("slow down", 429, "", K.RATE_LIMIT, C.UNKNOWN),
        ("exceeded retry limit, last status: 429 Too Many Requests", None, "", K.RATE_LIMIT, C.UNKNOWN),
        ("said", 200, "rate_limit_error", K.RATE_LIMIT, C.UNKNOWN),
        ("Overloaded", 529, "", K.OVERLOADED, C.UNKNOWN),
        ("said", 200, "overloaded_error", K.OVERLOADED, C.UNKNOWN),
        ("unexpected status 503 Service Unavailable: x", None, "", K.OVERLOADED, C.UNKNOWN),
        ("Selected model is at capacity.", None, "", K.OVERLOADED, C.UNKNOWN),
        ("Internal error", 500, "", K.OVERLOADED, C.SERVER),
        ("unexpected status 502 Bad Gateway: x", None, "", K.OVERLOADED, C.SERVER),
        ("said", 200, "api_error", K.OVERLOADED, C.SERVER),
        ("stream disconnected before completion: x", None, "", K.OVERLOADED, C.STREAM_CUT),
        ("Incomplete response returned, reason: max_output_tokens", None, "", K.INVALID, C.TOKEN_LIMIT),
        (
            "API Error: Claude's response exceeded the 64000 output token maximum.",
            None,
            "",
            K.INVALID,
            C.TOKEN_LIMIT,
        ),
        ("Connection error.", None, "", K.OVERLOADED, C.NETWORK),
        ("Prompt is too long · 1", 400, "", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("too many tokens", 400, "context_length_exceeded", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("request exceeds the maximum size", 413, "", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("No conversation found with session ID: 9", None, "", K.INVALID, C.SESSION_LOST),
        ("no rollout found for thread id 9", None, "", K.INVALID, C.SESSION_LOST),
        ("The model `x` does not exist", 400, "", K.INVALID, C.MODEL),
        ("nope", 404, "", K.INVALID, C.MODEL),
        ("API Error: 400 messages: 500 is not allowed", None, "", K.INVALID, C.UNKNOWN),
        ("Incomplete response returned, reason: content_filter", None, "", K.REFUSED, C.UNKNOWN),
    ],
)
def test_a_recorded_failure_is_recognised(
    text: str, status: int | None, code: str, kind: ErrorKind, cause: Cause
) -> None:
    assert classify(text, status, code) == (kind, cause)


def test_what_is_not_recognised_is_not_guessed() -> None:
    assert classify("it did not work") is None
    assert classify("it did not work", 200) is None
