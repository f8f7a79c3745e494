"""What can be wrong with a change to agents or teams. None of these changes anything."""

from postroom.errors import Conflict, Invalid, NotFound


class AgentNotFound(NotFound):
    """There is no agent "{agent}". Check the spelling, or add it first."""

    code = "AGENT_NOT_FOUND"


class TeamNotFound(NotFound):
    """There is no team "{team}". Check the spelling, or add it first."""

    code = "TEAM_NOT_FOUND"


class AgentExists(Conflict):
    """There is an agent "{agent}" already. To change it: postroom agent set {agent}, or postroom settings
    set agents.{agent}.NAME VALUE"""

    code = "AGENT_EXISTS"


class TeamExists(Conflict):
    """There is a team "{team}" already. To change it: postroom team add-agent"""

    code = "TEAM_EXISTS"


class NotInTeam(Invalid):
    """@{agent} is not in #{team}. Nothing was changed."""

    code = "AGENT_NOT_IN_TEAM"


class LeaderNeeded(Invalid):
    """@{agent} leads #{team}; say who leads then: --leader NAME"""

    code = "LEADER_NEEDED"


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
