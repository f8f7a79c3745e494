"""Errors: each reads like a sentence, carries its data, and survives a trip to another process."""

import copy
import pickle
import string
from typing import Any

import pytest

from postroom import errors
from postroom.errors import InvalidField, PostroomError


def _all(kind: type[PostroomError] = PostroomError) -> list[type[PostroomError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _all(child))]


KINDS = [kind for kind in _all() if kind.__module__ == errors.__name__]


def _made(kind: type[PostroomError], value: str = "xyz") -> PostroomError:
    fields = [name for _, name, _, _ in string.Formatter().parse(kind.__doc__ or "") if name]
    data: dict[str, Any] = dict.fromkeys(fields, value)
    return kind(**data)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_reads_like_a_sentence_with_its_data(kind: type[PostroomError]) -> None:
    error = _made(kind)
    sentence = str(error)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "  " not in sentence
    assert "{" not in sentence
    assert ("xyz" in sentence) is bool(error.data)
    assert error.data == dict.fromkeys(error.data, "xyz")


def test_an_error_survives_pickling_and_copying() -> None:
    for kind in KINDS:
        error = _made(kind)
        for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(twin) is kind
            assert (str(twin), twin.data, twin.args) == (str(error), error.data, error.args)


def test_data_with_braces_is_shown_as_it_is() -> None:
    for kind in KINDS:
        error = _made(kind, "{0} {name} {{}}")
        assert not error.data or "{0} {name} {{}}" in str(error)


def test_an_error_has_a_code_a_status_and_an_exit_code() -> None:
    for kind in KINDS:
        assert kind.code == kind.code.upper()
        assert kind.code.replace("_", "").isalnum()
        assert 400 <= kind.http_status <= 599
        assert 0 < kind.exit_code < 126


def test_the_codes_of_the_reference_are_there() -> None:
    codes = {kind.code: kind.http_status for kind in KINDS}
    assert codes["SCOPE_PAUSED"] == codes["QUEUE_PAUSED"] == codes["IDEMPOTENCY_CONFLICT"] == 409
    assert codes["QUEUE_FULL"] == 429
    assert codes["CLAIM_LOST"] == codes["SLUG_CONFLICT"] == codes["SYSTEM_QUEUE"] == 409
    assert codes["SCHEMA_VIOLATION"] == codes["VALIDATION_ERROR"] == 422


def test_one_base_catches_them_all_and_invalid_fields_name_their_field() -> None:
    error = InvalidField("score", "is 5000")
    assert isinstance(error, PostroomError)
    assert str(error) == "score: is 5000."
    assert error.data == {"field": "score", "problem": "is 5000"}
