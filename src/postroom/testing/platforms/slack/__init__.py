"""A fake Slack: the Web API, socket mode and signed HTTP events, threads, buttons, files."""

from postroom.testing.platforms.slack.server import FakeSlack

__all__ = ["FakeSlack"]
