"""The frame of every page: login, keys, palette, themes; nothing foreign is asked or runs."""

from playwright.async_api import Browser, expect

from tests.api.house import TOKEN, House
from tests.browser.chromium import PHONE, new_context, ready
from tests.browser.conftest import OpenPage


async def test_a_browser_logs_in_with_the_token_and_out_again(house: House, browser: Browser) -> None:
    context = await new_context(browser)
    page = await context.new_page()
    await page.goto(f"{house.url}/agents")
    await expect(page).to_have_url(f"{house.url}/login")
    await page.get_by_label("Token").fill(TOKEN)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", name="Needs you")).to_be_visible()
    await ready(page)
    await page.get_by_role("button", name="Log out").click()
    await expect(page).to_have_url(f"{house.url}/login")
    await page.goto(house.url)
    await expect(page).to_have_url(f"{house.url}/login")
    await context.close()


async def test_keys_alone_lead_everywhere(open_page: OpenPage) -> None:
    page = await open_page()
    await page.keyboard.press("?")
    await expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("every comp")
    await expect(page.get_by_role("option", name="Every component")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Style")).to_be_visible()
    await ready(page)
    await page.keyboard.press("g")
    await page.keyboard.press("n")
    await expect(page.get_by_role("heading", name="Needs you")).to_be_visible()


async def test_light_and_dark_are_chosen_and_remembered(open_page: OpenPage) -> None:
    page = await open_page("/system/style", dark=True)
    paper = "() => getComputedStyle(document.documentElement).backgroundColor"
    dark = await page.evaluate(paper)
    await page.get_by_role("button", name="Light or dark").click()
    light = await page.evaluate(paper)
    assert light != dark
    await page.reload()
    assert await page.evaluate(paper) == light


async def test_a_phone_has_the_menu_behind_a_button(open_page: OpenPage) -> None:
    page = await open_page("/", PHONE)
    await expect(page.get_by_role("link", name="Insights")).to_be_hidden()
    await page.get_by_role("button", name="Menu").click()
    await expect(page.get_by_role("link", name="Insights")).to_be_visible()
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


async def test_pages_may_run_nothing_but_our_own_scripts(open_page: OpenPage, house: House) -> None:
    page = await open_page()
    answer = await page.request.get(house.url)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
