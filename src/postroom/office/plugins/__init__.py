"""Plugins: code of others that may change texts and hear what happens, and can never stop the mail."""

from postroom.office.plugins.api import HookContext, PluginContext, PluginEvent, Transformed
from postroom.office.plugins.desk import Plugins, fitting
from postroom.office.plugins.plugin import PluginState, PluginStatus
from postroom.office.plugins.reader import named

__all__ = [
    "HookContext",
    "PluginContext",
    "PluginEvent",
    "PluginState",
    "PluginStatus",
    "Plugins",
    "Transformed",
    "fitting",
    "named",
]
