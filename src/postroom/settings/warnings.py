"""What is valid in the settings but will not work as meant. A concern never stops the room."""

from collections.abc import Iterator

from postroom.settings.agents import SHORTEST_HEARTBEAT_S
from postroom.settings.model import Settings
from postroom.settings.names import RESERVED

PROVIDERS = frozenset({"anthropic", "openai", "opencode", "anthropic_api", "openai_api", "script"})


def find_warnings(settings: Settings) -> list[str]:
    """One sentence each, beginning with the field."""
    return [*_agents(settings), *_teams(settings), *_places(settings), *_heartbeats(settings)]


def _agents(settings: Settings) -> Iterator[str]:
    for name, agent in settings.agents.items():
        if name in RESERVED:
            yield f'agents.{name}: "{name}" is a word with a meaning of its own in chats; rename the agent.'
        if name in settings.teams:
            yield f"agents.{name}: a team has the same id; @{name} goes to the agent."
        used = [("provider", agent.provider)]
        used += [(f"fallbacks.{i}.provider", fallback.provider) for i, fallback in enumerate(agent.fallbacks)]
        for field, provider in used:
            if problem := _provider(settings, provider):
                yield f"agents.{name}.{field}: {problem}."


def _provider(settings: Settings, provider: str) -> str | None:
    kind, colon, name = provider.partition(":")
    if kind == "custom" and colon:
        return None if name in settings.custom_providers else f'custom_providers has no "{name}"'
    return unknown_provider(provider) if provider else None


def unknown_provider(name: str) -> str | None:
    """What is wrong with a provider that is no server of one's own."""
    if name in PROVIDERS:
        return None
    return f'"{name}" is not known; there are {", ".join(sorted(PROVIDERS))} and custom:NAME'


def _teams(settings: Settings) -> Iterator[str]:
    present = settings.present_agents()
    for name, team in settings.teams.items():
        if name in RESERVED:
            yield f'teams.{name}: "{name}" is a word with a meaning of its own in chats; rename the team.'
        for member in team.agents:
            if member not in present:
                yield f'teams.{name}.agents: there is no agent "{member}".'
        if team.leader_agent not in present:
            yield f'teams.{name}.leader_agent: there is no agent "{team.leader_agent}".'
        elif team.leader_agent not in team.agents:
            yield f'teams.{name}.leader_agent: "{team.leader_agent}" is not in the list of agents.'


def _places(settings: Settings) -> Iterator[str]:
    wanted = (settings.default_agent or "").lower()
    if wanted and wanted not in settings.present_agents():
        yield f'default_agent: there is no agent "{wanted}".'
    for chat, target in settings.channels.defaults.items():
        if target.lower() not in settings.present_agents() and target.lower() not in settings.teams:
            yield f'channels.defaults.{chat}: there is no agent or team "{target}".'


def _heartbeats(settings: Settings) -> Iterator[str]:
    intervals = [("monitoring.heartbeat_interval", settings.monitoring.heartbeat_interval)]
    intervals += [
        (f"agents.{name}.heartbeat.interval", agent.heartbeat.interval or 0)
        for name, agent in settings.agents.items()
    ]
    for field, seconds in intervals:
        if 0 < seconds < SHORTEST_HEARTBEAT_S:
            yield f"{field}: {seconds:g} s is too short; every {SHORTEST_HEARTBEAT_S:g} s is used."
