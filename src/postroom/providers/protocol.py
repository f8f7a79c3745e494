"""What a turn is, and what a provider reports while it executes one.

A turn is told as a stream of events that ends with exactly one `Finished` or `Failed`. A provider never
raises for what goes wrong on its side; closing or cancelling the stream ends all that the turn has started.
"""

from collections.abc import AsyncGenerator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from postroom.providers.steering import Steering


class ErrorKind(StrEnum):
    """What to do about a failure; `Cause` says more precisely what it was."""

    AUTH = "auth"  # the owner must act: credentials, plan, billing
    RATE_LIMIT = "rate_limit"  # later, at `retry_at` if it is known
    OVERLOADED = "overloaded"  # soon: the model's servers or the way to them
    CONTEXT_TOO_LONG = "context_too_long"  # with a new session, or a shorter message
    REFUSED = "refused"  # never with these words
    CRASHED = "crashed"  # again, it may have been chance
    TIMED_OUT = "timed_out"  # again, or with larger limits
    NOT_INSTALLED = "not_installed"  # the owner must act
    INVALID = "invalid"  # something must change first: model, session, limits, settings

    @property
    def may_pass(self) -> bool:
        """Whether the same request can succeed later without anybody changing anything."""
        return self in _MAY_PASS


_MAY_PASS = frozenset({ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.CRASHED, ErrorKind.TIMED_OUT})


class Cause(StrEnum):
    UNKNOWN = ""
    QUOTA = "quota"
    SESSION_LOST = "session_lost"
    MODEL = "model"
    NETWORK = "network"
    SERVER = "server"  # the model's server failed of itself (HTTP 500), which is not too much load
    STREAM_CUT = "stream_cut"  # the answer began, and broke off
    PERMISSION = "permission"
    SANDBOX = "sandbox"
    WALL_CLOCK = "wall_clock"
    IDLE = "idle"
    OUTPUT_LIMIT = "output_limit"  # ours, of bytes
    TOKEN_LIMIT = "token_limit"  # the model's own
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"


class Permissions(StrEnum):
    """What the agent's tools may do without asking; there is nobody to ask during a turn."""

    READ = "read"
    WORKSPACE = "workspace"
    FULL = "full"


class SandboxMode(StrEnum):
    AUTO = "auto"  # as well as this machine can
    REQUIRED = "required"  # or not at all
    OFF = "off"


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's program is kept to, besides its workspace and its own home. `hidden` is never visible,
    also where it lies inside of what is open; the innermost folder decides."""

    mode: SandboxMode = SandboxMode.AUTO
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()


NO_SANDBOX = Sandbox(mode=SandboxMode.OFF)


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds and bytes. `grace` is how long a program may take to exit after its final event, and
    `term` how long it may take after SIGTERM, before it is killed."""

    wall_clock: float = 1800.0
    idle: float = 600.0
    output_bytes: int = 64 * 1024 * 1024
    line_bytes: int = 8 * 1024 * 1024
    grace: float = 10.0
    term: float = 3.0
    budget_usd: float | None = None


class Utterance(msgspec.Struct, frozen=True):
    """One earlier message of the conversation, for providers that keep no session of their own."""

    role: Literal["user", "assistant"]
    text: str


class SessionTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of a whole session, as programs report them that count up. Keep it with the session id."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to execute. `session_id` is the one to go on with; None begins a new session, always.
    `steering` is for providers with `takes_more`; the others leave it shut."""

    agent_id: str
    prompt: str
    workspace: Path
    turn_id: str = ""
    system_prompt: str = ""
    model: str = ""
    session_id: str | None = None
    session_total: SessionTotal | None = None
    history: tuple[Utterance, ...] = ()
    environment: Mapping[str, str] = {}
    mcp_config: Path | None = None
    permissions: Permissions = Permissions.WORKSPACE
    sandbox: Sandbox = NO_SANDBOX
    limits: TurnLimits = TurnLimits()
    steering: Steering | None = None


class SessionStarted(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="session_started"):
    """The session this turn belongs to. Store it: it is what the next turn resumes."""

    session_id: str
    provider: str


class TextChunk(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="text"):
    """Words of the model as they come; those of one `part` belong together. The answer is `Finished.text`."""

    text: str
    part: int = 0


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="tool"):
    name: str
    state: Literal["started", "finished", "failed"]
    call_id: str = ""
    summary: str = ""


class ToolDenied(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="denied"):
    """What the agent wanted to do and was not allowed to, as far as its program says so."""

    name: str
    summary: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="progress"):
    kind: Literal["status", "retry", "thinking", "warning", "fallback", "leftovers"]
    text: str


class Usage(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="usage"):
    """Tokens of this turn for one model. The four counts are disjoint: `input_tokens` excludes the cache.

    `cost_usd` is what the provider itself reported, None if it said nothing. `vendor` names the price list.
    With `whole_session` the counts are those of the session so far, because the earlier total was not given.
    """

    provider: str
    model: str
    vendor: str = ""
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    session_total: SessionTotal | None = None
    whole_session: bool = False


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="finished"):
    """The turn is done and `text` is its answer, whole. `stop_reason` is set when the model was cut short."""

    text: str
    stop_reason: str = ""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="failed"):
    """The turn failed. `message` is for the person, `detail` for the log; `retry_at` is in microseconds.
    `provider` names whose failure it is also where no session was ever begun."""

    kind: ErrorKind
    message: str
    retry_at: int | None = None
    detail: str = ""
    cause: Cause = Cause.UNKNOWN
    provider: str = ""


Verdict = Finished | Failed
TurnEvent = SessionStarted | TextChunk | ToolUse | ToolDenied | Progress | Usage | Finished | Failed
TurnStream = AsyncGenerator[TurnEvent, None]


class Provider(Protocol):
    @property
    def name(self) -> str: ...

    def run(self, request: TurnRequest) -> TurnStream: ...
