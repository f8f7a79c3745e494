"""E-mail: a mailbox is read by IMAP, and answered by SMTP, thread by thread."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel
from postroom.channels.kinds import ChannelKind
from postroom.channels.missing_library import load_channel

CAPABILITIES = Capabilities(
    text_limit=200_000, markup=True, threads=True, replies=True, file_bytes=15 * 1024 * 1024
)


def build(name: str, options: Mapping[str, Any]) -> Channel:
    for library in ("imap_tools", "aiosmtplib"):
        load_channel(name, "email", library, library)
    module = load_channel(name, "email", "imap_tools", "postroom.channels.email.channel")
    return module.EmailChannel(name, options)


KIND = ChannelKind(platform="email", label="E-mail", capabilities=CAPABILITIES, build=build)
