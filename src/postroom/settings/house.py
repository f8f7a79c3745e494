"""The rules of the house: what it may spend, how far work may go, what is answered and to whom it listens."""

import re
import zoneinfo
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from postroom.settings.agents import NotNegative, Positive, SessionScope
from postroom.settings.part import Part, SharedPart
from postroom.settings.secrets import Secret

Count = Annotated[int, Field(ge=1)]


class Budgets(Part):
    """Money in US dollars; null lifts a limit, 0 forbids spending."""

    turn_usd: NotNegative | None = None
    conversation_usd: NotNegative | None = 10
    agent_daily_usd: NotNegative | None = 25
    team_daily_usd: NotNegative | None = 50
    daily_usd: NotNegative | None = 100
    warn_at: Annotated[float, Field(gt=0, le=1)] = 0.8


class Guards(Part):
    """How far one conversation may go before a person is asked."""

    hops: Count = 10
    messages: Count = 50
    mentions_per_answer: Count = 16
    repeats: Count = 3
    attempts: Count = 5
    turn_timeout_s: Positive = 1800
    idle_timeout_s: Positive = 600
    grace_s: NotNegative = 30
    output_bytes: Count = 4 * 1024 * 1024


class Sessions(Part):
    scope: SessionScope = "agent"


class Replies(Part):
    """`each`: every agent answers for itself; `combined`: one answer for a conversation.
    `quiet`: the final answer only; `verbose`: what the agent says on its way too."""

    mode: Literal["each", "combined"] = "each"
    detail: Literal["quiet", "verbose"] = "quiet"
    signature: bool = True
    long_text_chars: Annotated[int, Field(ge=100)] = 4000


class Limits(Part):
    message_bytes: Count = 256 * 1024
    file_bytes: Count = 50 * 1024 * 1024
    files_per_message: Count = 10
    files_folder_bytes: Count = 10 * 1024**3
    inbox_depth: Count = 10_000
    request_bytes: Count = 1024 * 1024
    requests_per_minute: Count = 600


_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?")


def _origin(value: str) -> str:
    origin = value.strip().rstrip("/").lower()
    if origin == "*":
        raise ValueError('"*" would let every web page in; name each origin, like http://127.0.0.1:3000')
    if not _ORIGIN.fullmatch(origin):
        raise ValueError("must be an origin like http://127.0.0.1:3000, without a path")
    return origin


class Api(Part):
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 3777
    auth: Literal["token", "loopback"] = "token"
    token: Secret | None = None
    origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = ()


def _zone(value: str) -> str:
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no known time zone; write one like Europe/Berlin or UTC") from None
    return value


class Schedules(Part):
    """`zone` null: that of the machine. `missed`: a time slept through is made up `once`, or `skip`ped."""

    zone: Annotated[str, AfterValidator(_zone)] | None = None
    missed: Literal["once", "skip"] = "once"


class Store(Part):
    url: Secret | None = None
    redis: Secret | None = None


class Retention(Part):
    """How long the hot store and the folders keep what is done; null keeps for ever."""

    completed_hours: NotNegative | None = 24
    files_days: NotNegative | None = 30
    logs_days: NotNegative | None = 30


class Logs(Part):
    level: Literal["debug", "info", "warning", "error"] = "info"
    texts: bool = Field(default=False, description="Whether message texts may stand in logs")


class Monitoring(SharedPart):
    heartbeat_interval: NotNegative = Field(default=3600, description="Seconds; 0 turns heartbeats off")
