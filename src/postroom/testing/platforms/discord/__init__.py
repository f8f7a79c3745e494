"""A fake Discord: gateway and REST as bots meet them, with servers, threads, slash commands and buttons."""

from postroom.testing.platforms.discord.server import FakeDiscord

__all__ = ["FakeDiscord"]
