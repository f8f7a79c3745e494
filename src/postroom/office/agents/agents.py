"""The agents of a room: shown, added, changed and removed. Command line, API and portal all call this.

Every change is one locked, whole write of the settings; one that is refused has changed nothing.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from postroom.clock import Clock, SystemClock
from postroom.errors import InvalidField
from postroom.office.agents import backups as departures
from postroom.office.agents.backups import Backup
from postroom.office.agents.entries import Document, Entry, check_fields, entries, folded, key_of, merged
from postroom.office.agents.errors import AgentExists, AgentNotFound, LeadsTeams
from postroom.office.agents.teams import Teams
from postroom.office.agents.views import AgentView, agent_view
from postroom.office.turns.prompts import Prompt, brief, read_prompt_file
from postroom.office.turns.sections import harmless
from postroom.office.workspaces import Workspace, WorkspaceRefused
from postroom.settings.agents import AgentSettings
from postroom.settings.file import SettingsFile
from postroom.settings.model import Settings, parse
from postroom.settings.names import check_new_id
from postroom.settings.part import fields_of
from postroom.settings.warnings import find_warnings

FIELDS = tuple(fields_of(AgentSettings))
# Folders of the room that no agent may work in: what lies there is run, sent or restored later.
CLOSED = ("plugins", "backups", "files", "logs", "lake", "run", "secrets")
# Nobody's working folder, with all in them; and those that are fine only further in.
SYSTEM_FOLDERS = tuple(
    Path("/", name) for name in ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr")
)
OUTER_FOLDERS = frozenset(
    Path("/", name) for name in ("home", "mnt", "opt", "root", "run", "srv", "tmp", "var")
)


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that was removed. `workspace` tells what became of its folder: `moved` into the backup, `kept`
    where it is (then `why` says so), or `none`."""

    agent: str
    backup: str
    left: tuple[str, ...]
    workspace: str
    why: str = ""


class Staff(Teams):
    """`home` is the room's own folder. `user_home` is what `~` stands for."""

    def __init__(
        self,
        file: SettingsFile,
        home: Path,
        *,
        user_home: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(file)
        self._home = home
        self._user_home = user_home
        self._clock = clock or SystemClock()

    # reading

    def agents(self) -> dict[str, AgentView]:
        settings, document = self._file.load(), self._file.document()
        return {agent: self._view(settings, document, agent) for agent in settings.present_agents()}

    def agent(self, agent: str) -> AgentView:
        settings, agent = self._file.load(), folded("agent", agent)
        if agent not in settings.present_agents():
            raise AgentNotFound(agent=agent)
        return self._view(settings, self._file.document(), agent)

    def workspace(self, agent: str) -> Workspace:
        settings, agent = self._file.load(), folded("agent", agent)
        if agent not in settings.present_agents():
            raise AgentNotFound(agent=agent)
        return Workspace.of(settings, agent, self._user_home)

    def prompt(self, agent: str) -> Prompt:
        """The system prompt the agent would get now; its workspace is put in order for it."""
        agent = self.agent(agent).id
        return brief(self._file.load(), agent, self._user_home)

    # changing

    def add_agent(
        self,
        agent: str,
        fields: Mapping[str, Any] | None = None,
        *,
        force: bool = False,
        prepares: bool = True,
    ) -> AgentView:
        """A new agent, with its workspace unless that is made elsewhere; `force` it into a folder of the
        system."""
        rules = {"may_exist": False, "must_exist": False, "force": force, "prepares": prepares}
        return self._store(agent, fields or {}, **rules)[0]

    def change_agent(self, agent: str, changes: Mapping[str, Any], *, force: bool = False) -> AgentView:
        """Only the fields named; a null goes back to the default."""
        return self._store(folded("agent", agent), changes, may_exist=True, must_exist=True, force=force)[0]

    def put_agent(self, agent: str, fields: Mapping[str, Any]) -> tuple[AgentView, bool]:
        """Adds or changes, and tells whether it was added. Fields that are not named stay."""
        return self._store(agent, fields, may_exist=True, must_exist=False)

    def remove_agent(self, agent: str, *, keep_workspace: bool = False) -> Removed:
        """Takes the agent out of settings and teams, and its folder away: both go into a backup first."""
        agent = folded("agent", agent)
        made: list[Backup] = []
        before: list[Settings] = []

        def discard() -> None:
            while made:
                departures.discard(self._home, made.pop())

        def change(document: Document) -> None:
            discard()  # of settings that others changed meanwhile
            settings = parse(document, self._file.path)
            before.append(settings)
            part = entries(document, "agents")
            key = key_of(part, agent)
            if key is None:
                raise AgentNotFound(agent=agent)
            leads = [team for team, found in settings.teams.items() if found.leader_agent == agent]
            if leads:
                raise LeadsTeams(agent=agent, teams=", ".join(f"#{team}" for team in leads))
            left = [team for team, found in settings.teams.items() if agent in found.agents]
            default = (settings.default_agent or "").lower() == agent
            backup = Backup(
                agent=agent,
                entry=part[key],
                key=key,
                teams=tuple(left),
                default=default,
                directory=str(settings.agent_directory(agent, self._user_home)),
                removed_at=self._clock.now(),
            )
            made.append(departures.keep(self._home, backup))
            del part[key]
            if default:
                document.pop("default_agent", None)
            for team, entry in entries(document, "teams").items():
                if team.lower() in left:
                    entry["agents"] = [name for name in entry["agents"] if name.lower() != agent]

        try:
            self._file.update(change)
        except BaseException:
            discard()
            raise
        backup = made[0]
        why = "it was asked for" if keep_workspace else self._why_kept(before[-1], agent)
        moved, why = (False, why) if why else departures.move_workspace(self._home, backup)
        there = os.path.lexists(backup.directory)
        state = "moved" if moved else "kept" if there else "none"
        return Removed(
            agent=agent,
            backup=backup.name,
            left=backup.teams,
            workspace=state,
            why=why if state == "kept" else "",
        )

    def backups(self) -> list[Backup]:
        return departures.kept(self._home)

    def restore_agent(self, name: str) -> AgentView:
        """An agent back from a backup, with its workspace and its teams. The backup stays."""
        backup = departures.find(self._home, name)

        def change(document: Document) -> None:
            self._check_free(document, backup.agent)
            entries(document, "agents")[backup.key] = backup.entry
            for team, entry in entries(document, "teams").items():
                members = list(entry.get("agents") or ())
                if team.lower() in backup.teams and backup.agent not in [name.lower() for name in members]:
                    entry["agents"] = [*members, backup.agent]
            if backup.default and not document.get("default_agent"):
                document["default_agent"] = backup.agent

        # Tried on a copy first: copying a workspace may take long, and is not done under the lock.
        tried = self._file.document()
        change(tried)
        settings = parse(tried, self._file.path)
        workspace = Workspace.of(settings, backup.agent, self._user_home)
        workspace.check()
        self._check_folder(settings, workspace)
        take_back = departures.copy_workspace(self._home, backup, workspace.root)
        try:
            self._file.update(change)
        except BaseException:
            take_back()
            raise
        return self.agent(backup.agent)

    def _store(
        self,
        agent: str,
        fields: Mapping[str, Any],
        *,
        may_exist: bool,
        must_exist: bool,
        force: bool = False,
        prepares: bool = True,
    ) -> tuple[AgentView, bool]:
        added: list[bool] = []
        small = folded("agent", agent)

        def change(document: Document) -> None:
            settings = parse(document, self._file.path)
            part = entries(document, "agents")
            key = key_of(part, small)
            if key is None and must_exist:
                if agent not in settings.present_agents():
                    raise AgentNotFound(agent=agent)
                # The one agent of a room without any becomes one of its own.
                part[agent] = settings.present_agents()[agent].changed()
                key = agent
            elif key is None:
                self._check_free(document, agent)
            elif not may_exist:
                raise AgentExists(agent=key.lower())
            entry: Entry = part.get(key or agent) or {}
            check_fields("agent", fields, FIELDS, entry)
            part[key or agent] = merged(entry, fields)
            self._check(parse(document, self._file.path), small, fields, force=force)
            added.append(key is None)

        settings = self._file.update(change)
        if added[-1] and prepares:
            brief(settings, small, self._user_home)
        return self._view(settings, self._file.document(), small), added[-1]

    def _check_free(self, document: Document, agent: str) -> None:
        if key_of(entries(document, "agents"), agent):
            raise AgentExists(agent=agent)
        check_new_id("agent", agent, {key.lower() for key in entries(document, "teams")})

    def _check(self, settings: Settings, agent: str, fields: Mapping[str, Any], *, force: bool) -> None:
        if {"provider", "fallbacks"} & set(fields):
            for told in find_warnings(settings):
                field, _, problem = told.partition(": ")
                if field.startswith((f"agents.{agent}.provider", f"agents.{agent}.fallbacks")):
                    raise InvalidField(field, problem.rstrip("."))
        name = settings.agents[agent].name
        if name != harmless(name):
            raise InvalidField("agent.name", "must be one short line")
        workspace = Workspace.of(settings, agent, self._user_home)
        workspace.check()
        if fields.get("working_directory") and not force:
            _check_system_folders(workspace)
        self._check_folder(settings, workspace)
        if fields.get("prompt_file"):
            read_prompt_file(workspace, fields["prompt_file"], self._user_home)

    def _check_folder(self, settings: Settings, workspace: Workspace) -> None:
        real, home = (Path(os.path.realpath(path)) for path in (workspace.root, self._home))
        if real == home or real in home.parents:
            raise _refused(workspace, "the room's own folder is in it")
        for name in CLOSED:
            if home / name in (real, *real.parents):
                raise _refused(workspace, f"the room keeps its {name} there")
        for other in settings.present_agents():
            if other == workspace.agent:
                continue
            if Path(os.path.realpath(settings.agent_directory(other, self._user_home))) == real:
                raise _refused(workspace, f"@{other} works there, and each agent needs a folder of its own")

    def _why_kept(self, settings: Settings, agent: str) -> str:
        workspace = Workspace.of(settings, agent, self._user_home)
        if workspace.chosen:
            return "it lies outside the folder of the agents, so it is yours"
        if workspace.root.is_symlink():
            return "it is a link"
        for other in settings.present_agents():
            place = settings.agent_directory(other, self._user_home)
            if other != agent and workspace.root in (place, *place.parents):
                return f"@{other} works in it too"
        try:
            workspace.check()
        except WorkspaceRefused as error:
            return str(error)
        return ""

    def _view(self, settings: Settings, document: Document, agent: str) -> AgentView:
        return agent_view(settings, document, agent, self._user_home)


def _check_system_folders(workspace: Workspace) -> None:
    """Nobody types them for an agent by mistake and keeps the machine; who means it says --force."""
    real = Path(os.path.realpath(workspace.root))
    if any(real.is_relative_to(folder) for folder in SYSTEM_FOLDERS) or real in OUTER_FOLDERS:
        raise _refused(workspace, "it is a folder of the system; to use it all the same: --force")


def _refused(workspace: Workspace, reason: str) -> WorkspaceRefused:
    return WorkspaceRefused(path=str(workspace.root), reason=f"{reason}; name another working_directory")
