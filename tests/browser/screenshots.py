"""Pictures of the portal: a demo office, a real browser, one file for each page."""

import asyncio
import logging
import re
import sys
import tempfile
from pathlib import Path

from tests.api.house import House, opened
from tests.browser.chromium import DESKTOP, PHONE, launched, new_context
from tests.browser.demo import SCRIPT, fill

# A path, then `+dark` and `+phone` if wanted.
USUAL = ("/", "/+dark", "/+phone", "/chat?with=lead", "/floor", "/queues/default/orders")


async def take(folder: Path, wanted: list[str]) -> None:
    logging.getLogger("postroom").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as home:
        async with opened(Path(home), script=SCRIPT) as house, launched() as browser:
            await fill(house)
            await settle(house)
            for each in wanted:
                path, *kinds = each.split("+")
                size = PHONE if "phone" in kinds else DESKTOP
                context = await new_context(browser, size, dark="dark" in kinds)
                page = await context.new_page()
                await page.goto((await house.http.post("/api/login-link")).json()["url"])
                await page.goto(house.url + path)
                await page.wait_for_selector("#pulse[data-state=live]", state="attached")
                name = re.sub(r"\W+", "-", path).strip("-") or "needs-you"
                file = folder / f"{'-'.join([name, *kinds])}.png"
                await page.screenshot(path=file)
                print(file)
                await context.close()


async def settle(house: House) -> None:
    """Until only the long turn goes on; what was handed to its agent waits for it."""
    await house.until(
        "/api/queue/status", lambda counts: counts["incoming"] <= 1 and counts["completed"] >= 2
    )


if __name__ == "__main__":
    into = Path(sys.argv[1])
    into.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(into, sys.argv[2:] or list(USUAL)))
