"""Agents and teams as they are shown: what holds for them in the end, without secrets."""

from pathlib import Path
from typing import Any

import msgspec

from postroom.errors import PostroomError
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.turns.prompts import read_prompt_file
from postroom.office.workspaces import Workspace
from postroom.settings.model import Settings
from postroom.settings.secrets import masked
from postroom.settings.warnings import find_warnings


class AgentView(msgspec.Struct, frozen=True, kw_only=True):
    """`settings` is the entry as written, masked; the other fields are what follows from all settings.
    `problems` tells what will not work as it is."""

    id: str
    name: str
    provider: str
    model: str
    fallbacks: tuple[str, ...]
    working_directory: str
    configured: bool
    default: bool
    teams: tuple[str, ...]
    leads: tuple[str, ...]
    session: str
    turn_timeout_s: float
    permissions: str
    sandbox: str
    heartbeat_s: float
    budget: dict[str, float | None]
    has_system_prompt: bool
    prompt_file: str | None
    settings: dict[str, Any]
    problems: tuple[str, ...]


class TeamView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    leader_agent: str
    agents: tuple[str, ...]
    daily_usd: float | None
    settings: dict[str, Any]
    problems: tuple[str, ...]


def agent_view(
    settings: Settings, document: dict[str, Any], agent: str, user_home: Path | None = None
) -> AgentView:
    own = settings.present_agents()[agent]
    directory = OfficeDirectory.of(settings)
    provider, model = settings.choice_of(agent)
    budgets = settings.budgets
    teams = directory.teams_of(agent)
    return AgentView(
        id=agent,
        name=own.name,
        provider=provider,
        model=model,
        fallbacks=tuple(f"{other.provider} {other.model}".strip() for other in own.fallbacks),
        working_directory=str(settings.agent_directory(agent, user_home)),
        configured=agent in settings.agents,
        default=agent == directory.default,
        teams=teams,
        leads=tuple(team for team in teams if directory.leader_of(team) == agent),
        session=settings.session_scope(agent),
        turn_timeout_s=own.turn_timeout_s or settings.guards.turn_timeout_s,
        permissions=settings.permissions_of(agent),
        sandbox=settings.sandbox_of(agent),
        heartbeat_s=settings.heartbeat_s(agent),
        budget={
            "turn_usd": _first(own.budget.turn_usd, budgets.turn_usd),
            "daily_usd": _first(own.budget.daily_usd, budgets.agent_daily_usd),
        },
        has_system_prompt=bool(own.system_prompt),
        prompt_file=own.prompt_file,
        settings=_written(document, "agents", agent),
        problems=(*_about(settings, f"agents.{agent}"), *_place(settings, agent, user_home)),
    )


def team_view(settings: Settings, document: dict[str, Any], team: str) -> TeamView:
    own = settings.teams[team]
    return TeamView(
        id=team,
        name=own.name,
        leader_agent=own.leader_agent,
        agents=own.agents,
        daily_usd=_first(own.daily_usd, settings.budgets.team_daily_usd),
        settings=_written(document, "teams", team),
        problems=tuple(_about(settings, f"teams.{team}")),
    )


def _first(own: float | None, general: float | None) -> float | None:
    return general if own is None else own


def _about(settings: Settings, place: str) -> list[str]:
    return [told for told in find_warnings(settings) if told.startswith((f"{place}.", f"{place}:"))]


def _place(settings: Settings, agent: str, user_home: Path | None) -> list[str]:
    workspace = Workspace.of(settings, agent, user_home)
    own = settings.present_agents()[agent]
    try:
        workspace.check()
        if own.prompt_file:
            read_prompt_file(workspace, own.prompt_file, user_home)
    except PostroomError as error:
        return [str(error)]
    return []


def _written(document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """One entry, masked in its place: masking all of them for each would take long where there are many."""
    part = document.get(kind)
    entries = part if isinstance(part, dict) else {}
    found = next(((key, value) for key, value in entries.items() if key.lower() == name), None)
    if found is None or not isinstance(found[1], dict):
        return {}
    return masked({kind: dict([found])})[kind][found[0]]
