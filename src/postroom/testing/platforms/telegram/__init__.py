"""A fake Telegram: the Bot API as bots meet it, by long polling or webhook."""

from postroom.testing.platforms.telegram.server import FakeTelegram

__all__ = ["FakeTelegram"]
