"""JSON, strictly: what is accepted comes back the same; everything else is refused by the field's name."""

import math
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import InvalidField
from postroom.kernel import jsontext

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


def types_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: types_of(item) for name, item in value.items()}
    return [types_of(item) for item in value] if isinstance(value, list) else type(value)


@given(values)
def test_every_json_value_comes_back_the_same(value: Any) -> None:
    back = jsontext.decode(jsontext.encode_strict(value, "body"))
    assert back == value
    assert types_of(back) == types_of(value)


def test_a_tuple_may_become_a_list_and_a_dictionary_of_any_kind_an_object() -> None:
    data = jsontext.encode_strict((1, OrderedDict(a=(2, None))), "body")
    assert jsontext.decode(data) == [1, {"a": [2, None]}]


class Colour(Enum):
    RED = "red"


class Struct(msgspec.Struct):
    x: int = 1


FOREIGN: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    {1: 2},
    {1.5: 2},
    {True: 2},
    {None: 2},
    {b"k": 2},
    {(1,): 2},
    {Colour.RED: 1},
    b"bytes",
    bytearray(b"bytes"),
    {1, 2},
    frozenset(),
    Decimal("1.10"),
    datetime(2026, 1, 1, tzinfo=UTC),
    date(2026, 1, 1),
    timedelta(1),
    UUID(int=1),
    Colour.RED,
    Struct(),
    msgspec.Raw(b"1 2"),
    object(),
    print,
    "\ud800",
    {"\ud800": 1},
]
WRAP: list[Any] = [
    lambda x: x,
    lambda x: [x],
    lambda x: {"a": [None, x]},
    lambda x: (1, (x,)),
    lambda x: [1.0, x],
]


@pytest.mark.parametrize(
    "number", range(len(FOREIGN)), ids=lambda number: repr(FOREIGN[number])[:30].split(" at ")[0]
)
def test_what_json_would_change_or_lose_is_refused_wherever_it_hides(number: int) -> None:
    for wrap in WRAP:
        with pytest.raises(InvalidField, match=r"^result: "):
            jsontext.encode_strict(wrap(FOREIGN[number]), "result")


def nested(depth: int) -> Any:
    value: Any = "[[[{{{" * 100
    for level in range(depth):
        value = [value] if level % 2 else {"[{": value}
    return value


def test_nesting_is_bounded_and_brackets_in_texts_do_not_count() -> None:
    jsontext.encode_strict(nested(jsontext.DEEPEST), "body")
    jsontext.encode_strict(['"\\"[' * 100] * 100, "body")
    jsontext.encode_strict([[]] * 1000, "body")
    for depth in (jsontext.DEEPEST + 1, 900, 100_000):
        with pytest.raises(InvalidField, match="body"):
            jsontext.encode_strict(nested(depth), "body")


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append({"again": endless})
    with pytest.raises(InvalidField, match="body"):
        jsontext.encode_strict(endless, "body")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":[2]}', b'{"b":[2],"a":1}', True),
        (b"1", b"true", False),
        (b'{"paid":0}', b'{"paid":false}', False),
        (b"1", b"1.0", False),
        (b"[1,2]", b"[2,1]", False),
        (b"null", None, False),
        (None, None, True),
        (b'"1"', b"1", False),
    ],
)
def test_two_texts_are_the_same_when_they_say_the_same(
    one: bytes | None, other: bytes | None, same: bool
) -> None:
    assert jsontext.same(one, other) is same
    assert jsontext.same(other, one) is same


def test_nothing_decodes_to_the_default() -> None:
    assert jsontext.decode_any(None) is None
    assert jsontext.decode_any(None, {}) == {}
    assert jsontext.decode_any(b"null", {}) is None
