"""Webhooks reach only public addresses, whatever name they hide behind."""

import asyncio
import socket
from typing import Any

import pytest

from postroom.webhooks.addresses import AddressRefused, check_url, is_public, resolve


@pytest.mark.parametrize(
    "ip",
    [
        "127.0.0.1",
        "10.0.0.8",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b:1::1",
        "64:ff9b::10.0.0.1",
    ],
)
def test_addresses_inside_are_not_public(ip: str) -> None:
    assert not is_public(ip)


@pytest.mark.parametrize("ip", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_addresses_of_the_world_are_public(ip: str) -> None:
    assert is_public(ip)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://localhost:8443/",
        "https://0/",
        "https://2130706433/",
    ],
)
async def test_an_address_inside_is_refused_however_it_is_written(url: str) -> None:
    with pytest.raises(AddressRefused):
        await resolve(url)


async def test_a_name_that_leads_inside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lookup(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", ("1.1.1.1", port)), (socket.AF_INET, 1, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", lookup)
    with pytest.raises(AddressRefused, match=r"leads to 10\.0\.0\.1"):
        await resolve("https://rebind.example.org/")


async def test_the_address_that_was_checked_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lookup(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", ("1.1.1.1", port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", lookup)
    found = await resolve("https://hooks.example.org/x")
    assert (found.ip, found.host, found.port) == ("1.1.1.1", "hooks.example.org", 443)


@pytest.mark.parametrize(
    "url",
    [
        *("http://x.org", "https://a:b@x.org", "https://x.org:99999/", "https://", "x"),
        *("https://127.0.0.1/", "https://[::1]/", "https://10.1.2.3:8443/x", "https://localhost/"),
        *("https://x .org/", "https://x.org/\r\nHost: y.org", "https://x.org/\t", "https://[::1"),
    ],
)
def test_only_plain_https_urls_are_taken(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url)
