"""The teams of a room: shown, added, changed and removed, with members that exist and a leader among them."""

from collections.abc import Callable, Mapping
from typing import Any

from postroom.errors import InvalidField
from postroom.office.agents.entries import Document, Entry, check_fields, entries, folded, key_of, merged
from postroom.office.agents.errors import LeaderNeeded, NotInTeam, TeamNotFound
from postroom.office.agents.views import TeamView, team_view
from postroom.settings.agents import TeamSettings
from postroom.settings.file import SettingsFile
from postroom.settings.model import parse
from postroom.settings.names import check_new_id
from postroom.settings.part import fields_of

FIELDS = tuple(fields_of(TeamSettings))


class Teams:
    def __init__(self, file: SettingsFile) -> None:
        self._file = file

    def teams(self) -> dict[str, TeamView]:
        settings, document = self._file.load(), self._file.document()
        return {team: team_view(settings, document, team) for team in settings.teams}

    def team(self, team: str) -> TeamView:
        settings, team = self._file.load(), folded("team", team)
        if team not in settings.teams:
            raise TeamNotFound(team=team)
        return team_view(settings, self._file.document(), team)

    def put_team(self, team: str, fields: Mapping[str, Any]) -> tuple[TeamView, bool]:
        """Adds or changes, and tells whether it was added. Fields that are not named stay; without a leader
        named, the first member of a new team leads."""
        added: list[bool] = []
        small = folded("team", team)

        def change(document: Document) -> None:
            settings = parse(document, self._file.path)
            part = entries(document, "teams")
            key = key_of(part, small)
            if key is None:
                check_new_id("team", team, {*settings.present_agents()})
            entry: Entry = part.get(key or team) or {}
            check_fields("team", fields, FIELDS, entry)
            changed = merged(entry, fields)
            _check(changed, set(settings.present_agents()))
            part[key or team] = changed
            added.append(key is None)

        settings = self._file.update(change)
        return team_view(settings, self._file.document(), small), added[-1]

    def add_member(self, team: str, agent: str) -> TeamView:
        return self._change_members(team, lambda entry: [*entry["agents"], folded("agent", agent)])

    def remove_member(self, team: str, agent: str, leader: str = "") -> TeamView:
        """`leader` is who leads then."""
        agent = folded("agent", agent)

        def left(entry: Entry) -> list[str]:
            members = [name for name in entry["agents"] if name.lower() != agent]
            if len(members) == len(entry["agents"]):
                raise NotInTeam(agent=agent, team=team)
            entry["leader_agent"] = leader or entry.get("leader_agent")
            if (entry["leader_agent"] or "").lower() == agent:
                raise LeaderNeeded(agent=agent, team=team)
            return members

        return self._change_members(team, left)

    def _change_members(self, team: str, change_members: Callable[[Entry], list[str]]) -> TeamView:
        """Under the lock, so that of two changes at once neither undoes the other."""
        small = folded("team", team)

        def change(document: Document) -> None:
            settings = parse(document, self._file.path)
            part = entries(document, "teams")
            key = key_of(part, small)
            if key is None:
                raise TeamNotFound(team=small)
            entry = part[key]
            entry["agents"] = list(dict.fromkeys(change_members(entry)))
            _check(entry, set(settings.present_agents()))

        settings = self._file.update(change)
        return team_view(settings, self._file.document(), small)

    def remove_team(self, team: str) -> None:
        """Its agents stay. What was said in its room stays in the room's queue."""
        team = folded("team", team)

        def change(document: Document) -> None:
            part = entries(document, "teams")
            key = key_of(part, team)
            if key is None:
                raise TeamNotFound(team=team)
            del part[key]

        self._file.update(change)


def _check(entry: Entry, present: set[str]) -> None:
    """Completes the leader, and refuses members that are not there."""
    given = entry.get("agents")
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise InvalidField("team.agents", "must be a list of ids of agents")
    members = list(dict.fromkeys(name.lower() for name in given))
    if not members:
        raise InvalidField("team.agents", "must name one agent at least")
    for member in members:
        if member not in present:
            raise InvalidField("team.agents", f'there is no agent "{member}"; add it first')
    leader = entry.get("leader_agent") or members[0]
    if not isinstance(leader, str) or leader.lower() not in members:
        raise InvalidField("team.leader_agent", f'"{leader}" is not in the list of agents; add it there')
    entry["agents"] = members
    entry["leader_agent"] = leader.lower()
