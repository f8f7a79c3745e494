"""Damaged JSON is repaired where it is clear what was meant; half a value is left out, else it is refused."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.settings.repair import BeyondRepair, read, repair

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
documents = st.dictionaries(st.text(max_size=5), values, max_size=4)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{,"a": 1,,"b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1\n "b": [1 2]}', {"a": 1, "b": [1, 2]}),
        (
            '// top\n{"a": 1, # one\n/* two\n lines */ "b": "//no /* comment"}',
            {"a": 1, "b": "//no /* comment"},
        ),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": 1}}', {"a": 1}),
        ('{"a": 1}\n 3600\n }\n}', {"a": 1}),
        ('{"a": {"b": 1}', {"a": {"b": 1}}),
        ('{"a": {"b": "x", "c": "half a val', {"a": {"b": "x"}}),
        ('{"a": {"b": "x", "c"', {"a": {"b": "x"}}),
        ('{"a": {"b": "x", "c":', {"a": {"b": "x"}}),
        ('{"a": {"b": "x", "po', {"a": {"b": "x"}}),
        ('{"a": {"b": "x",', {"a": {"b": "x"}}),
        ('{"port": 37', {}),
        ('{"on": true', {"on": True}),
        ('{"a": [1, 2, {"b": "x"}, "hal', {"a": [1, 2, {"b": "x"}]}),
        ('{"a": 1, /* open', {"a": 1}),
        ('{"a": "x\\', {}),
        ("{", {}),
    ],
)
def test_what_was_meant_is_restored(text: str, document: dict[str, Any]) -> None:
    repaired = repair(text)
    assert repaired.document == document
    assert repaired.notes


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "5",
            "null",
            "settings",
            "{} {}",
            "{a: 1}",
            "{'a': 1}",
            '{"a": x}',
            '{"a" 1}',
            '{"a": 1]',
        ),
        *(
            '{"a": [1}',
            '{"a": NaN}',
            '{"a": 1e999}',
            '{"a": "C:\\Users\\x"}',
            '{"a": 01, "b": 2}',
            '{"a": -, "b": 1}',
        ),
        *("\0\0\0", '{"a": ' * 200, '{"a": : 1}', '{"a"; 1}'),
    ],
)
def test_what_could_mean_anything_is_refused(text: str) -> None:
    with pytest.raises(BeyondRepair):
        repair(text)


def test_each_repair_is_told_by_its_line_and_without_values() -> None:
    repaired = repair('{\n  "a": "sk-secret", // why\n  "b": [1,],\n  "c": {"d": "sk-sec')
    assert repaired.notes == (
        "line 2: a comment was left out",
        "line 3: a comma too many was left out",
        "line 4: the file ends early; the last entry of c was incomplete and left out",
    )


@settings(deadline=None, max_examples=200)
@given(documents)
def test_sound_json_needs_no_repair(document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=1)
    repaired = repair(text)
    assert repaired.document == read(text) == document
    assert repaired.notes == ()


def contains(whole: Any, part: Any) -> bool:
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(part) <= len(whole) and all(contains(w, p) for w, p in zip(whole, part, strict=False))
    return type(whole) is type(part) and whole == part


@settings(deadline=None, max_examples=300)
@given(documents, st.floats(0, 1))
def test_a_file_cut_anywhere_gives_only_what_was_whole(document: dict[str, Any], where: float) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False)
    cut = text[: max(1, round(len(text) * where))]
    assert contains(document, repair(cut).document)


@settings(deadline=None, max_examples=500)
@given(
    st.lists(
        st.sampled_from(
            ['{"a":', "{", "}", "[", "]", ",", ":", '"b"', '"', "1", "true", "//", "/*", "*/", "\n", "#"]
        )
    )
)
def test_nothing_crashes_it(pieces: list[str]) -> None:
    try:
        document = repair("".join(["{", *pieces])).document
    except BeyondRepair:
        return
    assert isinstance(document, dict)


@pytest.mark.parametrize("pattern", ["//\n", ",", "/**/", '"a":1 ', "[", " "])
def test_it_takes_linear_time(pattern: str) -> None:
    began = time.process_time()
    with contextlib.suppress(BeyondRepair):
        repair("{" + pattern * (500_000 // len(pattern)))
    assert time.process_time() - began < 20
