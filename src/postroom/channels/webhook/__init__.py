"""Any other program: it posts messages to /hooks, and answers are posted to it, signed both ways."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel
from postroom.channels.kinds import ChannelKind

CAPABILITIES = Capabilities(
    text_limit=100_000,
    buttons=20,
    button_chars=200,
    threads=True,
    replies=True,
    file_bytes=10 * 1024 * 1024,
    # Whoever receives answers drops those whose id came before.
    repeatable=True,
)


def build(name: str, options: Mapping[str, Any]) -> Channel:
    from postroom.channels.webhook.channel import WebhookChannel

    return WebhookChannel(name, options)


KIND = ChannelKind(platform="webhook", label="Webhook", capabilities=CAPABILITIES, build=build)
