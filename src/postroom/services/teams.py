"""Teams: agents that work together, with one who leads."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from postroom.office.agents import TeamExists, TeamView
from postroom.office.agents.teams import Teams
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeContext, OfficeService, require_owner, require_viewer


class TeamService(OfficeService):
    def __init__(self, context: OfficeContext) -> None:
        super().__init__(context)
        self._teams = Teams(context.file)

    async def list_all(self, caller: Caller) -> dict[str, TeamView]:
        require_viewer(caller)
        return await asyncio.to_thread(self._teams.teams)

    async def get(self, caller: Caller, team: str) -> TeamView:
        require_viewer(caller)
        return await asyncio.to_thread(self._teams.team, team)

    async def add(
        self, caller: Caller, team: str, agents: Sequence[str], *, name: str = "", leader: str = ""
    ) -> TeamView:
        """A new one; the first of its agents leads, unless another is named."""
        require_owner(caller)
        if team.lower() in await asyncio.to_thread(self._teams.teams):
            raise TeamExists(team=team.lower())
        fields = {
            "name": name or team,
            "agents": list(agents),
            "leader_agent": leader or next(iter(agents), ""),
        }
        return await self.put(caller, team, fields)

    async def put(self, caller: Caller, team: str, fields: Mapping[str, Any]) -> TeamView:
        """Adds or changes; fields that are not named stay as they are."""
        require_owner(caller)
        view, _ = await asyncio.to_thread(self._teams.put_team, team, fields)
        await self._context.apply()
        return view

    async def add_member(self, caller: Caller, team: str, agent: str) -> TeamView:
        require_owner(caller)
        view = await asyncio.to_thread(self._teams.add_member, team, agent)
        await self._context.apply()
        return view

    async def remove_member(self, caller: Caller, team: str, agent: str, *, leader: str = "") -> TeamView:
        """`leader` is who leads then, when it is the leader who goes."""
        require_owner(caller)
        view = await asyncio.to_thread(self._teams.remove_member, team, agent, leader)
        await self._context.apply()
        return view

    async def remove(self, caller: Caller, team: str) -> None:
        """Its agents stay, and what was said in its room is kept."""
        require_owner(caller)
        await asyncio.to_thread(self._teams.remove_team, team)
        await self._context.apply()
