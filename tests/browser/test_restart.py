"""A page that is open while the server goes away and comes back is whole again without a hand."""

import asyncio
import contextlib
import os
import socket
from pathlib import Path

from playwright.async_api import Browser, expect

from tests.app.house_process import HouseProcess
from tests.browser.chromium import new_context, ready


def free_port() -> int:
    """Below those that the system gives away by itself, so that nobody takes it while the server is gone."""
    for port in range(20_000 + os.getpid() % 5000, 32_000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


async def test_an_open_page_survives_a_killed_server(tmp_path: Path, browser: Browser) -> None:
    house = HouseProcess(tmp_path, api={"port": free_port()})
    await asyncio.to_thread(house.start)
    try:
        context = await new_context(browser)
        page = await context.new_page()
        await page.goto(f"{house.url}/login")
        await page.get_by_label("Token").fill(house.home.token.read_text().strip())
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("#pulse")).to_have_attribute("data-state", "live")
        await ready(page)
        await asyncio.to_thread(house.kill)
        await expect(page.locator("#pulse")).to_have_attribute("data-state", "lost")
        await asyncio.to_thread(house.start)
        await expect(page.locator("#pulse")).to_have_attribute("data-state", "live")
        await asyncio.to_thread(house.cli, "guards", "pause-all")
        await expect(page.get_by_text("Everybody is paused")).to_be_visible()
        await context.close()
    finally:
        await asyncio.to_thread(house.cli, "stop")
