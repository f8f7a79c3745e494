"""The settings of agents, teams and providers, in the shape existing files have."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from postroom.settings.base_urls import ServerUrl
from postroom.settings.names import ID, not_an_id
from postroom.settings.part import SettingsPart, SharedPart
from postroom.settings.secret import Secret

SessionScope = Literal["agent", "sender", "thread"]
PermissionLevel = Literal["read", "workspace", "full"]
SandboxWord = Literal["auto", "required", "off"]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
# Above a billion it is a slip, and accounts count in millionths.
Dollars = Annotated[float, Field(ge=0, le=1_000_000_000)]


# As in the files of other programs, a shorter interval is valid, and means this one.
SHORTEST_HEARTBEAT_S = 10.0


class Heartbeat(SharedPart):
    enabled: bool = Field(default=True, description="Whether it is asked how things are by itself")
    interval: NotNegative | None = Field(default=None, description="Seconds, 10 at least; 0 turns it off")


class Fallback(SettingsPart):
    """What to try when the agent's own provider fails."""

    provider: Annotated[str, Field(min_length=1)] = Field(description="The provider to try next")
    model: str = Field(default="", description="Its model")


class AgentBudget(SettingsPart):
    """Money in US dollars; null lifts a limit."""

    turn_usd: Dollars | None = Field(default=None, description="The most one of its turns may cost")
    daily_usd: Dollars | None = Field(default=None, description="The most it may spend in a day")


def _folder(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL character; write a plain path")
    relative = not value.startswith(("/", "~", "$HOME"))
    if relative and ".." in value.split("/"):
        raise ValueError("leads out of the workspace by ..; write the whole path from / on")
    return value


def _opened(value: str) -> str:
    if "\0" in value or not value.startswith(("/", "~", "$HOME")):
        raise ValueError("must be a whole path, from / or ~ on")
    if not value.strip("/"):
        raise ValueError("is the whole disk; name the folders that are needed")
    return value


def _given_queue(value: str) -> str:
    name = value.removeprefix("default/")
    if not name or "/" in name:
        raise ValueError("must be the name of a queue of the scope default; * stands for any part of it")
    return name


OpenedPaths = tuple[Annotated[str, AfterValidator(_opened)], ...]


class AgentSettings(SharedPart):
    name: str = Field(default="", description="A name to show; one of a single word can be addressed")
    provider: str = Field(default="", description="What it works with, instead of models.provider")
    model: str = Field(default="", description="Instead of the provider's")
    working_directory: Annotated[str, AfterValidator(_folder)] | None = Field(
        default=None, description="Its folder: in the workspace, or a whole path"
    )
    system_prompt: str | None = Field(default=None, description="What it is told about itself")
    prompt_file: str | None = Field(default=None, description="A file with that, instead")
    heartbeat: Heartbeat = Heartbeat()
    fallbacks: tuple[Fallback, ...] = Field(default=(), description="What to try when its provider fails")
    budget: AgentBudget = AgentBudget()
    session: SessionScope | None = Field(default=None, description="Instead of sessions.scope")
    turn_timeout_s: Positive | None = Field(default=None, description="Instead of guards.turn_timeout_s")
    permissions: PermissionLevel | None = Field(default=None, description="Instead of security.permissions")
    sandbox: SandboxWord | None = Field(default=None, description="Instead of security.sandbox")
    readable: OpenedPaths = Field(default=(), description="Besides security.readable")
    writable: OpenedPaths = Field(default=(), description="Besides security.writable")
    queues: tuple[Annotated[str, AfterValidator(_given_queue)], ...] = Field(
        default=(), description="The work queues its tools reach; * stands for any part of a name"
    )


class TeamSettings(SharedPart):
    name: str = Field(default="", description="A name to show")
    agents: tuple[Annotated[str, AfterValidator(str.lower)], ...] = Field(
        default=(), description="Who belongs to it"
    )
    leader_agent: Annotated[str, AfterValidator(str.lower)] = Field(
        default="", description="Who gets what is written to the team"
    )
    daily_usd: Dollars | None = Field(default=None, description="The most it may spend in a day")
    replies: Literal["each", "combined"] | None = Field(default=None, description="Instead of replies.mode")


class CustomProviderSettings(SharedPart):
    name: str = Field(default="", description="A name to show")
    harness: Literal["claude", "codex", "api"] = Field(
        default="claude", description="The program that talks to it; `api`: none, we do"
    )
    wire: Literal["openai", "anthropic"] = Field(
        default="openai", description="Whose API it speaks, with harness `api`"
    )
    base_url: ServerUrl = Field(default="", description="Where the server is, by http or https")
    api_key: Secret | None = Field(default=None, description="Its key")
    model: str = Field(default="", description="Its model")


def _by_id(value: Any) -> Any:
    """Ids in any case are taken in small letters, since nobody could address them otherwise."""
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, entry in value.items():
        folded = key.lower()
        if not ID.fullmatch(folded):
            raise ValueError(not_an_id(key))
        if folded in result:
            raise ValueError(f'"{key}" is there twice, in small and large letters; rename one')
        result[folded] = entry
    return result


def _agents_by_id(value: Any) -> Any:
    if isinstance(value, dict):
        # The folder keeps the name it has on the disk.
        value = {
            key: {"working_directory": key, **entry}
            if isinstance(entry, dict) and key != key.lower()
            else entry
            for key, entry in value.items()
        }
    return _by_id(value)


Agents = Annotated[dict[str, AgentSettings], BeforeValidator(_agents_by_id)]
Teams = Annotated[dict[str, TeamSettings], BeforeValidator(_by_id)]
