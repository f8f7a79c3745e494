"""Sections of the settings: what an office may spend, how far work goes, what is answered, who is heard."""

import ipaddress
import re
import zoneinfo
from datetime import UTC, datetime
from typing import Annotated, Literal

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field

from postroom.settings.agents import (
    Dollars,
    NotNegative,
    OpenedPaths,
    PermissionLevel,
    Positive,
    SandboxWord,
    SessionScope,
)
from postroom.settings.names import ID, not_an_id
from postroom.settings.part import SettingsPart, SharedPart
from postroom.settings.secret import Secret

Count = Annotated[int, Field(ge=1)]
DAY_S = 24 * 3600


class BudgetSettings(SettingsPart):
    """Money in US dollars; null lifts a limit, 0 forbids spending."""

    turn_usd: Dollars | None = Field(default=None, description="The most one turn may cost")
    conversation_usd: Dollars | None = Field(default=10, description="The most one conversation may cost")
    agent_daily_usd: Dollars | None = Field(default=25, description="The most one agent may spend in a day")
    team_daily_usd: Dollars | None = Field(default=50, description="The most one team may spend in a day")
    daily_usd: Dollars | None = Field(
        default=100, description="The most everybody together may spend in a day"
    )
    warn_at: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.8, description="The share of a budget at which its owner is warned"
    )
    reserve_usd: Dollars = Field(
        default=0.5, description="Set aside for a turn of an agent of which no cost is known yet"
    )
    unpriced_usd_per_mtok: Dollars = Field(
        default=5, description="Stands in for the price of a million tokens where none is known"
    )


class GuardSettings(SettingsPart):
    """How far one conversation may go before a person is asked."""

    hops: Annotated[int, Field(ge=1, le=999)] = Field(
        default=10, description="Hand-offs in a row before a person is asked"
    )
    messages: Count = Field(default=50, description="Messages in one conversation before a person is asked")
    mentions_per_answer: Count = Field(default=16, description="How many an answer may hand on to")
    repeats: Count = Field(default=3, description="How often one agent may write the same to another")
    cycles: Count = Field(
        default=4,
        description="How often one agent may hand on to the same other without a word from a person",
    )
    attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        default=5, description="Tries before a message is a dead letter"
    )
    crashes: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=20, description="So often a turn may be cut short by the end of its process, then it is dead"
    )
    rate_limit_s: Positive = Field(
        default=DAY_S, description="So long a message waits for the rate limit of a provider, then it is dead"
    )
    turn_timeout_s: Positive = Field(default=1800, description="The longest a turn may take")
    idle_timeout_s: Positive = Field(default=600, description="The longest a turn may be silent")
    grace_s: NotNegative = Field(default=30, description="For a provider to end after its result")
    output_bytes: Count = Field(
        default=64 * 1024 * 1024, description="All that a program writes in one turn, not its answer alone"
    )


class SecuritySettings(SettingsPart):
    """What agents' programs may do. An agent may have its own."""

    permissions: PermissionLevel = Field(
        default="workspace",
        description="`read`: change nothing; `workspace`: change files of its folder; `full`: all it can",
    )
    sandbox: SandboxWord = Field(
        default="auto",
        description="`auto`: as well as this machine can; `required`: or no turn at all; `off`: none",
    )
    readable: OpenedPaths = Field(default=(), description="What agents in a sandbox may read besides")
    writable: OpenedPaths = Field(default=(), description="What agents in a sandbox may write besides")


class SessionSettings(SettingsPart):
    scope: SessionScope = Field(default="agent", description="What one session with a provider covers")


class ReplySettings(SettingsPart):
    """`each`: every agent answers for itself; `combined`: one answer for a conversation.
    `quiet`: the final answer only; `verbose`: what the agent says on its way too."""

    mode: Literal["each", "combined"] = Field(
        default="each", description="`each`: every answer as it comes; `combined`: one at the end"
    )
    detail: Literal["quiet", "verbose"] = Field(
        default="quiet", description="How much of the work is told on the way"
    )
    signature: bool = Field(default=True, description="Whether an answer says which agent wrote it")
    long_text_chars: Annotated[int, Field(ge=100)] = Field(
        default=4000, description="Longer answers come as a file, where a channel takes one"
    )
    combined_timeout_s: Positive = Field(
        default=1800, le=366 * DAY_S, description="Then answer without those still at work"
    )
    history: bool = Field(default=True, description="Whether conversations are kept as Markdown in chats/")


class LimitSettings(SettingsPart):
    message_bytes: Count = Field(default=256 * 1024, description="The longest message")
    file_bytes: Count = Field(default=50 * 1024 * 1024, description="The largest file, in and out")
    files_per_message: Annotated[int, Field(ge=1, le=50)] = Field(
        default=10, description="The most files of one message"
    )
    files_folder_bytes: Count = Field(default=10 * 1024**3, description="The most that files/ may hold")
    inbox_depth: Count = Field(default=10_000, description="The most messages that wait for one agent")
    turns_at_once: Count = Field(
        default=8, description="Turns of all agents at the same time, in one process"
    )
    turns_per_provider: dict[str, Count] = Field(
        default_factory=dict, description="By provider: turns at the same time, over all processes"
    )
    lease_s: Positive = Field(
        default=20, le=DAY_S, description="After this, what a dead process had in hand is taken over"
    )
    request_bytes: Count = Field(default=1024 * 1024, description="The longest request to the API")
    requests_per_minute: Count = Field(
        default=600, description="Of each agent's tools, of each key's, and of each address without a token"
    )
    owner_requests_per_minute: Count | None = Field(
        default=None, description="Of all the owner's programs and pages together; null: as many as they like"
    )
    prompt_bytes: Annotated[int, Field(ge=16 * 1024)] = Field(
        default=64 * 1024, description="The longest system prompt"
    )


_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?")


def _origin(value: str) -> str:
    origin = value.strip().rstrip("/").lower()
    if origin == "*":
        raise ValueError('"*" would let every web page in; name each origin, like http://127.0.0.1:3000')
    if not _ORIGIN.fullmatch(origin):
        raise ValueError("must be an origin like http://127.0.0.1:3000, without a path")
    return origin


_HOST_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\]")


def _host_name(value: str) -> str:
    name = value.strip().lower()
    if not _HOST_NAME.fullmatch(name):
        raise ValueError("must be the name of a host like office.example.org, without a port")
    return name


class ApiSettings(SettingsPart):
    host: Annotated[str, Field(min_length=1)] = Field(
        default="127.0.0.1", description="The address the server listens on"
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(default=3777, description="The port it listens on")
    auth: Literal["token", "loopback"] = Field(
        default="token", description="`token`, or `loopback`: no token from this machine"
    )
    token: Secret | None = Field(default=None, description="The owner's token, instead of the file `token`")
    origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = Field(
        default=(), description="Web origins that may call the API"
    )
    hosts: tuple[Annotated[str, AfterValidator(_host_name)], ...] = Field(
        default=(), description="Further names under which this machine is called"
    )
    remote: bool = Field(default=False, description="Whether other machines may connect")


def _zone(value: str) -> str:
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no known time zone; write one like Europe/Berlin or UTC") from None
    return value


class ScheduleSettings(SettingsPart):
    """`zone` null: that of the machine. `missed`: times slept through are made up `once`, `all` of
    them, or `skip`ped."""

    zone: Annotated[str, AfterValidator(_zone)] | None = Field(
        default=None, description="The time zone of schedules that name none"
    )
    missed: Literal["once", "skip", "all"] = Field(
        default="once", description="Times slept through are made up `once`, `all` of them, or `skip`"
    )
    overlap: bool = Field(default=False, description="Send although what was sent before is still worked on")


_REGULARLY = re.compile(r"(\d{1,5})\s*(m|h|d)")
_UNITS = {"m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str) -> int | None:
    """Of `30m`, `6h` or `1d`; None for anything else."""
    found = _REGULARLY.fullmatch(text.strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found and int(found[1]) else None


def _regularly(value: str) -> str:
    if seconds_of(value) is not None:
        return value.strip().lower()
    try:
        CronSim(value, datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, AssertionError, ValueError):
        raise ValueError('must be like 30m, 6h or 1d, or five fields of cron like "0 3 * * *"') from None
    return value.strip()


def _age(value: str) -> str:
    if seconds_of(value) is None:
        raise ValueError("must be like 12h or 365d")
    return value.strip().lower()


class StoreSettings(SettingsPart):
    url: Secret | None = Field(default=None, description="Where the store is, instead of postroom.db")
    redis: Secret | None = Field(default=None, description="Beside a database server: wakes others sooner")


class RetentionSettings(SettingsPart):
    """How long the hot store and the folders keep what is done; null keeps for ever.

    Nothing goes before the lake has it, once there is a lake."""

    completed_hours: NotNegative | None = Field(default=24, description="Then it moves to the archive")
    dead_days: NotNegative | None = Field(
        default=30, description="Then dead letters move there too, and unconfirmed replies are forgotten"
    )
    messages_days: NotNegative | None = Field(default=365, description="In the archive, since they ended")
    ledger_days: NotNegative | None = Field(default=365, description="So long events are kept")
    records_days: NotNegative | None = Field(default=365, description="Turns, decisions, earlier versions")
    progress_days: NotNegative | None = Field(default=7, description="What turns told on their way")
    exchanges_days: NotNegative | None = Field(default=90, description="Words that go into a later turn")
    audit_days: NotNegative | None = Field(default=365, description="So long it is kept who asked for what")
    streams_days: NotNegative | None = Field(
        default=30, description="So long streams are kept after their last part"
    )
    files_days: NotNegative | None = Field(
        default=30, description="So long files that came in or went out are kept"
    )
    logs_days: NotNegative | None = Field(default=30, description="So long logs are kept")


_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[^\s?#]*)?")


def _files_url(value: str) -> str:
    url = value.strip().rstrip("/")
    if url and not (_BUCKET.fullmatch(url) or url.startswith(("/", "~/"))):
        raise ValueError("must be a whole path, from / or ~/ on, or an address like s3://bucket/prefix")
    return url


class MessageFileSettings(SettingsPart):
    """Where files that come in and go out with messages are, for all hosts of an office."""

    url: Annotated[str, AfterValidator(_files_url)] = Field(
        default="",
        description="A folder that all hosts see, or s3://bucket/prefix; empty: `files/` in the home",
    )


class PipelineSettings(SettingsPart):
    """When the lake is brought up to date by itself: `1h`, `30m`, or cron fields; null: only when asked."""

    schedule: Annotated[str, AfterValidator(_regularly)] | None = Field(
        default=None, description="When the lake is brought up to date by itself"
    )
    memory_mb: Annotated[int, Field(ge=512)] = Field(default=1024, description="Of the JVM of a run")
    limit_minutes: Positive = Field(default=240, description="A run that takes longer is stopped")
    keep: dict[str, Annotated[str, AfterValidator(_age)]] = Field(
        default_factory=dict, description="Tables of the lake and how long their rows stay, like 365d"
    )
    lineage: str = Field(
        default="",
        description="Where runs tell OpenLineage events: an address, a file, or env; empty: nowhere",
    )


class LogSettings(SettingsPart):
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least that is written to the log"
    )
    texts: bool = Field(default=False, description="Whether message texts may stand in logs")


def _plugin(value: str) -> str:
    name = value.strip().lower()
    if not ID.fullmatch(name):
        raise ValueError(not_an_id(value))
    return name


class PluginSettings(SettingsPart):
    """Code of others that runs in the room's own process: none, until it is named here."""

    allowed: tuple[Annotated[str, AfterValidator(_plugin)], ...] = Field(
        default=(), description="Plugins that may run"
    )
    timeout_s: Positive = Field(default=5, description="The longest one call of a plugin may take")
    failures: Count = Field(default=5, description="In a row; then the plugin is off until a restart")


def _network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value.strip()))
    except ValueError:
        raise ValueError("must be a network like 192.168.1.0/24, or one address like 192.168.1.20") from None


class WebhookSettings(SettingsPart):
    """Where they may lead besides public addresses with certificates that everybody trusts."""

    networks: tuple[Annotated[str, AfterValidator(_network)], ...] = Field(
        default=(), description="Networks inside that webhooks may lead to, also by http://"
    )
    ca_file: str | None = Field(
        default=None, description="Certificates (PEM) of authorities to trust as well; read at the start"
    )


class MonitoringSettings(SharedPart):
    heartbeat_interval: NotNegative = Field(
        default=3600, description="Seconds, 10 at least; 0 turns heartbeats off"
    )
