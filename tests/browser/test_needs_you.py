"""What waits for a person is seen at once, answered in place, and is then gone everywhere."""

import asyncio

from playwright.async_api import Route, expect

from postroom.kernel.states import State
from tests.api.house import House
from tests.browser.chromium import ready
from tests.browser.conftest import OpenPage
from tests.browser.demo import OWNER


async def test_a_review_appears_by_itself_and_is_answered_with_one_click(
    open_page: OpenPage, house: House
) -> None:
    page, other = await open_page(), await open_page()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    asked = await house.deps.services.questions.ask(OWNER, "Ship **it** today?", ["ship", "wait"])
    await expect(page.get_by_text("Ship it today?")).to_be_visible()
    await expect(other.get_by_text("Ship it today?")).to_be_visible()
    await page.get_by_role("button", name="ship").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await expect(other.get_by_text("Nothing waits for you")).to_be_visible()
    assert (await house.room.get(asked)).result == {"decision": "ship"}


async def test_what_happens_before_a_page_listens_appears_on_it(open_page: OpenPage, house: House) -> None:
    page = await open_page()
    asked = asyncio.Event()

    async def hold(route: Route) -> None:
        await asked.wait()
        await route.continue_()

    await page.route("**/portal/pulse*", hold)
    await page.reload()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await house.deps.services.questions.ask(OWNER, "Ship it today?", ["ship", "wait"])
    asked.set()
    await expect(page.get_by_text("Ship it today?")).to_be_visible()


async def test_keys_alone_answer_a_review(open_page: OpenPage, house: House) -> None:
    asked = await house.deps.services.questions.ask(OWNER, "Which?", ["red", "blue"])
    page = await open_page()
    await page.keyboard.press("j")
    await page.keyboard.press("2")
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    assert (await house.room.get(asked)).result == {"decision": "blue"}


async def test_dead_letters_of_one_cause_are_one_thing_and_retried_together(
    open_page: OpenPage, house: House
) -> None:
    await house.room.create_queue("orders", max_retries=0)
    ids = [(await house.room.publish("orders", {"order": n})).id for n in range(3)]
    for claimed in await house.room.claim("orders", limit=3):
        await house.room.fail(claimed, "The bank was closed.")
    page = await open_page()
    await expect(page.get_by_text("3 messages died in default/orders")).to_be_visible()
    await page.get_by_role("link", name="Open the message").click()
    await expect(page.locator(".story")).to_contain_text("The bank was closed.")
    await page.go_back()
    await ready(page)
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    assert {(await house.room.get(each)).state for each in ids} == {State.PENDING}


async def test_giving_up_asks_first(open_page: OpenPage, house: House) -> None:
    await house.room.create_queue("orders", max_retries=0)
    lost = (await house.room.publish("orders", {"order": 1})).id
    for claimed in await house.room.claim("orders"):
        await house.room.fail(claimed, "The bank was closed.")
    page = await open_page()
    await page.get_by_role("button", name="Give up").click()
    await page.get_by_role("button", name="Cancel").click()
    assert (await house.room.get(lost)).state is State.DEAD
    await page.get_by_role("button", name="Give up").click()
    await page.locator("#confirm").get_by_role("button", name="Give up").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    assert (await house.room.get(lost)).state is State.CANCELLED


async def test_a_script_in_a_question_is_text(open_page: OpenPage, house: House) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>[x](javascript:alert(3))"
    await house.deps.services.questions.ask(OWNER, evil, ["<b>yes</b>", "no"])
    page = await open_page()
    page.on("dialog", lambda dialog: (_ for _ in ()).throw(AssertionError(dialog.message)))
    await expect(page.get_by_text("<script>alert(2)</script>")).to_be_visible()
    assert await page.locator("main script, main img, main a[href^=javascript]").count() == 0
    await page.get_by_role("button", name="<b>yes</b>").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
