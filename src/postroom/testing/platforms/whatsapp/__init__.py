"""A fake WhatsApp: the Cloud API with its media, templates and 24-hour window, and the webhooks it signs."""

from postroom.testing.platforms.whatsapp.server import FakeWhatsApp

__all__ = ["FakeWhatsApp"]
