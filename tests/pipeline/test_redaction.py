"""Secrets do not reach the lake; ordinary words do."""

import pyarrow as pa
import pytest

from postroom.pipeline.bronze.redaction import MARK, redact


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("my key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnop"),
        ('{"token": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}', "ghp_"),
        ("AWS AKIAIOSFODNN7EXAMPLE here", "AKIAIOSFODNN7EXAMPLE"),
        ("bot 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw9 ok", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw9"),
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789"),
        ("postgres://ann:hunter22@db/x", "hunter22"),
        ('{"text": "password: correct-horse"}', "correct-horse"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----", "MIIabc"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl", "eyJzdWIi"),
    ],
)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    clean, hit = redact(pa.array([text, "before and after", None]))
    assert secret not in clean[0].as_py()
    assert MARK in clean[0].as_py()
    assert clean.to_pylist()[1:] == ["before and after", None]
    assert hit.to_pylist() == [True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "Please reset my password",
        "see https://example.org/a:b@c",
        "sk-1",
        "12345678:90",
        "the key is under the mat",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(pa.array([text]))[0].to_pylist() == [text]
