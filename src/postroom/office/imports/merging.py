"""The other program's settings beside ours. What is set here already stays; what is not valid is left out
field by field, and a person is told."""

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.office.imports.source import ONLY_AGENT, ImportSource
from postroom.settings import InvalidSettings, secrets
from postroom.settings.defaults import DEFAULT_MODELS
from postroom.settings.model import Settings, parse
from postroom.settings.names import is_id, suggestion
from postroom.settings.part import fields_of
from postroom.settings.paths import expanded

Document = dict[str, Any]

# What is looked at part by part; `workspace` names where their folders are, which are copied.
KNOWN_PARTS = frozenset(
    {"workspace", "channels", "models", "agents", "custom_providers", "teams", "monitoring", "default_agent"}
)
PLACEHOLDER = "your_token_here"

WHATSAPP = (
    "the login of WhatsApp cannot be carried over: it is a session of another program's browser. Link the"
    " phone anew: postroom channel setup whatsapp_personal (against WhatsApp's terms, as it was there), or"
    " use a number of a business: postroom channel setup whatsapp. Who could write there may write here"
)


class Folder(msgspec.Struct, frozen=True):
    """The workspace of an agent: where it is, and where the agent will look for it."""

    agent: str
    source: Path
    target: Path


class Merged(msgspec.Struct, kw_only=True):
    document: Document
    names: dict[str, str]
    """What each of their agents and teams is called here."""
    agents: list[str] = []
    teams: list[str] = []
    folders: list[Folder] = []
    notes: list[str] = []


def merge(document: Document, source: ImportSource) -> Merged:
    """`document` is what is stored here; it is not changed."""
    return _Merging(document, source).done()


class _Merging:
    def __init__(self, stored: Document, source: ImportSource) -> None:
        self._stored = stored
        self._document: Document = copy.deepcopy(stored)
        self._source = source
        self._theirs = _layered(source.settings)
        self._names: dict[str, str] = {}
        self._added: dict[str, list[str]] = {"agents": [], "teams": []}
        self._chosen: dict[str, Path] = {}
        self._notes: list[str] = []

    def done(self) -> Merged:
        self._take_models()
        self._take_channels()
        self._take_heartbeat()
        self._take_unknown()
        for key, entry in self._entries("custom_providers"):
            self._take("custom_providers", key, entry)
        self._take_agents()
        self._take_teams()
        self._take_defaults()
        self._choose_default()
        return Merged(
            document=self._document,
            names=self._names,
            agents=self._added["agents"],
            teams=self._added["teams"],
            folders=self._folders(),
            notes=self._notes,
        )

    # agents and teams

    def _take_agents(self) -> None:
        found = dict(self._entries("agents"))
        if not found:
            key, name = ONLY_AGENT[self._source.kind]
            provider, model = _parsed({"models": self._theirs.get("models") or {}}).models.chosen()
            found = {key: {"name": name, "provider": provider, "model": model or DEFAULT_MODELS["anthropic"]}}
        for name, entry in found.items():
            key = self._named("agent", name)
            if key is None:
                continue
            if key in _lower(self._document.get("agents")):
                self._notes.append(f"@{key} is here already and stays as it is")
                continue
            if key in _lower(self._document.get("teams")):
                self._notes.append(f"the agent {key} is left out: a team here has that name")
                continue
            entry = dict(entry)
            folder = self._folder(name, entry.pop("working_directory", None))
            if folder is not None and not self._is_theirs(folder):
                entry["working_directory"] = str(folder)
                self._notes.append(f"@{key} goes on working in {folder}, which is used from both places then")
            self._take_prompt_file(key, entry, folder)
            if self._take("agents", key, entry):
                self._added["agents"].append(key)
                if folder is not None and "working_directory" not in entry:
                    self._chosen[key] = folder

    def _folder(self, name: str, written: object) -> Path | None:
        """Where the agent worked. A name that leads elsewhere names no folder."""
        base = self._source.workspace
        if isinstance(written, str) and written and "\0" not in written:
            folder = Path(os.path.normpath(base / expanded(written)))
            if expanded(written).is_absolute() or folder.is_relative_to(base):
                return folder if folder.is_dir() else None
        folder = Path(os.path.normpath(base / name)) if "\0" not in name else base
        return folder if folder != base and folder.parent == base and folder.is_dir() else None

    def _is_theirs(self, folder: Path) -> bool:
        """Whether it lies among what the program itself made, and not where a person pointed it."""
        real = Path(os.path.realpath(folder))
        roots = [Path(os.path.realpath(root)) for root in (self._source.workspace, self._source.path)]
        return any(root in real.parents for root in roots)

    def _take_prompt_file(self, key: str, entry: Document, folder: Path | None) -> None:
        file = entry.pop("prompt_file", None)
        if not isinstance(file, str) or not file or "\0" in file:
            return
        path = expanded(file)
        if path.is_absolute() and folder is not None and path.is_relative_to(folder):
            path = path.relative_to(folder)
        if path.is_absolute() or ".." in path.parts:
            self._notes.append(f"the prompt_file of @{key} lies outside its folder and is left out: {file}")
        else:
            entry["prompt_file"] = str(path)

    def _take_teams(self) -> None:
        present = set(_lower(self._document.get("agents")))
        for name, entry in self._entries("teams"):
            key = self._named("team", name)
            if key is None:
                continue
            if key in _lower(self._document.get("teams")):
                self._notes.append(f"#{key} is here already and stays as it is")
                continue
            if key in present:
                self._notes.append(f"the team {key} is left out: an agent here has that name")
                continue
            told = entry.get("agents") if isinstance(entry.get("agents"), list) else []
            members = [self._names.get(each, each.lower()) for each in told or () if isinstance(each, str)]
            members = list(dict.fromkeys(each for each in members if each in present))
            if not members:
                self._notes.append(f"the team {key} is left out: none of its agents is here")
                continue
            leads = entry.get("leader_agent")
            leader = self._names.get(leads, leads.lower()) if isinstance(leads, str) else ""
            if leader not in members:
                leader = members[0]
                self._notes.append(f"the leader of #{key} is not here; @{leader} leads it now")
            if self._take("teams", key, {**entry, "agents": members, "leader_agent": leader}):
                self._added["teams"].append(key)

    def _named(self, what: str, name: str) -> str | None:
        key = name.lower() if is_id(name.lower()) else suggestion(name)
        if not key:
            self._notes.append(f"the {what} {name!r} is left out: no id can be made of that name")
            return None
        if name in self._names.values() and name != key:
            return None
        self._names[name] = key
        if key != name.lower():
            self._notes.append(f"the {what} {name!r} is called {key} here")
        return key

    # the rest

    def _take_models(self) -> None:
        theirs = self._part("models")
        if isinstance(theirs.get("provider"), str) and theirs["provider"]:
            self._set(("models", "provider"), theirs["provider"])
        for provider, entry in theirs.items():
            if isinstance(entry, dict):
                for field, value in entry.items():
                    self._set(("models", provider, field), value)

    def _take_channels(self) -> None:
        theirs = self._part("channels")
        for name, entry in theirs.items():
            if isinstance(entry, dict) and name != "defaults":
                for field, value in entry.items():
                    if value and value != PLACEHOLDER:
                        self._set(("channels", name, field), value)
        told = theirs.get("enabled")
        here = (self._document.get("channels") or {}).get("enabled") or []
        new = [
            each
            for each in (told if isinstance(told, list) else [])
            if isinstance(each, str) and each not in here
        ]
        if "whatsapp" in new:
            self._notes.append(WHATSAPP)
        if not new:
            return
        if self._source.running is not None:
            self._notes.append(
                f"{', '.join(new)} stays off here while the other program runs (process "
                f"{self._source.running}): both would answer. When it has stopped: postroom channel setup"
            )
            return
        self._try(_with(self._document, ("channels", "enabled"), [*here, *new]), "channels.enabled")

    def _take_heartbeat(self) -> None:
        interval = self._part("monitoring").get("heartbeat_interval")
        own = (self._document.get("monitoring") or {}).get("heartbeat_interval")
        if own is None:
            self._set(("monitoring", "heartbeat_interval"), interval)
        elif interval and own == 0:
            self._notes.append(
                f"heartbeats came every {interval} seconds there and are off here: "
                f"postroom settings set monitoring.heartbeat_interval {interval}"
            )

    def _take_unknown(self) -> None:
        """What nobody here knows is kept as it is: another program may read the same settings."""
        for field, value in self._part("monitoring").items():
            if field != "heartbeat_interval":
                self._set(("monitoring", field), value)
        for name, value in self._theirs.items():
            if name in KNOWN_PARTS:
                continue
            if name in fields_of(Settings):
                self._notes.append(f"not taken over: {name}, which means something else here")
            else:
                self._set((name,), value)

    def _take_defaults(self) -> None:
        """Whom each chat writes to when it names nobody."""
        told = self._part("channels").get("defaults")
        for chat, name in (told if isinstance(told, dict) else {}).items():
            if isinstance(name, str):
                self._set(("channels", "defaults", chat), self._names.get(name, name))

    def _choose_default(self) -> None:
        """Who answers where nobody is named: theirs, unless somebody chose here or has a real agent here."""
        settings = _parsed(self._document)
        own = settings.default_agent_id()
        theirs = [self._names[name] for name in ("tinyagi", "default", *self._names) if name in self._names]
        theirs = [name for name in theirs if name in settings.agents]
        echoes = own in settings.agents and settings.choice_of(own)[0] == "script"
        if not settings.default_agent and echoes and theirs and theirs[0] != own:
            self._document["default_agent"] = theirs[0]
            self._notes.append(
                f"@{theirs[0]} answers now where nobody is named, and not @{own}, which echoes"
            )

    def _folders(self) -> list[Folder]:
        settings = _parsed(self._document)
        return [
            Folder(agent, folder, settings.agent_directory(agent)) for agent, folder in self._chosen.items()
        ]

    # how something is taken

    def _take(self, part: str, key: str, entry: Document) -> bool:
        """An entry with all of its fields that are valid here, unless there is one of that name."""
        if key in (self._document.get(part) or {}):
            return False
        if not self._try(_with(self._document, (part, key), {}), f"{part}.{key}"):
            return False
        for field, value in entry.items():
            self._set((part, key, field), value)
        return True

    def _set(self, path: tuple[str, ...], value: Any) -> None:
        at: Any = self._document
        for step in path:
            at = at.get(step) if isinstance(at, dict) else None
        if at in (None, "") and value is not None:
            self._try(_with(self._document, path, value), ".".join(path))
        elif value is not None and at != value:
            self._notes.append(f"not taken over: {'.'.join(path)}, which is set here already")

    def _try(self, wanted: Document, field: str) -> bool:
        try:
            parse(secrets.unmasked(wanted, self._stored))
        except InvalidSettings as error:
            self._notes.append(f"{field} is left out: {error.data['problems']}")
            return False
        except InvalidField as error:
            self._notes.append(f"{field} is left out: {error}")
            return False
        self._document = wanted
        return True

    def _part(self, name: str) -> Mapping[str, Any]:
        found = self._theirs.get(name)
        return found if isinstance(found, dict) else {}

    def _entries(self, part: str) -> list[tuple[str, Document]]:
        found: list[tuple[str, Document]] = []
        for name, entry in self._part(part).items():
            if isinstance(entry, dict):
                found.append((name, entry))
            else:
                self._notes.append(f"{part}.{name} is left out: it is no object")
        return found


def _with(document: Document, path: tuple[str, ...], value: Any) -> Document:
    """A copy with one value changed."""
    first, *rest = path
    below = document.get(first)
    below = below if isinstance(below, dict) else {}
    return {**document, first: _with(below, tuple(rest), value) if rest else value}


def _lower(part: object) -> list[str]:
    return [str(key).lower() for key in part] if isinstance(part, dict) else []


def _parsed(document: Document) -> Settings:
    try:
        return parse(document)
    except InvalidSettings:
        return Settings()


def _layered(settings: Document) -> Document:
    """The very first TinyClaw wrote its few settings side by side."""
    if "channel" not in settings or "channels" in settings:
        return settings
    chosen = str(settings["channel"])
    return {
        "channels": {
            "enabled": ["discord", "whatsapp"] if chosen == "both" else [chosen],
            "discord": {"bot_token": settings.get("discord_bot_token")},
        },
        "models": {"anthropic": {"model": settings.get("model")}},
        "monitoring": {"heartbeat_interval": settings.get("heartbeat_interval")},
    }
