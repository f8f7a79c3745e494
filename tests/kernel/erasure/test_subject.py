"""Whom an erasure is about is found wherever it stands, and taken out without anything else."""

from typing import Any

import pytest

from postroom.errors import InvalidField
from postroom.kernel import jsontext
from postroom.kernel.erasure import subject as erasure
from postroom.kernel.erasure.subject import ERASED, Subject
from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS, Content, Row, Stored


def stored(document: Any = None, *, correlation_id: str = "talk", **content: Any) -> Stored:
    row: Any = dict.fromkeys(ROW_FIELDS)
    fields: Any = dict.fromkeys(CONTENT_FIELDS)
    fields |= {
        "content_type": "application/json",
        "body": None if document is None else jsontext.encode(document),
    }
    return Stored(Row(**{**row, "correlation_id": correlation_id}), Content(**{**fields, **content}))


@pytest.mark.parametrize(
    ("field", "value"),
    [("colour", "x"), ("body", "x"), ("body." + ".".join("a" * 20), "x"), ("sender", "")],
)
def test_a_subject_that_cannot_be_looked_for_is_refused(field: str, value: str) -> None:
    with pytest.raises(InvalidField):
        erasure.check_subject(Subject(field=field, value=value))


@pytest.mark.parametrize("field", ["sender", "labels.customer", "body.person.id"])
def test_a_subject_that_can_be_is_not(field: str) -> None:
    erasure.check_subject(Subject(field=field, value=5))


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("correlation_id", "talk", True),
        ("sender", "ann", True),
        ("sender", "bob", False),
        ("labels.customer", 5, True),
        ("labels.flag", 1, False),
        ("labels.gone", 5, False),
        ("body.people.name", "ann", True),
        ("body.people.age", 5, False),
        ("body.people", "ann", False),
    ],
)
def test_a_message_is_about_a_subject_or_not(field: str, value: Any, found: bool) -> None:
    message = stored(
        {"people": [{"name": "bob"}, {"name": "ann"}]}, sender="ann", labels='{"customer": 5, "flag": true}'
    )
    assert erasure.concerns(message, Subject(field=field, value=value)) is found


def test_a_body_that_is_no_json_or_is_not_there_has_no_paths() -> None:
    about = Subject(field="body.name", value="ann")
    assert not erasure.concerns(stored(content_type="text/plain", body=b"ann"), about)
    assert not erasure.concerns(stored(), about)


def test_only_the_value_goes_and_everything_else_stays() -> None:
    message = stored(
        {"to": "ann", "said": ["hello ann", 5]},
        sender="ann",
        sender_id="1",
        labels='{"who": "ann", "n": 1}',
        metadata='{"by": "bob"}',
    )
    left = erasure.redacted(message.content, Subject(field="sender", value="ann"))
    gone = f"[{ERASED}]"
    assert jsontext.decode(left.body or b"") == {"to": gone, "said": [f"hello {gone}", 5]}
    assert jsontext.decode(left.labels or "") == {"who": gone, "n": 1}
    assert (left.sender, left.sender_id, left.metadata) == (None, "1", '{"by":"bob"}')


def test_a_plain_text_loses_the_words_and_a_number_cannot_be_in_it() -> None:
    content = stored(content_type="text/plain", body=b"dear ann, 5").content
    assert erasure.redacted(content, Subject(field="sender", value="ann")).body == (
        f"dear {ERASED}, 5".encode()
    )
    assert erasure.redacted(content, Subject(field="labels.n", value=5)).body == b"dear ann, 5"


def test_a_review_of_which_more_than_words_is_gone_asks_nobody() -> None:
    spec = {"sections": [{"type": "decision", "options": ["ann", "bob"]}]}
    content = stored(hitl_spec=jsontext.text(spec)).content
    about = Subject(field="labels.x", value="ann")
    kept = erasure.redacted(content, about).hitl_spec
    assert kept is not None
    assert "ann" not in kept
    broken = {"sections": [{"type": "decision", "options": ["ann", f"[{ERASED}]"]}]}
    content = stored(hitl_spec=jsontext.text(broken)).content
    assert erasure.redacted(content, about).hitl_spec is None


def test_an_emptied_content_says_only_that_it_was_emptied() -> None:
    content = stored({"a": 1}, sender="ann", labels='{"a": 1}', files='["f"]').content
    empty = erasure.emptied(content)
    assert jsontext.decode(empty.body or b"") == {ERASED: True}
    assert (empty.sender, empty.labels, empty.files) == (None, None, None)
    assert erasure.emptied(stored(content_type="text/plain", body=b"x").content).body is None


def test_results_and_reasons_are_redacted_too() -> None:
    about = Subject(field="sender", value="ann")
    assert erasure.redacted_bytes(None, about) is None
    assert erasure.redacted_bytes(b'{"a":"ann"}', about) == jsontext.encode({"a": f"[{ERASED}]"})
    assert erasure.redacted_text(None, about) is None
    assert erasure.redacted_text("ask ann", about) == f"ask [{ERASED}]"


def test_a_proof_is_recognised_by_who_knows_the_subject() -> None:
    about = Subject(field="sender", value="ann")
    assert erasure.proof_of(about, "salt") == erasure.proof_of(about, "salt")
    assert erasure.proof_of(about, "salt") != erasure.proof_of(Subject(field="sender", value="bob"), "salt")
