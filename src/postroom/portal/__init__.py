"""The portal: the office in a browser, over the services only. It keeps nothing that a restart would lose."""

from postroom.portal.site import register

__all__ = ["register"]
