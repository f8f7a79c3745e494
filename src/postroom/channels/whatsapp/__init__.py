"""WhatsApp, by the Cloud API of Meta: messages are pushed to /hooks, answers go to the Graph API."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.channel import Channel
from postroom.channels.kinds import ChannelKind
from postroom.channels.whatsapp.markup import CAPABILITIES


def build(name: str, options: Mapping[str, Any]) -> Channel:
    from postroom.channels.whatsapp.channel import WhatsAppChannel

    return WhatsAppChannel(name, options)


KIND = ChannelKind(platform="whatsapp", label="WhatsApp", capabilities=CAPABILITIES, build=build)
