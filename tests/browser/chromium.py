"""Chromium of the system, driven by Playwright: pages that say when anything in them went wrong."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Page, Request, async_playwright, expect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = (1360, 860)
PHONE = (390, 844)
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Watched:
    """What a page must not do."""

    url: str
    problems: list[str] = field(default_factory=list)
    leaving: bool = False

    def follow(self, page: Page) -> None:
        page.on("console", lambda said: self._note(f"console: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: self._note(f"error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", self._asked)

    def _note(self, problem: str) -> None:
        if not self.leaving:
            self.problems.append(problem)

    def _failed(self, request: Request) -> None:
        # A page that is left ends what it still asked for.
        if "ERR_ABORTED" not in (request.failure or ""):
            self._note(f"failed: {request.url} {request.failure}")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob") and not request.url.startswith(self.url):
            self._note(f"asked elsewhere: {request.url}")


async def ready(page: Page) -> None:
    """The page that was led to listens to keys and buttons."""
    await expect(page.locator("html[data-ready]")).to_be_attached()


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


async def new_context(
    browser: Browser, size: tuple[int, int] = DESKTOP, *, dark: bool = False
) -> BrowserContext:
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MS)
    return context
