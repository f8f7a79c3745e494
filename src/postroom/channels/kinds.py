"""Which platforms there are: the folders beside this file that have a `KIND`, and the entry points of other
packages."""

import contextlib
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import msgspec

import postroom.channels
from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel
from postroom.errors import NotFound

GROUP = "postroom.channels"


class UnknownPlatform(NotFound):
    """There is no platform "{platform}". There are: {known}."""

    code = "UNKNOWN_PLATFORM"


class ChannelKind(msgspec.Struct, frozen=True, kw_only=True):
    """A platform: its name in settings, what it can do, and how a bot on it is made of its settings.

    `build` imports the platform's library, so that nobody pays for one that is not used.
    """

    platform: str
    label: str
    capabilities: Capabilities
    build: Callable[[str, Mapping[str, Any]], Channel]

    def load(self) -> None:
        """Imports what `build` will need; that it is missing is for `build` to say."""
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{self.build.__module__}.channel")


def find_kinds() -> dict[str, ChannelKind]:
    kinds: dict[str, ChannelKind] = {}
    for module in pkgutil.iter_modules(postroom.channels.__path__):
        if module.ispkg:
            kind = importlib.import_module(f"postroom.channels.{module.name}").KIND
            kinds[kind.platform] = kind
    for point in entry_points(group=GROUP):
        kind = point.load()
        kinds[kind.platform] = kind
    return kinds


def find_kind(platform: str) -> ChannelKind:
    kinds = find_kinds()
    if platform not in kinds:
        raise UnknownPlatform(platform=platform, known=", ".join(sorted(kinds)) or "none")
    return kinds[platform]
