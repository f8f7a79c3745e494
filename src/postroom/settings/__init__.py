"""The settings of the room: one JSON file, checked, changed under a lock, with secrets that never show."""

from postroom.settings.agents import AgentSettings, CustomProviderSettings, Fallback, Heartbeat, TeamSettings
from postroom.settings.environment import home_folder, with_environment
from postroom.settings.errors import (
    InvalidSettings,
    SecretMissing,
    SettingsBroken,
    SettingsBusy,
    SettingsUnwritable,
)
from postroom.settings.file import SettingsFile
from postroom.settings.model import Settings, parse
from postroom.settings.names import RESERVED, check_id, check_new_id, is_id
from postroom.settings.secrets import MASK, Secret, masked, reveal, unmasked
from postroom.settings.warnings import find_warnings

__all__ = [
    "MASK",
    "RESERVED",
    "AgentSettings",
    "CustomProviderSettings",
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
    "TeamSettings",
    "check_id",
    "check_new_id",
    "find_warnings",
    "home_folder",
    "is_id",
    "masked",
    "parse",
    "reveal",
    "unmasked",
    "with_environment",
]
