"""Plugins: code of others that may change texts and hear what happens, and can never stop the mail."""

from postroom.office.plugins.api import HookContext, PluginContext, PluginEvent, Transformed
from postroom.office.plugins.ledger_reader import named
from postroom.office.plugins.plugin import PluginState, PluginStatus
from postroom.office.plugins.registry import PluginRegistry, fitting

__all__ = [
    "HookContext",
    "PluginContext",
    "PluginEvent",
    "PluginRegistry",
    "PluginState",
    "PluginStatus",
    "Transformed",
    "fitting",
    "named",
]
