"""Slack, by socket mode or by signed requests to /hooks."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.channel import Channel
from postroom.channels.kinds import ChannelKind
from postroom.channels.missing_library import load_channel
from postroom.channels.slack.markup import CAPABILITIES


def build(name: str, options: Mapping[str, Any]) -> Channel:
    module = load_channel(name, "slack", "slack_sdk", "postroom.channels.slack.channel")
    return module.SlackChannel(name, options)


KIND = ChannelKind(platform="slack", label="Slack", capabilities=CAPABILITIES, build=build)
