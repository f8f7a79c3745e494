from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.api.house import House, opened
from tests.browser.chromium import CHROMIUM, DESKTOP, Watched, launched, new_context
from tests.browser.demo import SCRIPT

OpenPage = Callable[..., Awaitable[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            # One browser at a time: two of them would only wait for each other.
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            if not CHROMIUM:
                item.add_marker(pytest.mark.skip(reason="no Chromium here; apt install chromium"))


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path, script=SCRIPT) as house:
        yield house


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(house: House, browser: Browser) -> AsyncIterator[OpenPage]:
    """Opens a page of a browser that is logged in. Whatever goes wrong in one fails the test."""
    watched: list[Watched] = []

    async def open_one(path: str = "/", size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> Page:
        context = await new_context(browser, size, dark=dark)
        page = await context.new_page()
        seen = Watched(house.url)
        watched.append(seen)
        seen.follow(page)
        await page.goto((await house.http.post("/api/login-link")).json()["url"])
        if path != "/":
            await page.goto(house.url + path)
        return page

    yield open_one
    problems = [problem for seen in watched for problem in seen.problems]
    for seen in watched:
        seen.leaving = True
    for context in browser.contexts:
        await context.close()
    assert problems == []
