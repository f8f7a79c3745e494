"""Sections of the settings: what an office may spend, how far work goes, what is answered, who is heard."""

import re
from typing import Annotated, Literal

from msgspec import Meta, field

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
from postroom.settings.part import Check, SettingsPart, SharedPart
from postroom.settings.secret import Secret

Count = Annotated[int, Meta(ge=1)]
DAY_S = 24 * 3600


class BudgetSettings(SettingsPart):
    """Money in US dollars; null lifts a limit, 0 forbids spending."""

    turn_usd: Annotated[Dollars | None, "The most one turn may cost"] = None
    conversation_usd: Annotated[Dollars | None, "The most one conversation may cost"] = 10
    agent_daily_usd: Annotated[Dollars | None, "The most one agent may spend in a day"] = 25
    team_daily_usd: Annotated[Dollars | None, "The most one team may spend in a day"] = 50
    daily_usd: Annotated[Dollars | None, "The most everybody together may spend in a day"] = 100
    warn_at: Annotated[float, Meta(gt=0, le=1), "The share of a budget at which its owner is warned"] = 0.8
    reserve_usd: Annotated[Dollars, "Set aside for a turn of an agent of which no cost is known yet"] = 0.5
    unpriced_usd_per_mtok: Annotated[
        Dollars, "Stands in for the price of a million tokens where none is known"
    ] = 5


class GuardSettings(SettingsPart):
    """How far one conversation may go before a person is asked."""

    hops: Annotated[int, Meta(ge=1, le=999), "Hand-offs in a row before a person is asked"] = 10
    messages: Annotated[Count, "Messages in one conversation before a person is asked"] = 50
    mentions_per_answer: Annotated[Count, "How many an answer may hand on to"] = 16
    repeats: Annotated[Count, "How often one agent may write the same to another"] = 3
    cycles: Annotated[
        Count, "How often one agent may hand on to the same other without a word from a person"
    ] = 4
    attempts: Annotated[int, Meta(ge=1, le=100), "Tries before a message is a dead letter"] = 5
    crashes: Annotated[
        int,
        Meta(ge=1, le=1000),
        "So often a turn may be cut short by the end of its process, then it is dead",
    ] = 20
    rate_limit_s: Annotated[
        Positive, "So long a message waits for the rate limit of a provider, then it is dead"
    ] = DAY_S
    turn_timeout_s: Annotated[Positive, "The longest a turn may take"] = 1800
    idle_timeout_s: Annotated[Positive, "The longest a turn may be silent"] = 600
    grace_s: Annotated[NotNegative, "For a provider to end after its result"] = 30
    output_bytes: Annotated[Count, "All that a program writes in one turn, not its answer alone"] = (
        64 * 1024 * 1024
    )


class SecuritySettings(SettingsPart):
    """What agents' programs may do. An agent may have its own."""

    permissions: Annotated[
        PermissionLevel, "`read`: change nothing; `workspace`: change files of its folder; `full`: all it can"
    ] = "workspace"
    sandbox: Annotated[
        SandboxWord, "`auto`: as well as this machine can; `required`: or no turn at all; `off`: none"
    ] = "auto"
    readable: Annotated[OpenedPaths, "What agents in a sandbox may read besides"] = ()
    writable: Annotated[OpenedPaths, "What agents in a sandbox may write besides"] = ()


class SessionSettings(SettingsPart):
    scope: Annotated[SessionScope, "What one session with a provider covers"] = "agent"


class ReplySettings(SettingsPart):
    """`each`: every agent answers for itself; `combined`: one answer for a conversation.
    `quiet`: the final answer only; `verbose`: what the agent says on its way too."""

    mode: Annotated[
        Literal["each", "combined"], "`each`: every answer as it comes; `combined`: one at the end"
    ] = "each"
    detail: Annotated[Literal["quiet", "verbose"], "How much of the work is told on the way"] = "quiet"
    signature: Annotated[bool, "Whether an answer says which agent wrote it"] = True
    long_text_chars: Annotated[
        int, Meta(ge=100), "Longer answers come as a file, where a channel takes one"
    ] = 4000
    combined_timeout_s: Annotated[
        Positive, Meta(le=366 * DAY_S), "Then answer without those still at work"
    ] = 1800
    history: Annotated[bool, "Whether conversations are kept as Markdown in chats/"] = True


class LimitSettings(SettingsPart):
    message_bytes: Annotated[Count, "The longest message"] = 256 * 1024
    file_bytes: Annotated[Count, "The largest file, in and out"] = 50 * 1024 * 1024
    files_per_message: Annotated[int, Meta(ge=1, le=50), "The most files of one message"] = 10
    files_folder_bytes: Annotated[Count, "The most that files/ may hold"] = 10 * 1024**3
    inbox_depth: Annotated[Count, "The most messages that wait for one agent"] = 10_000
    turns_at_once: Annotated[Count, "Turns of all agents at the same time, in one process"] = 8
    turns_per_provider: Annotated[
        dict[str, Count], "By provider: turns at the same time, over all processes"
    ] = field(default_factory=dict)
    lease_s: Annotated[
        Positive, Meta(le=DAY_S), "After this, what a dead process had in hand is taken over"
    ] = 20
    request_bytes: Annotated[Count, "The longest request to the API"] = 1024 * 1024
    requests_per_minute: Annotated[
        Count, "Of each agent's tools, of each key's, and of each address without a token"
    ] = 600
    owner_requests_per_minute: Annotated[
        Count | None, "Of all the owner's programs and pages together; null: as many as they like"
    ] = None
    prompt_bytes: Annotated[int, Meta(ge=16 * 1024), "The longest system prompt"] = 64 * 1024


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
    host: Annotated[str, Meta(min_length=1), "The address the server listens on"] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), "The port it listens on"] = 3777
    auth: Annotated[Literal["token", "loopback"], "`token`, or `loopback`: no token from this machine"] = (
        "token"
    )
    token: Annotated[Secret | None, "The owner's token, instead of the file `token`"] = None
    origins: Annotated[tuple[Annotated[str, Check(_origin)], ...], "Web origins that may call the API"] = ()
    hosts: Annotated[
        tuple[Annotated[str, Check(_host_name)], ...], "Further names under which this machine is called"
    ] = ()
    remote: Annotated[bool, "Whether other machines may connect"] = False


def _zone(value: str) -> str:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no known time zone; write one like Europe/Berlin or UTC") from None
    return value


class ScheduleSettings(SettingsPart):
    """`zone` null: that of the machine. `missed`: times slept through are made up `once`, `all` of
    them, or `skip`ped."""

    zone: Annotated[Annotated[str, Check(_zone)] | None, "The time zone of schedules that name none"] = None
    missed: Annotated[
        Literal["once", "skip", "all"], "Times slept through are made up `once`, `all` of them, or `skip`"
    ] = "once"
    overlap: Annotated[bool, "Send although what was sent before is still worked on"] = False


_REGULARLY = re.compile(r"(\d{1,5})\s*(m|h|d)")
_UNITS = {"m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str) -> int | None:
    """Of `30m`, `6h` or `1d`; None for anything else."""
    found = _REGULARLY.fullmatch(text.strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found and int(found[1]) else None


def _regularly(value: str) -> str:
    if seconds_of(value) is not None:
        return value.strip().lower()
    from datetime import UTC, datetime

    from cronsim import CronSim, CronSimError

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
    url: Annotated[Secret | None, "Where the store is, instead of postroom.db"] = None
    redis: Annotated[Secret | None, "Beside a database server: wakes others sooner"] = None


class RetentionSettings(SettingsPart):
    """How long the hot store and the folders keep what is done; null keeps for ever.

    Nothing goes before the lake has it, once there is a lake."""

    completed_hours: Annotated[NotNegative | None, "Then it moves to the archive"] = 24
    dead_days: Annotated[
        NotNegative | None, "Then dead letters move there too, and unconfirmed replies are forgotten"
    ] = 30
    messages_days: Annotated[NotNegative | None, "In the archive, since they ended"] = 365
    ledger_days: Annotated[NotNegative | None, "So long events are kept"] = 365
    records_days: Annotated[NotNegative | None, "Turns, decisions, earlier versions"] = 365
    progress_days: Annotated[NotNegative | None, "What turns told on their way"] = 7
    exchanges_days: Annotated[NotNegative | None, "Words that go into a later turn"] = 90
    audit_days: Annotated[NotNegative | None, "So long it is kept who asked for what"] = 365
    streams_days: Annotated[NotNegative | None, "So long streams are kept after their last part"] = 30
    files_days: Annotated[NotNegative | None, "So long files that came in or went out are kept"] = 30
    logs_days: Annotated[NotNegative | None, "So long logs are kept"] = 30


_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[^\s?#]*)?")


def _files_url(value: str) -> str:
    url = value.strip().rstrip("/")
    if url and not (_BUCKET.fullmatch(url) or url.startswith(("/", "~/"))):
        raise ValueError("must be a whole path, from / or ~/ on, or an address like s3://bucket/prefix")
    return url


class MessageFileSettings(SettingsPart):
    """Where files that come in and go out with messages are, for all hosts of an office."""

    url: Annotated[
        str,
        Check(_files_url),
        "A folder that all hosts see, or s3://bucket/prefix; empty: `files/` in the home",
    ] = ""


class PipelineSettings(SettingsPart):
    """When the lake is brought up to date by itself: `1h`, `30m`, or cron fields; null: only when asked."""

    schedule: Annotated[
        Annotated[str, Check(_regularly)] | None, "When the lake is brought up to date by itself"
    ] = None
    memory_mb: Annotated[int, Meta(ge=512), "Of the JVM of a run"] = 1024
    limit_minutes: Annotated[Positive, "A run that takes longer is stopped"] = 240
    keep: Annotated[
        dict[str, Annotated[str, Check(_age)]], "Tables of the lake and how long their rows stay, like 365d"
    ] = field(default_factory=dict)
    lineage: Annotated[
        str, "Where runs tell OpenLineage events: an address, a file, or env; empty: nowhere"
    ] = ""


class LogSettings(SettingsPart):
    level: Annotated[Literal["debug", "info", "warning", "error"], "The least that is written to the log"] = (
        "info"
    )
    texts: Annotated[bool, "Whether message texts may stand in logs"] = False


def _plugin(value: str) -> str:
    name = value.strip().lower()
    if not ID.fullmatch(name):
        raise ValueError(not_an_id(value))
    return name


class PluginSettings(SettingsPart):
    """Code of others that runs in the room's own process: none, until it is named here."""

    allowed: Annotated[tuple[Annotated[str, Check(_plugin)], ...], "Plugins that may run"] = ()
    timeout_s: Annotated[Positive, "The longest one call of a plugin may take"] = 5
    failures: Annotated[Count, "In a row; then the plugin is off until a restart"] = 5


def _network(value: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_network(value.strip()))
    except ValueError:
        raise ValueError("must be a network like 192.168.1.0/24, or one address like 192.168.1.20") from None


class WebhookSettings(SettingsPart):
    """Where they may lead besides public addresses with certificates that everybody trusts."""

    networks: Annotated[
        tuple[Annotated[str, Check(_network)], ...],
        "Networks inside that webhooks may lead to, also by http://",
    ] = ()
    ca_file: Annotated[
        str | None, "Certificates (PEM) of authorities to trust as well; read at the start"
    ] = None


class MonitoringSettings(SharedPart):
    heartbeat_interval: Annotated[NotNegative, "Seconds, 10 at least; 0 turns heartbeats off"] = 3600
