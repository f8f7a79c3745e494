"""The settings of the room: one JSON file, checked, changed under a lock, with secrets that never show."""

from postroom.settings.agents import Agent, CustomProvider, Fallback, Heartbeat, Team
from postroom.settings.concerns import concerns
from postroom.settings.environment import home_folder, with_environment
from postroom.settings.file import SettingsFile
from postroom.settings.model import Settings, parse
from postroom.settings.names import RESERVED, check_id, check_new_id, is_id
from postroom.settings.problems import (
    InvalidSettings,
    SecretMissing,
    SettingsBroken,
    SettingsBusy,
    SettingsUnwritable,
)
from postroom.settings.secrets import MASK, Secret, masked, reveal, unmasked

__all__ = [
    "MASK",
    "RESERVED",
    "Agent",
    "CustomProvider",
    "Fallback",
    "Heartbeat",
    "InvalidSettings",
    "Secret",
    "SecretMissing",
    "Settings",
    "SettingsBroken",
    "SettingsBusy",
    "SettingsFile",
    "SettingsUnwritable",
    "Team",
    "check_id",
    "check_new_id",
    "concerns",
    "home_folder",
    "is_id",
    "masked",
    "parse",
    "reveal",
    "unmasked",
    "with_environment",
]
