"""By which names this office may be called, and which pages may call it.

A web page that makes its own name lead to 127.0.0.1 still sends that name as the host, so a name that is not
ours is never served.
"""

import ipaddress
import re

from postroom.settings.sections import ApiSettings

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?")


def is_loopback(address: str | None) -> bool:
    """Whether an address or name is this machine itself and nothing else."""
    if address == "localhost":
        return True
    try:
        found = ipaddress.ip_address((address or "").strip("[]"))
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


class AllowedHosts:
    def __init__(self, api: ApiSettings) -> None:
        bound = f"[{api.host}]" if ":" in api.host else api.host
        everywhere = bound in ("0.0.0.0", "[::]")
        self._hosts = LOCAL | set(api.hosts) | (set() if everywhere else {bound.lower()})
        self._origins = frozenset(api.origins)

    def knows(self, host: str) -> bool:
        match = _HOST.fullmatch(host.lower())
        return match is not None and match[1] in self._hosts

    def is_own(self, origin: str, host: str) -> bool:
        """Whether a page of this very office asks, as it was called."""
        return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")

    def admits(self, origin: str) -> bool:
        return origin.lower() in self._origins
