"""The settings of agents, teams and providers, in the shape existing files have."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from postroom.settings.base_urls import ServerUrl
from postroom.settings.names import ID, not_an_id
from postroom.settings.part import Check, Prepare, SettingsPart, SharedPart
from postroom.settings.secret import Secret

SessionScope = Literal["agent", "sender", "thread"]
PermissionLevel = Literal["read", "workspace", "full"]
SandboxWord = Literal["auto", "required", "off"]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
# Above a billion it is a slip, and accounts count in millionths.
Dollars = Annotated[float, Meta(ge=0, le=1_000_000_000)]


# As in the files of other programs, a shorter interval is valid, and means this one.
SHORTEST_HEARTBEAT_S = 10.0


class Heartbeat(SharedPart):
    enabled: Annotated[bool, "Whether it is asked how things are by itself"] = True
    interval: Annotated[NotNegative | None, "Seconds, 10 at least; 0 turns it off"] = None


class Fallback(SettingsPart):
    """What to try when the agent's own provider fails."""

    provider: Annotated[str, Meta(min_length=1), "The provider to try next"]
    model: Annotated[str, "Its model"] = ""


class AgentBudget(SettingsPart):
    """Money in US dollars; null lifts a limit."""

    turn_usd: Annotated[Dollars | None, "The most one of its turns may cost"] = None
    daily_usd: Annotated[Dollars | None, "The most it may spend in a day"] = None


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


OpenedPaths = tuple[Annotated[str, Check(_opened)], ...]


class AgentSettings(SharedPart):
    name: Annotated[str, "A name to show; one of a single word can be addressed"] = ""
    provider: Annotated[str, "What it works with, instead of models.provider"] = ""
    model: Annotated[str, "Instead of the provider's"] = ""
    working_directory: Annotated[
        Annotated[str, Check(_folder)] | None, "Its folder: in the workspace, or a whole path"
    ] = None
    system_prompt: Annotated[str | None, "What it is told about itself"] = None
    prompt_file: Annotated[str | None, "A file with that, instead"] = None
    heartbeat: Heartbeat = Heartbeat()
    fallbacks: Annotated[tuple[Fallback, ...], "What to try when its provider fails"] = ()
    budget: AgentBudget = AgentBudget()
    session: Annotated[SessionScope | None, "Instead of sessions.scope"] = None
    turn_timeout_s: Annotated[Positive | None, "Instead of guards.turn_timeout_s"] = None
    permissions: Annotated[PermissionLevel | None, "Instead of security.permissions"] = None
    sandbox: Annotated[SandboxWord | None, "Instead of security.sandbox"] = None
    readable: Annotated[OpenedPaths, "Besides security.readable"] = ()
    writable: Annotated[OpenedPaths, "Besides security.writable"] = ()
    queues: Annotated[
        tuple[Annotated[str, Check(_given_queue)], ...],
        "The work queues its tools reach; * stands for any part of a name",
    ] = ()


class TeamSettings(SharedPart):
    name: Annotated[str, "A name to show"] = ""
    agents: Annotated[tuple[Annotated[str, Check(str.lower)], ...], "Who belongs to it"] = ()
    leader_agent: Annotated[str, Check(str.lower), "Who gets what is written to the team"] = ""
    daily_usd: Annotated[Dollars | None, "The most it may spend in a day"] = None
    replies: Annotated[Literal["each", "combined"] | None, "Instead of replies.mode"] = None


class CustomProviderSettings(SharedPart):
    name: Annotated[str, "A name to show"] = ""
    harness: Annotated[
        Literal["claude", "codex", "api"], "The program that talks to it; `api`: none, we do"
    ] = "claude"
    wire: Annotated[Literal["openai", "anthropic"], "Whose API it speaks, with harness `api`"] = "openai"
    base_url: Annotated[ServerUrl, "Where the server is, by http or https"] = ""
    api_key: Annotated[Secret | None, "Its key"] = None
    model: Annotated[str, "Its model"] = ""


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


Agents = Annotated[dict[str, AgentSettings], Prepare(_agents_by_id)]
Teams = Annotated[dict[str, TeamSettings], Prepare(_by_id)]
