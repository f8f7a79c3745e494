"""A personal account on WhatsApp, linked as a device: against WhatsApp's terms, at the owner's risk."""

import importlib.util
from collections.abc import Mapping
from typing import Any

from postroom.channels.channel import Channel
from postroom.channels.errors import ChannelMisconfigured
from postroom.channels.kinds import ChannelKind
from postroom.channels.whatsapp_personal.markup import CAPABILITIES


def build(name: str, options: Mapping[str, Any]) -> Channel:
    from postroom.channels.whatsapp_personal.channel import PersonalWhatsAppChannel

    # The bridge loads it, in a process of its own.
    if not options.get("bridge") and importlib.util.find_spec("neonize") is None:
        reason = "neonize is not installed. Install it: pip install 'postroom[whatsapp-personal]'"
        raise ChannelMisconfigured(channel=name, reason=reason)
    return PersonalWhatsAppChannel(name, options)


KIND = ChannelKind(
    platform="whatsapp_personal",
    label="WhatsApp (a personal account)",
    capabilities=CAPABILITIES,
    build=build,
)
