"""A fake mail provider: IMAP for what comes in, SMTP for what goes out."""

from postroom.testing.platforms.email.server import FakeMail

__all__ = ["FakeMail"]
