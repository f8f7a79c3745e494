"""Which parts of the portal there are."""

from postroom.portal import dead_letters, needs_you, style
from postroom.portal.visit import PortalPart

PARTS: tuple[PortalPart, ...] = tuple(part.PART for part in (needs_you, dead_letters, style))
