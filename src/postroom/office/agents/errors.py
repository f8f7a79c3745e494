"""What can be wrong with a change to agents or teams. None of these changes anything."""

from postroom.errors import Conflict, NotFound


class AgentNotFound(NotFound):
    """There is no agent "{agent}". Check the spelling, or add it first."""

    code = "AGENT_NOT_FOUND"


class TeamNotFound(NotFound):
    """There is no team "{team}". Check the spelling, or add it first."""

    code = "TEAM_NOT_FOUND"


class AgentExists(Conflict):
    """There is an agent "{agent}" already. Change it, or choose another id."""

    code = "AGENT_EXISTS"


class LeadsTeams(Conflict):
    """@{agent} leads {teams}. Give the team another leader, or remove the team, then try again."""

    code = "AGENT_LEADS_TEAM"


class BackupNotFound(NotFound):
    """There is no backup "{name}" of an agent."""

    code = "BACKUP_NOT_FOUND"


class BackupUnusable(Conflict):
    """The backup "{name}" cannot be restored: {reason}."""

    code = "BACKUP_UNUSABLE"


class BackupFailed(Conflict):
    """@{agent} was not removed, because no backup could be made: {reason}."""

    code = "BACKUP_FAILED"
