"""Lists reach the server as they are, whatever their strings hold."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

import postroom
from postroom import NewMessage
from postroom.stores.postgres import transaction
from postroom.stores.postgres.arrays import ArrayLiteral, BytesArray, pack_array
from postroom.stores.postgres.connection import set_up
from tests.conftest import postgres_url

STRANGE = [
    "",
    "plain",
    'quotes " and \\ backslashes \\\\"',
    "null",
    "NULL",
    "{a,b}",
    " spaces ",
    "päivää 日本 🙂",
    "\U0010fffe and \U0010fffe0",
    "a\x00b",
    "line\nbreak\ttab\x7f\x01",
    "\\n",
]


def _send(url: str, kind: str, values: list[Any]) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as db:
        set_up(db)
        sql = f"SELECT element FROM unnest($1::{kind}[]) WITH ORDINALITY AS a (element, n) ORDER BY n"
        return [value for (value,) in db.execute(sql.encode(), (pack_array(values),)).fetchall()]


@pytest.mark.parametrize("text", [*STRANGE, None])
def test_a_list_with_any_string_is_the_same_list_on_the_server(tmp_path: Path, text: str | None) -> None:
    values = ["before", text, None, "after"]
    assert _send(postgres_url(tmp_path), "text", values) == values


def test_numbers_truths_and_bytes_are_the_same_on_the_server(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    for kind, values in {
        "bigint": [0, -1, None, 2**62],
        "boolean": [True, None, False],
        "bytea": [b"", bytes(range(256)), None, b"\\x"],
        "double precision": [0.5, None, float("inf")],
        "text": [None, None],
    }.items():
        assert _send(url, kind, values) == values


def test_common_columns_are_not_made_value_by_value() -> None:
    for column in (["a", None, 'a "quoted" \\ word'], [1, 2, None], [None, None]):
        assert isinstance(pack_array(column), ArrayLiteral)
    assert isinstance(pack_array([b"body", None]), BytesArray)


@pytest.mark.parametrize("most_bytes", [10, 8 << 20])
def test_messages_with_any_text_come_back_whether_they_go_together_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    monkeypatch.setattr(transaction, "MOST_BYTES", most_bytes)
    monkeypatch.setattr(transaction, "MOST_ROWS", 5)
    with postroom.open_sync(postgres_url(tmp_path), housekeeping=False) as room:
        room.create_queue("strange")
        room.publish_many("strange", [NewMessage(body=text, labels={"text": text}) for text in STRANGE])
        found = room.claim("strange", limit=len(STRANGE))
        assert [message.body for message in found] == STRANGE
        assert [message.labels for message in found] == [{"text": text} for text in STRANGE]
