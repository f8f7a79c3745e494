"""The teams of a room: shown, added, changed and removed, with members that exist and a leader among them."""

from collections.abc import Mapping
from typing import Any

from postroom.errors import InvalidField
from postroom.office.agents.entries import Document, Entry, check_fields, entries, folded, key_of, merged
from postroom.office.agents.problems import TeamExists, TeamNotFound
from postroom.office.agents.views import TeamView, team_view
from postroom.settings.agents import Team
from postroom.settings.file import SettingsFile
from postroom.settings.model import parse
from postroom.settings.names import check_new_id

FIELDS = tuple(Team.model_fields)


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

    def add_team(self, team: str, fields: Mapping[str, Any]) -> TeamView:
        """A new team; without a leader named, the first member leads."""
        return self._store_team(team, fields, may_exist=False, must_exist=False)[0]

    def change_team(self, team: str, changes: Mapping[str, Any]) -> TeamView:
        return self._store_team(folded("team", team), changes, may_exist=True, must_exist=True)[0]

    def put_team(self, team: str, fields: Mapping[str, Any]) -> tuple[TeamView, bool]:
        return self._store_team(team, fields, may_exist=True, must_exist=False)

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

    def _store_team(
        self, team: str, fields: Mapping[str, Any], *, may_exist: bool, must_exist: bool
    ) -> tuple[TeamView, bool]:
        added: list[bool] = []
        small = folded("team", team)

        def change(document: Document) -> None:
            settings = parse(document, self._file.path)
            part = entries(document, "teams")
            key = key_of(part, small)
            if key is None and must_exist:
                raise TeamNotFound(team=team)
            if key is None:
                check_new_id("team", team, {*settings.present_agents()})
            elif not may_exist:
                raise TeamExists(team=key.lower())
            entry: Entry = part.get(key or team) or {}
            check_fields("team", fields, FIELDS, entry)
            changed = merged(entry, fields)
            _check(changed, set(settings.present_agents()))
            part[key or team] = changed
            added.append(key is None)

        settings = self._file.update(change)
        return team_view(settings, self._file.document(), small), added[-1]


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
