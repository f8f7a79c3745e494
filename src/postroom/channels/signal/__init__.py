"""Signal, through the daemon of signal-cli."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.channel import Channel
from postroom.channels.kinds import ChannelKind
from postroom.channels.signal.markup import CAPABILITIES


def build(name: str, options: Mapping[str, Any]) -> Channel:
    from postroom.channels.signal.channel import SignalChannel

    return SignalChannel(name, options)


KIND = ChannelKind(platform="signal", label="Signal", capabilities=CAPABILITIES, build=build)
