"""The few pages the API itself has: logging in, and a small front page until the portal is open."""

from postroom.portal.routes import register

__all__ = ["register"]
