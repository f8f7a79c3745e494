"""Options as the editor knows them: the keywords of each verb, typed; a misspelt one is refused."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypedDict

from postroom.clock import Clock
from postroom.errors import InvalidField
from postroom.ids import Ids
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.limits import Limits


class OpenOptions(TypedDict, total=False):
    """How a room is opened; the fields of `RoomOptions`."""

    actor: str
    tenant: str
    durability: Literal["full", "relaxed"]
    housekeeping: bool
    limits: Limits
    retention: Retention
    backups: Path | None
    clock: Clock | None
    ids: Ids | None
    seed: int | None
    redis: str | None


class QueueOptions(TypedDict, total=False):
    """What may be chosen of a queue; the fields of `QueueSettings`."""

    display_name: str
    description: str
    ordering: str
    consumer_mode: str
    visibility_timeout_s: float
    max_retries: int
    backoff_base_s: float
    backoff_cap_s: float
    concurrency: int | None
    rate_limit: int | None
    rate_period_s: float
    rate_key: str | None
    max_depth: int | None
    overflow_policy: str
    default_ttl_s: float | None
    schema: str | None
    retention_s: float | None


class ScheduleOptions(TypedDict, total=False):
    """When a schedule comes, and what it publishes; of `cron`, `every_s` and `at`, one."""

    cron: str
    zone: str
    every_s: float | None
    at: datetime | int | None
    missed: str
    overlap: bool
    enabled: bool
    message_type: str
    priority_tier: str
    labels: dict[str, Any]


class FilterOptions(TypedDict, total=False):
    """Which messages are listed; everything given must hold. `queue` is a path, `scope/queue`."""

    scope: str | None
    queue: str | None
    subscription: str | None
    state: str | Sequence[str] | None
    labels: Mapping[str, Any] | None
    message_type: str | None
    correlation_id: str | None
    causation_id: str | None
    parent_id: str | None
    kind: Literal["any", "original", "delivery", "listed"]
    deliveries: bool
    claimed_by: str | None
    created_after: int | None
    created_before: int | None
    ended_before: int | None
    score_below: int | None
    agent: str | None
    channel: str | None
    sender_id: str | None
    reviews: bool
    newest_first: bool
    scope_id: int | None
    queue_ids: tuple[int, ...] | None
    origin_queue_id: int | None
    line: int | None
    subscription_ids: tuple[int, ...] | None


def check_names(given: Iterable[str], known: Collection[str], what: str) -> None:
    """Refuses a keyword that nobody would read, and says which one was probably meant."""
    for name in given:
        if name in known:
            continue
        names = sorted(known)
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
        raise InvalidField(name, f"is not an option of {what} ({hint})")
