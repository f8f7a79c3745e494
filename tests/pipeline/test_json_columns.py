"""Texts of JSON are opened all at once, and one that does not fit never changes what others say."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.pipeline.silver import json_columns
from postroom.pipeline.silver.json_columns import open_json

FIELDS = pa.schema(
    [
        ("state", pa.string()),
        ("attempts", pa.int32()),
        ("usage", pa.list_(pa.struct([("model", pa.string()), ("tokens", pa.int64())]))),
    ]
)
NOTHING = {"state": None, "attempts": None, "usage": None}
PLAIN = '{"state": "pending", "attempts": 2, "more": {"deep": [1]}}'


def opened(*texts: str | None) -> list[dict[str, Any]]:
    return open_json(pa.array(texts, pa.string()), FIELDS).to_pylist()


def test_fields_are_found_and_everything_else_is_passed_over() -> None:
    usage = '{"usage": [{"model": "m", "tokens": 7, "x": 1}, {}], "state": "a \\"quoted\\" word\\n"}'
    assert opened(PLAIN, usage, "{}") == [
        {"state": "pending", "attempts": 2, "usage": None},
        {
            "state": 'a "quoted" word\n',
            "attempts": None,
            "usage": [{"model": "m", "tokens": 7}, {"model": None, "tokens": None}],
        },
        NOTHING,
    ]


@pytest.mark.parametrize(
    "odd",
    ["{broken", "", "[]", "7", "null", None, '{"a":1}{"b":2}', '{"state":"x"} {"state":"y"}', "{\n}\n{\n}"],
)
def test_what_is_no_object_has_no_fields_and_its_neighbours_have_their_own(odd: str | None) -> None:
    assert opened(PLAIN, odd, PLAIN) == [opened(PLAIN)[0], NOTHING, opened(PLAIN)[0]]


def test_a_field_of_another_kind_is_nothing_and_a_text_takes_what_is_written() -> None:
    odd = '{"state": 7, "attempts": "many", "usage": {"model": "m"}}'
    assert opened(PLAIN, odd)[1] == {"state": "7", "attempts": None, "usage": None}
    assert opened('{"attempts": 99999999999}', '{"attempts": true}', '{"attempts": 1.5}') == [NOTHING] * 3
    assert opened('{"state": {"a": 1}}')[0]["state"] == '{"a":1}'
    assert opened('{"usage": [7, {"tokens": "x"}]}')[0]["usage"] == [None, {"model": None, "tokens": None}]


def test_no_texts_are_no_rows() -> None:
    assert opened() == []


_VALUES = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
)


@given(st.lists(st.fixed_dictionaries({}, optional={"state": _VALUES, "attempts": _VALUES, "x": _VALUES})))
def test_all_at_once_says_what_one_by_one_says(documents: list[dict[str, Any]]) -> None:
    texts = [json.dumps(each) for each in documents]
    one_by_one = [{**NOTHING, **json_columns._open_one(text, FIELDS)} for text in texts]
    assert opened(*texts) == one_by_one
