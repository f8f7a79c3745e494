"""The settings of the room: one JSON file, checked, changed under a lock, with secrets that never show."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postroom.settings.agents import (
        AgentSettings,
        CustomProviderSettings,
        Fallback,
        Heartbeat,
        TeamSettings,
    )
    from postroom.settings.environment import with_environment
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
    from postroom.settings.paths import home_folder
    from postroom.settings.secret import Secret
    from postroom.settings.secrets import MASK, masked, reveal, unmasked
    from postroom.settings.warnings import find_warnings

# The models take long to build, and who only asks for an id or a path does not need them: a name is imported
# when somebody asks for it.
_WHERE = {
    "MASK": "secrets",
    "RESERVED": "names",
    "AgentSettings": "agents",
    "CustomProviderSettings": "agents",
    "Fallback": "agents",
    "Heartbeat": "agents",
    "InvalidSettings": "errors",
    "Secret": "secret",
    "SecretMissing": "errors",
    "Settings": "model",
    "SettingsBroken": "errors",
    "SettingsBusy": "errors",
    "SettingsFile": "file",
    "SettingsUnwritable": "errors",
    "TeamSettings": "agents",
    "check_id": "names",
    "check_new_id": "names",
    "find_warnings": "warnings",
    "home_folder": "paths",
    "is_id": "names",
    "masked": "secrets",
    "parse": "model",
    "reveal": "secrets",
    "unmasked": "secrets",
    "with_environment": "environment",
}

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


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"postroom.settings.{_WHERE[name]}"), name)
    return found
