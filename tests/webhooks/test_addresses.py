"""Webhooks reach only public addresses, whatever name they hide behind."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from postroom.webhooks.addresses import AddressRefused, check_url, is_public, networks, resolve


def leads_to(monkeypatch: pytest.MonkeyPatch, *ips: str) -> None:
    """Every name leads to these addresses."""

    def lookup(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", (ip, port)) for ip in ips]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)


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
        "fec0::1",
        "::127.0.0.1",
        "::ffff:0:10.0.0.1",
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
    leads_to(monkeypatch, "1.1.1.1", "10.0.0.1")
    with pytest.raises(AddressRefused, match="leads to an address that is not public") as refused:
        await resolve("https://rebind.example.org/")
    assert not {"1.1.1.1", "10.0.0.1"} & set(str(refused.value).split()), "nobody learns what it leads to"
    assert "10.0.0.1" not in repr(refused.value.data)


async def test_the_address_that_was_checked_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    leads_to(monkeypatch, "1.1.1.1")
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


LAN = networks(["192.168.7.0/24", "fd00:7::/64"])


async def test_networks_that_the_owner_names_may_be_led_to_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leads_to(monkeypatch, "192.168.7.20")
    for url in ("https://nas.example.org/", "http://nas.example.org:8080/", "https://192.168.7.20/"):
        assert (await resolve(url, inside=LAN)).ip == "192.168.7.20"
    for url in ("https://192.168.8.1/", "http://10.0.0.1/", "https://localhost/", "http://127.0.0.1/"):
        with pytest.raises(AddressRefused):
            check_url(url, inside=LAN)
    assert check_url("http://[fd00:7::1]/x", inside=LAN) == ("fd00:7::1", 80, False)
    leads_to(monkeypatch, "192.168.7.20", "192.168.8.1")
    with pytest.raises(AddressRefused, match="leads to an address that is not public"):
        await resolve("https://rebind.example.org/", inside=LAN)


async def test_without_tls_nothing_leaves_the_networks_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leads_to(monkeypatch, "1.1.1.1")
    with pytest.raises(AddressRefused, match="https"):
        await resolve("http://hooks.example.org/", inside=LAN)
    with pytest.raises(AddressRefused, match="https"):
        check_url("http://1.1.1.1/", inside=LAN)
    assert (await resolve("https://hooks.example.org/", inside=LAN)).secure


async def test_a_resolver_that_does_not_answer_keeps_nobody_else_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = threading.Event()

    def lookup(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        answer.wait(600)
        return [(socket.AF_INET, 1, 6, "", ("1.1.1.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    waiting = [asyncio.create_task(resolve(f"https://h{n}.example.org/")) for n in range(50)]
    try:
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
            assert await asyncio.to_thread(lambda: "read") == "read"
    finally:
        answer.set()
    assert {found.ip for found in await asyncio.gather(*waiting)} == {"1.1.1.1"}
