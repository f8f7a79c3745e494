"""Plugins for tests: written as files, opened as an office opens them."""

import textwrap
from pathlib import Path
from typing import Any

from postroom.office.plugins import PluginRegistry, PluginState, PluginStatus
from postroom.settings.sections import PluginSettings


def write(home: Path, name: str, source: str) -> Path:
    path = home / "plugins" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return path


async def opened(home: Path, *allowed: str, load_s: float = 10, **settings: Any) -> PluginRegistry:
    chosen = PluginSettings(allowed=allowed, **{"timeout_s": 10, "failures": 3, **settings})
    plugins = PluginRegistry()
    await plugins.load(chosen, home, load_s=load_s)
    return plugins


def status(plugins: PluginRegistry, name: str) -> PluginStatus:
    (found,) = [status for status in plugins.statuses() if status.name == name]
    return found


def states(plugins: PluginRegistry) -> dict[str, PluginState]:
    return {status.name: status.state for status in plugins.statuses()}
