"""Every page opens on a desk and on a phone, can be used by everybody, and does what it is for."""

from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from postroom.kernel.states import State
from postroom.services.conversations import Draft
from tests.api.house import House
from tests.browser.chromium import DESKTOP, PHONE, new_context, ready
from tests.browser.conftest import OpenPage
from tests.browser.demo import OWNER, fill
from tests.services.office.test_backups import flip_a_byte

PAGES = {
    "/": "Needs you",
    "/floor": "The floor",
    "/chat?with=lead": "Lead",
    "/chat?room=dev": "# Dev",
    "/conversations": "Conversations",
    "/tasks": "Tasks",
    "/schedules": "Schedules",
    "/queues": "Queues",
    "/queues/dead": "Dead letters",
    "/queues/default/orders": "default/orders",
    "/insights": "Insights",
    "/agents": "Agents and teams",
    "/agents/coder": "Coder",
    "/memory": "Memory",
    "/channels": "Channels",
    "/rules": "Rules",
    "/providers": "Providers",
    "/access": "Keys and access",
    "/audit": "Audit",
    "/events": "Events and logs",
    "/settings": "Settings",
    "/settings?view=json": "Settings",
    "/setup": "Set up",
    "/system": "System",
    "/system/style": "Style",
    "/docs": "API",
}


async def fits(page: Page) -> bool:
    return await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth + 1")


async def test_every_page_opens_on_a_desk_and_on_a_phone(open_page: OpenPage, house: House) -> None:
    await fill(house)
    desk, phone = await open_page(), await open_page("/", PHONE)
    wide: list[str] = []
    for path, title in PAGES.items():
        for page in (desk, phone):
            answer = await page.goto(house.url + path)
            assert answer is not None
            assert answer.status == 200, path
            await expect(page.get_by_role("heading", name=title, exact=True).first).to_be_visible()
            if not await fits(page):
                wide.append(path)
    assert wide == [], "wider than their windows"


@pytest.mark.parametrize("dark", [False, True])
async def test_nothing_keeps_people_from_using_a_page(open_page: OpenPage, house: House, dark: bool) -> None:
    await fill(house)
    page = await open_page(dark=dark)
    found: dict[str, list[str]] = {}
    # In the dark only colours differ, and few pages have them all.
    few = ("/", "/chat?with=lead", "/queues/default/orders", "/system/style")
    for path in few if dark else PAGES:
        await page.goto(house.url + path)
        results = await Axe().run(page)
        broken = [
            f"{each['id']}: {node['html'][:160]}"
            for each in results.response["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]
        if broken:
            found[path] = broken
    assert found == {}


async def test_a_chat_shows_the_answer_whole_with_its_cost_and_leads_to_its_trace(
    open_page: OpenPage, house: House
) -> None:
    page = await open_page("/chat?with=lead")
    await page.get_by_label("Write to @lead").fill("Is the release ready?")
    await page.keyboard.press("Enter")
    await expect(page.locator(".prose strong", has_text="release")).to_be_visible()
    await expect(page.locator(".prose pre")).to_contain_text("print('done')")
    await expect(page.get_by_text("Used 2 × Bash, 1 × Read")).to_be_visible()
    await page.get_by_role("link", name="trace").first.click()
    await expect(page.get_by_text("Web → @lead")).to_be_visible()
    await page.get_by_role("link", name="Timeline").click()
    await expect(page.get_by_role("img", name="Timeline")).to_be_visible()
    await page.get_by_role("link", name="Reader").click()
    await expect(page.locator(".prose", has_text="Is the release ready?").first).to_be_visible()


async def test_a_conversation_is_exported_and_looked_at_again_elsewhere(
    open_page: OpenPage, house: House, tmp_path: Path
) -> None:
    await house.deps.services.conversations.send(
        OWNER, Draft(text="@lead Is the release ready?", channel="web")
    )
    page = await open_page("/chat?with=lead")
    await page.get_by_role("link", name="trace").first.click()
    await expect(page.get_by_text("critical path", exact=True).first).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Export").click()
    exported = tmp_path / "trace.json"
    await (await download.value).save_as(exported)
    other = tmp_path / "other.json"
    other.write_text('{"shopping": ["milk"]}')

    await page.goto(f"{house.url}/conversations")
    await ready(page)
    await page.get_by_role("button", name="Import").click()
    box = page.locator("#import-trace")
    await box.get_by_label("File").set_input_files(other)
    await expect(box.locator("input[name=files]")).to_have_count(1)
    await box.get_by_role("button", name="Open").click()
    await expect(page.locator(".notice.bad")).to_contain_text("other.json is no trace")
    await box.get_by_role("button", name="Leave out other.json").click()
    await box.get_by_label("File").set_input_files(exported)
    await expect(box.locator("input[name=files]")).to_have_count(1)
    await box.get_by_role("button", name="Open").click()
    await expect(page.get_by_role("heading", name="Exported: web:", exact=False)).to_be_visible()
    await expect(page.get_by_text("→ @lead").first).to_be_visible()
    await page.get_by_role("link", name="Timeline").click()
    await expect(page.get_by_role("img", name="Timeline")).to_be_visible()


async def test_a_turn_is_seen_while_it_goes_on_and_can_be_stopped(open_page: OpenPage, house: House) -> None:
    services = house.deps.services
    sent = await services.conversations.send(OWNER, Draft(text="@coder a long task", channel="web"))
    page = await open_page("/chat?with=coder")
    await expect(page.locator("#writing")).to_be_visible()
    await page.get_by_role("button", name="Stop").click()
    await page.locator("#confirm").get_by_role("button", name="Stop").click()
    await expect(page.locator("#writing")).to_be_hidden()
    status = await services.conversations.status(OWNER, sent.message_id, "web")
    assert not status.open


async def test_a_turn_is_steered_and_begins_again_with_both(open_page: OpenPage, house: House) -> None:
    page = await open_page("/chat?with=coder")
    box = page.get_by_label("Write to @coder")
    await box.fill("a long task")
    await page.keyboard.press("Enter")
    await expect(page.locator("#writing")).to_be_visible()
    await box.fill("rather deploy to production")
    await page.get_by_role("button", name="Steer").click()
    # The script refuses what mentions production: so the second turn knew of both.
    await expect(page.locator("#writing")).to_be_hidden()
    await expect(page.locator(".said .state.is-dead").first).to_be_visible()


async def test_a_message_is_published_found_and_its_story_told(open_page: OpenPage, house: House) -> None:
    await house.room.create_queue("orders")
    page = await open_page("/queues")
    await page.get_by_label("Name", exact=True).first.fill("order")
    await page.get_by_role("button", name="Search").nth(1).click()
    await page.get_by_role("link", name="default/orders").click()
    await expect(page).to_have_url(f"{house.url}/queues/default/orders")
    await ready(page)
    await page.get_by_role("button", name="Publish a message").click()
    await page.get_by_label("Body").fill('{"order": 7}')
    await page.get_by_role("button", name="Publish", exact=True).click()
    await expect(page.get_by_role("link", name="waiting: 1")).to_be_visible()
    await page.locator("#messages a").first.click()
    await expect(page.locator("#story pre.body")).to_contain_text('"order": 7')
    await ready(page)
    await expect(page.locator(".story")).to_contain_text("published")
    await page.get_by_role("button", name="Cancel", exact=True).first.click()
    await page.locator("#confirm").get_by_role("button", name="Cancel").last.click()
    await expect(page.locator("#story .state").first).to_have_text("cancelled")


async def test_dead_letters_are_marked_and_retried_together(open_page: OpenPage, house: House) -> None:
    await house.room.create_queue("orders", max_retries=0)
    ids = [(await house.room.publish("orders", {"order": n})).id for n in range(3)]
    for claimed in await house.room.claim("orders", limit=3):
        await house.room.fail(claimed, "no")
    page = await open_page("/queues/dead")
    await page.get_by_label("Mark all").check()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No dead letters")).to_be_visible()
    assert {(await house.room.get(each)).state for each in ids} == {State.PENDING}


async def test_a_task_is_made_moved_by_keys_and_by_mouse(open_page: OpenPage, house: House) -> None:
    page = await open_page("/tasks")
    await page.get_by_role("button", name="New task").click()
    await page.get_by_label("Title").fill("Write the notes")
    await page.get_by_role("button", name="Create task").click()
    card = page.locator(".card", has_text="Write the notes")
    await expect(page.locator("[data-status=todo] .card")).to_have_count(1)
    await ready(page)
    await page.keyboard.press("j")
    await page.keyboard.press("l")
    await expect(page.locator("[data-status=in_progress] .card")).to_have_count(1)
    await card.drag_to(page.locator("[data-status=done]"))
    await expect(page.locator("[data-status=done] .card")).to_have_count(1)
    assert [each.status for each in await house.deps.services.tasks.list_all(OWNER)] == ["done"]


async def test_an_agent_is_made_changed_and_removed(open_page: OpenPage, house: House) -> None:
    page = await open_page("/agents")
    await page.get_by_role("button", name="New agent").click()
    await page.get_by_label("Id").first.fill("writer")
    await page.get_by_label("What it is for").fill("You write.")
    await page.get_by_role("button", name="Create agent").click()
    await expect(page).to_have_url(f"{house.url}/agents/writer")
    await expect(page.get_by_label("AGENTS.md")).to_contain_text("You write.")
    await ready(page)
    await page.get_by_label("Its tools may").select_option("read")
    await page.get_by_label("Longest turn").fill("90")
    await page.get_by_role("button", name="Save settings").click()
    await expect(page.locator("#notices")).to_contain_text("Saved.")
    changed = await house.deps.services.agents.get(OWNER, "writer")
    assert (changed.permissions, changed.turn_timeout_s) == ("read", 90)
    await page.get_by_role("button", name="Remove").click()
    await page.locator("#confirm").get_by_role("button", name="Remove").click()
    await expect(page).to_have_url(f"{house.url}/agents")
    assert "writer" not in await house.deps.services.agents.list_all(OWNER)


async def test_a_wrong_setting_is_refused_and_a_right_one_holds(open_page: OpenPage, house: House) -> None:
    page = await open_page("/settings")
    field = page.get_by_label("budgets.daily_usd")
    await field.fill("much")
    await field.press("Enter")
    await expect(page.locator(".notice.bad")).to_contain_text("daily_usd")
    await field.fill("7.5")
    before = await page.get_by_role("button", name="Default").count()
    await field.press("Enter")
    await expect(page.get_by_role("button", name="Default")).to_have_count(before + 1)
    await expect(page.get_by_label("budgets.daily_usd")).to_have_value("7.5")
    assert house.settings.load().budgets.daily_usd == 7.5


async def test_a_provider_is_tried_live(open_page: OpenPage, house: House) -> None:
    page = await open_page("/providers")
    await page.get_by_role("button", name="Test live").click()
    await expect(page.locator(".notice")).to_contain_text("script answered in")


async def test_a_rule_is_tried_on_the_past_before_it_is_made(open_page: OpenPage, house: House) -> None:
    for name in ("orders", "large"):
        await house.room.create_queue(name)
    for total in (10, 2000, 3000):
        await house.room.publish("orders", {"total": total})
    page = await open_page("/rules")
    await page.get_by_role("button", name="New rule").click()
    await page.get_by_role("button", name="Try it on the past").click()
    await expect(page.locator("#notices")).to_contain_text("matched 2 of the last 3 messages")
    await page.get_by_role("button", name="Create rule").click()
    await expect(page.locator("#rules")).to_contain_text("large orders are read first")


async def test_the_secret_of_a_key_is_shown_once(open_page: OpenPage, house: House) -> None:
    page = await open_page("/access")
    await page.get_by_role("button", name="New key").click()
    await page.get_by_role("dialog", name="New key").get_by_label("Name").fill("shop")
    await page.get_by_role("button", name="Create key").click()
    await expect(page.locator("#secret pre")).to_contain_text("prk_")
    secret = await page.locator("#secret pre").inner_text()
    async with page.expect_navigation():
        await page.get_by_role("button", name="Done").click()
    await expect(page.locator("#api-keys")).to_contain_text("shop")
    await ready(page)
    assert secret not in await page.content()


async def test_scripts_in_names_messages_and_reasons_are_text(open_page: OpenPage, house: House) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    services = house.deps.services
    await services.agents.change(OWNER, "coder", {"name": evil})
    await services.tasks.add(OWNER, evil, description=evil)
    await services.conversations.send(
        OWNER, Draft(text=f"@lead {evil}", channel="web", sender=evil, sender_id="x")
    )
    await services.schedules.add(OWNER, "lead", evil, label="evil", cron="0 9 * * *")
    await house.room.create_queue("orders", max_retries=0)
    await house.room.publish("orders", {"<script>": evil}, labels={"evil": evil})
    for claimed in await house.room.claim("orders"):
        await house.room.fail(claimed, evil)
    page = await open_page()
    page.on("dialog", lambda dialog: (_ for _ in ()).throw(AssertionError(dialog.message)))
    for path in PAGES:
        await page.goto(house.url + path)
        assert await page.locator("img, main script").count() == 0, path
    await page.goto(f"{house.url}/chat?with=lead")
    await expect(page.get_by_text("<script>alert(2)</script>").first).to_be_visible()


async def test_a_viewer_is_let_in_by_a_link_looks_and_is_sent_away_again(
    open_page: OpenPage, house: House, browser: Browser
) -> None:
    page = await open_page("/access")
    await page.get_by_role("button", name="Let somebody in").click()
    invite = page.get_by_role("dialog", name="Let somebody in")
    await invite.get_by_label("Name").fill("Ann")
    await invite.get_by_label("May").select_option("viewer")
    await invite.get_by_role("button", name="Make the link").click()
    await expect(page.locator("#secret .picture svg")).to_be_visible()
    link = await page.locator("#secret pre").inner_text()
    context = await new_context(browser, DESKTOP)
    ann = await context.new_page()
    await ann.goto(link)
    await expect(ann.get_by_role("heading", name="Needs you")).to_be_visible()
    await expect(ann.get_by_role("link", name="Settings")).to_have_count(0)
    await ann.goto(f"{house.url}/chat?with=lead")
    await expect(ann.get_by_role("heading", name="Lead", exact=True)).to_be_visible()
    await expect(ann.locator(".composer")).to_be_hidden()
    await page.goto(f"{house.url}/access")
    await ready(page)
    await expect(page.locator("#sessions")).to_contain_text("Ann")
    await page.get_by_role("button", name="Log out everywhere else").click()
    await page.locator("#confirm").get_by_role("button", name="Log out everywhere else").click()
    await expect(page.locator("#sessions")).not_to_contain_text("Ann")
    await ann.goto(f"{house.url}/floor")
    await expect(ann.get_by_label("token")).to_be_visible()


async def test_files_are_sent_with_a_message_and_can_be_had_again(
    open_page: OpenPage, house: House, tmp_path: Path
) -> None:
    file = tmp_path / "plan.txt"
    file.write_text("the plan")
    page = await open_page("/chat?with=lead")
    await ready(page)
    await page.get_by_label("Attach files").set_input_files(file)
    await expect(page.locator(".chips")).to_contain_text("plan.txt")
    await page.get_by_role("textbox").fill("look at this")
    await page.get_by_role("button", name="Send").click()
    link = page.get_by_role("link", name="plan.txt").first
    await expect(link).to_be_visible()
    await expect(page.locator(".chips")).not_to_contain_text("plan.txt")
    async with page.expect_download() as download:
        await link.click()
    kept = tmp_path / "kept"
    await (await download.value).save_as(kept)
    assert kept.read_text() == "the plan"


async def test_a_backup_is_made_tried_and_removed(open_page: OpenPage, house: House) -> None:
    page = await open_page("/system")
    await page.get_by_role("button", name="Back up now").click()
    row = page.locator("tr", has_text="postroom-")
    await expect(row).to_be_visible(timeout=60_000)
    [copy] = await house.deps.services.backups.list_all(OWNER)
    await row.get_by_role("button", name="Restore drill").click()
    await expect(page.locator(".notice", has_text="a restore would work")).to_be_visible(timeout=60_000)
    flip_a_byte(copy.path)
    await row.get_by_role("button", name="Restore drill").click()
    await expect(page.locator(".notice.bad")).to_contain_text("not as it was written", timeout=60_000)
    await row.get_by_role("button", name="Remove").click()
    await page.locator("#confirm").get_by_role("button", name="Remove").click()
    await expect(row).to_have_count(0)
    assert await house.deps.services.backups.list_all(OWNER) == []


async def test_a_platform_is_connected_by_its_form_and_a_wrong_token_changes_nothing(
    open_page: OpenPage, house: House
) -> None:
    page = await open_page("/channels")
    row = page.locator("tr", has_text="Discord")
    await row.get_by_role("button", name="Connect").click()
    box = page.get_by_role("dialog", name="Connect Discord")
    await box.get_by_label("Bot token").fill("no token")
    await box.get_by_role("button", name="Connect").click()
    await expect(page.locator(".notice.bad")).to_contain_text("no token of a Discord bot")
    assert house.settings.load().channels.enabled == ()
    token = f"{'M' * 24}.Cl2FMQ.{'Z' * 27}"
    await box.get_by_label("Bot token").fill(token)
    await box.get_by_role("button", name="Connect").click()
    await expect(page.locator("#channels")).to_contain_text("discord")
    kept = house.settings.load().channels
    assert kept.enabled == ("discord",)
    assert kept.discord.bot_token is not None
    assert kept.discord.bot_token.reveal({}) == token
