"""A fake of the bridge to a personal WhatsApp account, with messages that are handed out once."""

from postroom.testing.platforms.whatsapp_personal.server import FakePersonalWhatsApp

__all__ = ["FakePersonalWhatsApp"]
