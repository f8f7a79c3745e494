"""Secrets do not reach the lake; ordinary words do."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from postroom.clock import ManualClock
from postroom.pipeline.bronze.ingest import CLEAN
from postroom.pipeline.bronze.redaction import MARK, redact
from postroom.pipeline.lake.tables import MESSAGES
from postroom.pipeline.sources.sqlite import open_source
from postroom.runtime import open_sync


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


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/xml", "application/x-form"])
@pytest.mark.parametrize("beside", ["ordinary", b"\xff\xfe no text \x00"])
def test_whatever_a_body_says_it_is_its_secrets_are_taken_out(
    tmp_path: Path, kind: str, beside: str | bytes
) -> None:
    secret = "AKIAIOSFODNN7EXAMPLE"
    with open_sync(f"sqlite:///{tmp_path}/room.db", clock=ManualClock(), housekeeping=False) as room:
        room.create_scope("shop")
        room.create_queue("shop/orders")
        room.publish("shop/orders", f"<key>{secret}</key>", content_type=kind)
        room.publish("shop/orders", beside, content_type="application/octet-stream")
        for message in room.claim("shop/orders", limit=2):
            room.complete(message)
    source = open_source(f"{tmp_path}/room.db")
    rows: list[dict[str, Any]] = []
    for batch in source.ended(0, source.snapshot().head):
        rows += CLEAN[MESSAGES.name](batch).to_pylist()
    first, second = sorted(rows, key=lambda row: row["seq"])
    assert secret not in str(first)
    assert MARK in str(first["body"] or first["body_bytes"])
    assert (first["redacted"], second["redacted"]) == (True, False)
    assert second["body_bytes"] == (beside.encode() if isinstance(beside, str) else beside)
