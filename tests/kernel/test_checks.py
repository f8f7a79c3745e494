"""What is accepted: bounds at their edges, and errors that name the field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import BodyTooLarge, InvalidField
from postroom.kernel import checks
from postroom.kernel.limits import Limits
from postroom.kernel.model import NewMessage, QueueSettings

LIMITS = Limits()


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("jobs", ("default", "jobs")),
        ("office/jobs", ("office", "jobs")),
        ("office/inbox/coder", ("office", "inbox/coder")),
        ("office/", ("office", "")),
        ("/jobs", ("", "jobs")),
    ],
)
def test_a_path_is_a_scope_and_a_queue(path: str, wanted: tuple[str, str]) -> None:
    assert checks.split_path(path) == wanted


@given(st.text())
def test_a_name_that_passes_is_plain(name: str) -> None:
    try:
        checks.check_queue_slug(name)
    except InvalidField:
        return
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_./")
    assert 0 < len(name) <= checks.QUEUE_SLUG_CHARS
    assert not name.startswith(("_", "-", "/", "."))
    assert ".." not in name


@given(st.from_regex(checks.QUEUE_SLUG, fullmatch=True))
def test_every_name_of_the_right_form_passes_up_to_its_length(name: str) -> None:
    if len(name) <= checks.QUEUE_SLUG_CHARS:
        checks.check_queue_slug(name)
    else:
        with pytest.raises(InvalidField):
            checks.check_queue_slug(name)


@pytest.mark.parametrize("slug", ["a", "0", "a-b_c", "s" * 63])
def test_scope_names_at_their_edges_pass(slug: str) -> None:
    checks.check_scope_slug(slug)
    with pytest.raises(InvalidField, match="scope"):
        checks.check_scope_slug(slug + "/")


EDGES: dict[str, tuple[Any, Any]] = {
    "visibility_timeout_s": (0.001, 86_400),
    "max_retries": (0, 100),
    "backoff_base_s": (0, 86_400),
    "backoff_cap_s": (0, 604_800),
    "concurrency": (1, 1_000_000),
    "max_depth": (0, 10**12),
    "default_ttl_s": (0.001, 366 * 86_400),
    "retention_s": (0, 100 * 366 * 86_400),
}


@pytest.mark.parametrize("field", EDGES)
def test_a_setting_passes_at_its_edges_and_not_beyond(field: str) -> None:
    low, high = EDGES[field]
    for value in (low, high):
        assert getattr(checks.queue_settings({field: value}, LIMITS), field) == value
    for value in (low - 1, high + 1):
        with pytest.raises(InvalidField, match=field):
            checks.queue_settings({field: value}, LIMITS)


def test_settings_not_named_keep_their_value() -> None:
    base = checks.queue_settings({"max_retries": 9, "ordering": "priority"}, LIMITS)
    changed = checks.queue_settings({"max_depth": 3}, LIMITS, base)
    assert (changed.max_retries, changed.ordering, changed.max_depth) == (9, "priority", 3)
    assert checks.queue_settings({}, LIMITS) == QueueSettings()


@pytest.mark.parametrize(
    ("wanted", "parts"), [("order", ("order", None)), ("order@3", ("order", 3)), ("a.b c@12", ("a.b c", 12))]
)
def test_a_schema_is_named_with_or_without_its_version(wanted: str, parts: tuple[str, int | None]) -> None:
    assert checks.split_schema(wanted) == parts


@pytest.mark.parametrize("wanted", ["", "@", "@1", "a@", "a@x", "a@-1", "a@1.5", "a@1@2", "a@²", "a@٣"])
def test_what_is_no_name_and_version_is_refused(wanted: str) -> None:
    with pytest.raises(InvalidField, match="schema"):
        checks.split_schema(wanted)


def message(**fields: Any) -> NewMessage:
    return NewMessage(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"priority_tier": "background", "priority_score": 0},
        {"priority_tier": "critical", "priority_score": 1000},
        {"ttl_s": 366 * 86_400},
        {"ttl_s": 1},
        {"deadline": 2**56 - 1},
        {"delay_until": 1},
        {"hop": 1000},
        {"message_type": "t" * 512, "correlation_id": "", "sender": "Zoë ☂"},
        {"labels": {}},
        {"labels": {"k" * 64: "v" * 256, "n": 1, "f": 0.5, "b": False, "none": None}},
        {"files": []},
        {"files": ["f"] * 64},
    ],
    ids=lambda fields: ",".join(fields) or "defaults",
)
def test_a_message_at_its_limits_passes(fields: dict[str, Any]) -> None:
    checks.check_message(message(**fields), LIMITS)


def test_every_limit_can_be_set() -> None:
    tight = Limits(labels=1, label_key_chars=1, label_value_chars=1, text_chars=3, hops=1, files=1)
    for fields in (
        {"labels": {"a": 1, "b": 1}},
        {"labels": {"ab": 1}},
        {"labels": {"a": "vv"}},
        {"message_type": "abcd"},
        {"hop": 2},
        {"files": ["a", "b"]},
    ):
        checks.check_message(message(**fields), LIMITS)
        with pytest.raises(InvalidField, match=next(iter(fields))):
            checks.check_message(message(**fields), tight)


def test_a_body_is_measured_in_bytes() -> None:
    small = Limits(body_bytes=6)
    assert checks.body_bytes(message(body="ööoo", content_type="text/plain"), small) == "ööoo".encode()
    with pytest.raises(BodyTooLarge) as caught:
        checks.body_bytes(message(body="öööo", content_type="text/plain"), small)
    assert caught.value.data == {"what": "body", "size": 7, "limit": 6}


def test_no_body_is_null_in_json_and_nothing_elsewhere() -> None:
    assert checks.body_bytes(message(), LIMITS) == b"null"
    assert checks.body_bytes(message(content_type="text/plain"), LIMITS) is None


@given(st.text())
def test_a_text_is_what_can_be_written(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        assert not checks.is_text(value)
    else:
        assert checks.is_text(value)


@given(st.one_of(st.text(st.characters()), st.integers(), st.none(), st.binary()))
def test_any_reason_becomes_a_text_within_its_limit(reason: Any) -> None:
    text = checks.reason_text(reason, Limits(reason_chars=10))
    assert len(text) <= 10
    assert checks.is_text(text)


def test_a_reason_that_was_cut_says_so() -> None:
    assert checks.reason_text("x" * 11, Limits(reason_chars=10)) == "x" * 9 + "…"
    assert checks.reason_text("x" * 10, Limits(reason_chars=10)) == "x" * 10
