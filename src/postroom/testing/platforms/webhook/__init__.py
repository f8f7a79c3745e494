"""A program that talks to the office through the generic webhook channel."""

from postroom.testing.platforms.webhook.server import FakeWebhook

__all__ = ["FakeWebhook"]
