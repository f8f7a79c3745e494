"""What is accepted: every field of a request, checked before anything is written."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.errors import BodyTooLarge, InvalidField, PostroomError
from postroom.kernel import jsontext
from postroom.kernel.limits import Limits
from postroom.kernel.model import AfterFailed, NewMessage, QueueSettings
from postroom.kernel.ordering import TIER_RANK

SCOPE_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
QUEUE_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*(?:[./][a-z0-9][a-z0-9_-]*)*")
QUEUE_SLUG_CHARS = 127
DEFAULT_SCOPE = "default"

JSON = "application/json"
YEAR_S = 366 * 24 * 3600


def split_path(path: str) -> tuple[str, str]:
    """`scope/queue`; a path without a slash is a queue of the default scope."""
    if not isinstance(path, str) or not path:
        raise InvalidField("queue", "must be a text like scope/queue")
    scope, slash, queue = path.partition("/")
    return (scope, queue) if slash else (DEFAULT_SCOPE, scope)


def check_scope_slug(slug: str) -> None:
    if not isinstance(slug, str) or not SCOPE_SLUG.fullmatch(slug):
        raise InvalidField("scope", f"{slug!r} is not a name of small letters, digits, - and _ (63 at most)")


def check_queue_slug(slug: str) -> None:
    if not isinstance(slug, str) or len(slug) > QUEUE_SLUG_CHARS or not QUEUE_SLUG.fullmatch(slug):
        raise InvalidField(
            "queue",
            f"{slug!r} is not a name of small letters, digits, - and _, with / or . between parts "
            f"({QUEUE_SLUG_CHARS} at most)",
        )


def check_name(field: str, name: str, limits: Limits) -> None:
    if not is_text(name) or not name.strip() or len(name) > limits.text_chars:
        raise InvalidField(field, f"must be a text of 1 to {limits.text_chars} characters")


SETTING_RANGES: dict[str, tuple[float, float]] = {
    "visibility_timeout_s": (0.001, 24 * 3600),
    "max_retries": (0, 100),
    "backoff_base_s": (0, 24 * 3600),
    "backoff_cap_s": (0, 7 * 24 * 3600),
    "concurrency": (1, 1_000_000),
    "rate_limit": (1, 1_000_000),
    "rate_period_s": (0.001, 24 * 3600),
    "max_depth": (0, 10**12),
    "default_ttl_s": (0.001, 366 * 24 * 3600),
    "retention_s": (0, 100 * 366 * 24 * 3600),
}


def queue_settings(
    changes: dict[str, Any], limits: Limits, base: QueueSettings | None = None
) -> QueueSettings:
    """The settings with these changes, or an error that names the field."""
    values = msgspec.structs.asdict(base) if base is not None else {}
    for field, value in changes.items():
        if field not in QueueSettings.__struct_fields__:
            known = ", ".join(QueueSettings.__struct_fields__)
            raise InvalidField(field, f"is not a setting of a queue; known are {known}")
        values[field] = value
    try:
        settings = msgspec.convert(values, QueueSettings)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).rpartition(" - at ")
        field = place.strip("`$.") if problem else "settings"
        raise InvalidField(field, (problem or str(error)).lower()) from None
    for field in ("display_name", "description", "schema"):
        check_text(field, getattr(settings, field), limits)
    if settings.rate_key is not None:
        check_rate_key(settings, limits)
    if settings.schema is not None:
        split_schema(settings.schema)
    for field, (low, high) in SETTING_RANGES.items():
        value = getattr(settings, field)
        if value is not None and not low <= value <= high:
            raise InvalidField(field, f"is {value}, must be between {low} and {high}")
    return settings


def check_rate_key(settings: QueueSettings, limits: Limits) -> None:
    if settings.rate_limit is None:
        raise InvalidField("rate_key", "needs a rate_limit")
    if not settings.rate_key or len(settings.rate_key) > limits.label_key_chars:
        raise InvalidField(
            "rate_key", f"must be the name of a label, of 1 to {limits.label_key_chars} characters"
        )


def split_schema(wanted: str) -> tuple[str, int | None]:
    """`name` (the newest version) or `name@3`."""
    name, at, version = wanted.partition("@")
    if not name or (at and not (version.isascii() and version.isdecimal())):
        raise InvalidField("schema", f"{wanted!r} must be a name, or a name and a version like order@2")
    return name, int(version) if at else None


def is_text(value: Any) -> bool:
    """A string that can be written as UTF-8, which one with half a surrogate pair cannot."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_seconds(field: str, value: Any, *, least: float, most: float) -> None:
    if not _number(value) or not least <= value <= most:
        raise InvalidField(field, f"is {value!r}, must be a number of seconds from {least} to {most}")


def check_count(field: str, value: Any, *, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidField(field, f"is {value!r}, must be a whole number from {least} to {most}")


def check_text(field: str, value: Any, limits: Limits) -> None:
    if value is not None and (not is_text(value) or len(value) > limits.text_chars):
        raise InvalidField(field, f"must be a text of at most {limits.text_chars} characters")


def check_message(message: NewMessage, limits: Limits) -> None:
    """Everything but the body, which `body_bytes` checks while it encodes it, and the time.

    Written out field by field, since most messages leave most fields at their defaults.
    """
    m = message
    if m.message_type != "message":
        check_name("message_type", m.message_type, limits)
    if m.content_type != JSON:
        check_name("content_type", m.content_type, limits)
    if m.idempotency_key is not None:
        check_name("idempotency_key", m.idempotency_key, limits)
        if "\x1f" in m.idempotency_key:
            # It divides the parts of a key whose message was moved.
            raise InvalidField("idempotency_key", "must not contain the character U+001F")
    if m.correlation_id is not None or m.causation_id is not None or m.parent_id is not None:
        check_texts(m, ("correlation_id", "causation_id", "parent_id"), limits)
    if m.source_type != "user":
        check_name("source_type", m.source_type, limits)
    if m.source_id is not None:
        check_text("source_id", m.source_id, limits)
    if m.channel is not None or m.sender is not None or m.sender_id is not None:
        check_texts(m, ("channel", "sender", "sender_id"), limits)
    if m.agent is not None or m.from_agent is not None:
        check_texts(m, ("agent", "from_agent"), limits)
    if m.priority_tier != "normal" or m.priority_score != 500 or type(m.priority_score) is not int:
        check_priority(m.priority_tier, m.priority_score)
    if m.ttl_s is not None:
        check_seconds("ttl_s", m.ttl_s, least=0.001, most=YEAR_S)
    if m.deadline is not None:
        check_moment("deadline", m.deadline)
    if m.delay_until is not None:
        check_moment("delay_until", m.delay_until)
    if m.delay_s is not None:
        check_seconds("delay_s", m.delay_s, least=0, most=YEAR_S)
        if m.delay_until is not None:
            raise InvalidField("delay_s", "and delay_until exclude each other")
    if m.after is not None:
        check_after(m, limits)
    if m.hop != 0:
        check_count("hop", m.hop, least=0, most=limits.hops)
    if m.labels:
        check_labels(m.labels, limits)
    if m.files is not None and (
        not isinstance(m.files, list)
        or len(m.files) > limits.files
        or not all(isinstance(name, str) for name in m.files)
    ):
        raise InvalidField("files", f"must be a list of at most {limits.files} paths")


def check_after(message: NewMessage, limits: Limits) -> None:
    ids = message.after
    if (
        not isinstance(ids, list)
        or len(ids) > limits.after
        or not all(is_text(each) and each for each in ids)
    ):
        raise InvalidField("after", f"must be a list of at most {limits.after} ids of messages")
    if message.after_failed not in set(AfterFailed):
        raise InvalidField(
            "after_failed", f"is {message.after_failed!r}, must be one of {', '.join(AfterFailed)}"
        )
    if message.delay_s is not None or message.delay_until is not None:
        raise InvalidField("after", "and a delay exclude each other")


def check_deadline(deadline: int, now: int) -> None:
    if deadline <= now:
        raise InvalidField("deadline", "lies in the past")


def check_texts(message: NewMessage, fields: tuple[str, ...], limits: Limits) -> None:
    for field in fields:
        check_text(field, getattr(message, field), limits)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_moment(field: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**56:
        raise InvalidField(field, f"is {value!r}, must be a time in microseconds since 1970")


def check_priority(tier: str, score: int) -> None:
    if not isinstance(tier, str) or tier not in TIER_RANK:
        raise InvalidField("priority_tier", f"is {tier!r}, must be one of {', '.join(TIER_RANK)}")
    check_count("priority_score", score, least=0, most=1000)


def check_labels(labels: dict[str, Any], limits: Limits) -> None:
    if not isinstance(labels, dict):
        raise InvalidField("labels", "must be a map of names to values")
    if len(labels) > limits.labels:
        raise InvalidField("labels", f"has {len(labels)} entries, at most {limits.labels} are allowed")
    for name, value in labels.items():
        if not is_text(name) or not 0 < len(name) <= limits.label_key_chars:
            raise InvalidField(
                "labels", f"name {name!r} is not 1 to {limits.label_key_chars} characters long"
            )
        if not isinstance(value, str | int | float | bool | None):
            raise InvalidField(f"labels.{name}", "must be a text, a number, true, false or null")
        if isinstance(value, str):
            if len(value) > limits.label_value_chars:
                raise InvalidField(f"labels.{name}", f"is longer than {limits.label_value_chars} characters")
            if not is_text(value):
                raise InvalidField(f"labels.{name}", "is not valid text (half a surrogate pair)")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidField(f"labels.{name}", "is too large a number")


def body_bytes(message: NewMessage, limits: Limits) -> bytes | None:
    return encoded(message.body, message.content_type, limits)


def first_refused(bodies: Sequence[Any], content_type: str, limits: Limits) -> int:
    """The place of the first body that cannot be taken."""
    for number, body in enumerate(bodies):
        try:
            encoded(body, content_type, limits)
        except PostroomError:
            return number
    raise AssertionError("all of them can be taken")


def shown_key(key: Any) -> str | None:
    """An idempotency key as an error may name it: it may be what is wrong."""
    return key[:100] if is_text(key) else None


def encoded(body: Any, content_type: str, limits: Limits) -> bytes | None:
    if content_type == JSON:
        data = jsontext.encode_strict(body, "body")
    elif body is None:
        return None
    elif isinstance(body, bytes | bytearray):
        data = bytes(body)
    elif isinstance(body, str):
        if not is_text(body):
            raise InvalidField("body", "is not valid text (half a surrogate pair)")
        data = body.encode()
    else:
        raise InvalidField("body", f"of type {content_type} must be text or bytes")
    if len(data) > limits.body_bytes:
        raise BodyTooLarge(what="body", size=len(data), limit=limits.body_bytes)
    return data


def small_json(
    field: str, value: dict[str, Any] | list[Any] | None, limit: int, shape: type = dict
) -> str | None:
    if not value:
        return None
    if not isinstance(value, shape):
        raise InvalidField(field, f"must be a JSON {'object' if shape is dict else 'list'}")
    data = jsontext.encode_strict(value, field)
    if len(data) > limit:
        raise BodyTooLarge(what=field, size=len(data), limit=limit)
    return data.decode()


def reason_text(reason: Any, limits: Limits) -> str:
    """A failure's reason is never refused, only cut: the failure itself must be recorded."""
    text = str(reason)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= limits.reason_chars else text[: limits.reason_chars - 1] + "…"
