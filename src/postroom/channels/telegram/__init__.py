"""Telegram, by long polling or webhook."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.channel import Channel
from postroom.channels.errors import ChannelMisconfigured
from postroom.channels.kinds import ChannelKind
from postroom.channels.telegram.markup import CAPABILITIES


def build(name: str, options: Mapping[str, Any]) -> Channel:
    try:
        from postroom.channels.telegram.channel import TelegramChannel
    except ImportError as error:
        if not (error.name or "").startswith("aiogram"):
            raise
        reason = "aiogram is not installed. Install it: pip install 'postroom[telegram]'"
        raise ChannelMisconfigured(channel=name, reason=reason) from None
    return TelegramChannel(name, options)


KIND = ChannelKind(platform="telegram", label="Telegram", capabilities=CAPABILITIES, build=build)
