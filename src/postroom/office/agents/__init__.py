"""Agents and teams as people manage them: what command line, API and portal call."""

from postroom.office.agents.agents import Removed, Staff
from postroom.office.agents.backups import Backup
from postroom.office.agents.errors import (
    AgentExists,
    AgentNotFound,
    BackupFailed,
    BackupNotFound,
    BackupUnusable,
    LeadsTeams,
    TeamExists,
    TeamNotFound,
)
from postroom.office.agents.views import AgentView, TeamView

__all__ = [
    "AgentExists",
    "AgentNotFound",
    "AgentView",
    "Backup",
    "BackupFailed",
    "BackupNotFound",
    "BackupUnusable",
    "LeadsTeams",
    "Removed",
    "Staff",
    "TeamExists",
    "TeamNotFound",
    "TeamView",
]
