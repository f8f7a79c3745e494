"""Where a webhook may lead: only to public addresses, looked up once and then used, so that none is swapped.

A name that leads inside the house (or to the machine itself) would let a tenant reach what it must not.
"""

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

import httpx2
import msgspec

from postroom.errors import Invalid

MOST_CHARS = 2000
# IPv4 addresses that a gateway translates; the second kind is for use inside only.
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_TRANSLATED_LOCALLY = ipaddress.IPv6Network("64:ff9b:1::/48")


class AddressRefused(Invalid):
    """The address {url} cannot be used for a webhook: {problem}."""

    code = "WEBHOOK_ADDRESS"


class AddressUnknown(Invalid):
    """The name {host} has no address at the moment."""

    code = "WEBHOOK_ADDRESS"


class Address(msgspec.Struct, frozen=True):
    """A URL with the network address it was found at."""

    url: str
    host: str
    port: int
    ip: str
    secure: bool


def check_url(url: str, *, private: bool = False) -> tuple[str, int, bool]:
    """Host, port and whether it is HTTPS; `private` is for tests and closed networks."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressRefused(url=url[:200], problem="it is not a URL") from None
    if len(url) > MOST_CHARS or not parts.hostname:
        raise AddressRefused(url=url[:200], problem="it is not a URL with a host")
    if any(char <= " " or char == "\x7f" for char in url):
        raise AddressRefused(url=parts.hostname, problem="it must not hold spaces or line ends")
    if parts.scheme != "https" and not (private and parts.scheme == "http"):
        raise AddressRefused(url=url[:200], problem="it must begin with https://")
    if parts.username or parts.password:
        raise AddressRefused(url=parts.hostname, problem="it must not hold a user or password")
    if not private and _is_inside(parts.hostname):
        raise AddressRefused(url=url[:200], problem=f"{parts.hostname} is not public")
    try:
        httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise AddressRefused(url=url[:200], problem=str(error).rstrip(".").lower()) from None
    secure = parts.scheme == "https"
    return parts.hostname, port or (443 if secure else 80), secure


async def resolve(url: str, *, private: bool = False) -> Address:
    host, port, secure = check_url(url, private=private)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressRefused(url=url[:200], problem=f"{host} is no name of a host") from None
    except socket.gaierror:
        raise AddressUnknown(host=host) from None
    ips = [str(entry[4][0]) for entry in found]
    for ip in ips:
        if not private and not is_public(ip):
            raise AddressRefused(url=url[:200], problem=f"{host} leads to {ip}, which is not public")
    return Address(url, host, port, ips[0], secure)


def _is_inside(host: str) -> bool:
    """What can be told without looking it up."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not is_public(host)
    except ValueError:
        return False


def is_public(ip: str) -> bool:
    address = ipaddress.ip_address(ip.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address in _TRANSLATED:
            return is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
        if address in _TRANSLATED_LOCALLY:
            return False
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is not None:
            address = inner
    return address.is_global and not address.is_multicast
