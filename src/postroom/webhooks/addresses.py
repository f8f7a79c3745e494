"""Where a webhook may lead: only to public addresses, looked up once and then used, so that none is swapped.

A name that leads inside the network, or to the machine itself, would let a tenant reach what it must not.
Only networks that the owner has named may be led to nevertheless, also without TLS.
"""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

from postroom.errors import Invalid

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Inside = Callable[[], Sequence[Network]]
MOST_CHARS = 2000
# All that is given to hosts of the world; the rest of IPv6 is for use inside, or for nobody.
_WORLD = ipaddress.IPv6Network("2000::/3")
# IPv4 addresses that a gateway translates; the second kind is for use inside only.
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_TRANSLATED_LOCALLY = ipaddress.IPv6Network("64:ff9b:1::/48")


class AddressRefused(Invalid):
    """The address {url} cannot be used for a webhook: {problem}."""

    code = "WEBHOOK_ADDRESS"


class AddressUnknown(Invalid):
    """The name {host} has no address at the moment."""

    code = "WEBHOOK_ADDRESS"


class ResolvedUrl(msgspec.Struct, frozen=True):
    """A URL with the network address it was found at."""

    url: str
    host: str
    port: int
    ip: str
    secure: bool


def networks(named: Iterable[str]) -> tuple[Network, ...]:
    """As the settings name them."""
    return tuple(ipaddress.ip_network(name) for name in named)


def nowhere() -> Sequence[Network]:
    return ()


def check_url(url: str, *, inside: Sequence[Network] = ()) -> tuple[str, int, bool]:
    """Host, port and whether it is HTTPS; `inside` are the networks that may be led to nevertheless."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressRefused(url=url[:200], problem="it is not a URL") from None
    if len(url) > MOST_CHARS or not parts.hostname:
        raise AddressRefused(url=url[:200], problem="it is not a URL with a host")
    if any(char <= " " or char == "\x7f" for char in url):
        raise AddressRefused(url=parts.hostname, problem="it must not hold spaces or line ends")
    secure = parts.scheme == "https"
    if not secure and not (inside and parts.scheme == "http"):
        raise AddressRefused(url=url[:200], problem="it must begin with https://")
    if parts.username or parts.password:
        raise AddressRefused(url=parts.hostname, problem="it must not hold a user or password")
    for ip in _known_ips(parts.hostname):
        if problem := _problem(ip, secure, inside):
            raise AddressRefused(url=url[:200], problem=f"{parts.hostname} {problem}")
    try:
        httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise AddressRefused(url=url[:200], problem=str(error).rstrip(".").lower()) from None
    return parts.hostname, port or (443 if secure else 80), secure


async def resolve(url: str, *, inside: Sequence[Network] = ()) -> ResolvedUrl:
    host, port, secure = check_url(url, inside=inside)
    try:
        found = await _looked_up(host, port)
    except UnicodeError:
        raise AddressRefused(url=url[:200], problem=f"{host} is no name of a host") from None
    except socket.gaierror:
        raise AddressUnknown(host=host) from None
    ips = [str(entry[4][0]) for entry in found]
    for ip in ips:
        if problem := _problem(ip, secure, inside):
            raise AddressRefused(url=url[:200], problem=f"{host} leads to an address that {problem}")
    return ResolvedUrl(url, host, port, ips[0], secure)


async def _looked_up(host: str, port: int) -> list[Any]:
    """In a thread of its own: a resolver that does not answer keeps nobody waiting, nor the server open."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def tell(found: list[Any], error: Exception | None) -> None:
        if answer.done():
            return  # nobody waits any more
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found)

    def look() -> None:
        found: list[Any] = []
        problem: Exception | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            problem = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, found, problem)

    threading.Thread(target=look, name="webhook names", daemon=True).start()
    return await answer


def _known_ips(host: str) -> tuple[str, ...]:
    """What can be told without looking it up."""
    if host == "localhost" or host.endswith(".localhost"):
        return ("127.0.0.1",)
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ()
    return (host,)


def _problem(ip: str, secure: bool, inside: Sequence[Network]) -> str | None:
    """Why an address may not be led to, if it may not."""
    address = ipaddress.ip_address(ip.partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    if any(address in network for network in inside):
        return None
    if not is_public(ip):
        return "is not public"
    return None if secure else "is public, and needs https://"


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
        elif address not in _WORLD:
            return False
    return address.is_global and not address.is_multicast
