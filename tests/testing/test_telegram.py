"""aiogram against the fake Telegram: what Telegram promises bots, and what it does wrong."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaDocument,
    Message,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
)
from aiohttp import web

from postroom.testing.platforms.base import FakePlatformFailure, Person
from postroom.testing.platforms.faults import (
    ConnectionDropped,
    DeliveredTwice,
    RateLimited,
    ServerFailed,
    SignedWrongly,
)
from postroom.testing.platforms.telegram import FakeTelegram
from postroom.testing.platforms.transcript import Attachment
from tests.testing.webhook_receiver import WebhookReceiver

ANN = Person("1001", "Ann Archer", "ann")
BOB = Person("1002", "Bob")


def connect(telegram: FakeTelegram, token: str | None = None) -> Bot:
    session = AiohttpSession(api=TelegramAPIServer.from_base(telegram.url))
    return Bot(token or telegram.token, session=session)


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


@pytest.fixture
async def bot(telegram: FakeTelegram) -> AsyncIterator[Bot]:
    async with connect(telegram) as bot:
        yield bot


def keyboard(*labels: str) -> InlineKeyboardMarkup:
    row = [InlineKeyboardButton(text=label, callback_data=f"data:{label}") for label in labels]
    return InlineKeyboardMarkup(inline_keyboard=[row])


async def test_a_dispatcher_polls_messages_and_answers_them(telegram: FakeTelegram, bot: Bot) -> None:
    dispatcher = Dispatcher()

    @dispatcher.message()
    async def answer(message: Message) -> None:
        await message.answer(f"you said {message.text}")

    await telegram.write(ANN, "one")
    polling = asyncio.create_task(
        dispatcher.start_polling(bot, handle_signals=False, close_bot_session=False)
    )
    await telegram.transcript.wait_for("you said one", chat=ANN.id)
    await telegram.write(BOB, "two")
    await telegram.transcript.wait_for("you said two", chat=BOB.id)
    await dispatcher.stop_polling()
    telegram.clock.advance(60)
    await polling
    telegram.transcript.exactly_one("you said one")


async def test_an_update_stays_until_the_offset_passes_it(telegram: FakeTelegram, bot: Bot) -> None:
    first = await telegram.write(ANN, "one")
    second = await telegram.write(ANN, "two")
    assert [u.update_id for u in await bot.get_updates()] == [int(first.id), int(second.id)]
    assert [u.update_id for u in await bot.get_updates()] == [int(first.id), int(second.id)]
    assert [u.update_id for u in await bot.get_updates(offset=int(second.id))] == [int(second.id)]
    assert telegram.unconfirmed == [int(second.id)]
    assert await bot.get_updates(offset=int(second.id) + 1) == []
    telegram.redeliver(first)
    assert [u.update_id for u in await bot.get_updates(offset=0)] == [int(first.id)]


async def test_updates_are_forgotten_after_a_day(telegram: FakeTelegram, bot: Bot) -> None:
    await telegram.write(ANN, "old")
    telegram.clock.advance(24 * 3600)
    new = await telegram.write(ANN, "new")
    assert [u.update_id for u in await bot.get_updates()] == [int(new.id)]


async def test_a_long_poll_waits_for_a_message_or_for_the_held_clock(
    telegram: FakeTelegram, bot: Bot
) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=30))
    await telegram.clock.wait_for_sleepers()
    telegram.clock.advance(30)
    assert await poll == []
    poll = asyncio.create_task(bot.get_updates(timeout=30))
    await telegram.clock.wait_for_sleepers()
    await telegram.write(ANN, "hello")
    assert [u.message.text for u in await poll if u.message] == ["hello"]


async def test_of_two_pollers_the_first_is_ended_with_a_conflict(telegram: FakeTelegram, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=30))
    await telegram.clock.wait_for_sleepers()
    async with connect(telegram) as other:
        second = asyncio.create_task(other.get_updates(timeout=30))
        with pytest.raises(TelegramConflictError, match="terminated by other getUpdates request"):
            await first
        await telegram.write(ANN, "hello")
        assert len(await second) == 1


async def test_polling_and_a_webhook_exclude_each_other(telegram: FakeTelegram, bot: Bot) -> None:
    async with WebhookReceiver() as receiver:
        await bot.set_webhook(receiver.url, secret_token="s3cret")
        with pytest.raises(TelegramConflictError, match="webhook is active"):
            await bot.get_updates()
        await bot.delete_webhook()
        assert await bot.get_updates() == []


async def test_a_webhook_gets_each_update_until_it_accepts_it(telegram: FakeTelegram, bot: Bot) -> None:
    async with WebhookReceiver() as receiver:
        receiver.statuses = [500]
        await bot.set_webhook(receiver.url, secret_token="s3cret")
        event = await telegram.write(ANN, "hello")
        await telegram.webhook.wait_for_attempts(1)
        assert telegram.unconfirmed == [int(event.id)]
        telegram.clock.advance(60)
        await telegram.webhook.drain()
        assert [r.json()["update_id"] for r in receiver.requests] == [int(event.id)] * 2
        assert {r.headers["X-Telegram-Bot-Api-Secret-Token"] for r in receiver.requests} == {"s3cret"}
        assert telegram.unconfirmed == []
        assert (await bot.get_webhook_info()).last_error_message


async def test_a_webhook_may_be_called_twice_and_with_a_wrong_secret(
    telegram: FakeTelegram, bot: Bot
) -> None:
    async with WebhookReceiver() as receiver:
        await bot.set_webhook(receiver.url, secret_token="s3cret")
        telegram.faults.plan("webhook", SignedWrongly(), DeliveredTwice())
        await telegram.write(ANN, "hello")
        await telegram.webhook.drain()
        secrets = [r.headers["X-Telegram-Bot-Api-Secret-Token"] for r in receiver.requests]
        assert secrets == ["wrong", "s3cret"]


async def test_texts_keep_their_entities_and_limits(telegram: FakeTelegram, bot: Bot) -> None:
    await telegram.write(ANN, "hi")
    await bot.send_message(ANN.id, "a <b>bold <i>😀</i></b> &lt;tag&gt;", parse_mode="HTML")
    delivery = telegram.transcript.exactly_one("a bold 😀 <tag>")
    assert delivery.markup == [
        {"type": "bold", "offset": 2, "length": 7},
        {"type": "italic", "offset": 7, "length": 2},
    ]
    entity = MessageEntity(type="pre", offset=0, length=4, language="python")
    await bot.send_message(ANN.id, "code", entities=[entity])
    assert telegram.transcript.exactly_one("code").markup[0]["language"] == "python"
    await bot.send_message(ANN.id, '<pre><code class="language-sh">ls</code></pre>', parse_mode="HTML")
    assert telegram.transcript.exactly_one("ls").markup == [
        {"type": "pre", "offset": 0, "length": 2, "language": "sh"}
    ]
    await bot.send_message(ANN.id, "x" * 4096)
    for text, mode, complaint in (
        ("x" * 4097, None, "message is too long"),
        ("😀" * 2049, None, "message is too long"),
        ("  ", None, "message text is empty"),
        ("<b>open", "HTML", "Can't find end tag"),
        ("<b>a</i>", "HTML", "Unexpected end tag"),
        ("1 < 2", "HTML", "Unsupported start tag"),
        ("<table>", "HTML", "Unsupported start tag"),
    ):
        with pytest.raises(TelegramBadRequest, match=complaint):
            await bot.send_message(ANN.id, text, parse_mode=mode)


async def test_edits_buttons_and_presses(telegram: FakeTelegram, bot: Bot) -> None:
    await telegram.write(ANN, "deploy?")
    sent = await bot.send_message(ANN.id, "Deploy?", reply_markup=keyboard("Yes", "No"))
    delivery = telegram.transcript.exactly_one("Deploy?")
    await telegram.press(ANN, delivery, "Yes")
    updates = await bot.get_updates()
    query = updates[-1].callback_query
    assert isinstance(query, CallbackQuery)
    assert (query.data, query.from_user.id) == ("data:Yes", 1001)
    assert isinstance(query.message, Message)
    assert query.message.message_id == sent.message_id
    await bot.answer_callback_query(query.id, text="Done")
    await bot.edit_message_text("Deployed.", chat_id=ANN.id, message_id=sent.message_id)
    assert (delivery.text, delivery.edits, delivery.buttons) == ("Deployed.", ["Deploy?"], ())
    assert [act.data["text"] for act in telegram.transcript.acts if act.kind == "button answer"] == ["Done"]
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await bot.edit_message_text("Deployed.", chat_id=ANN.id, message_id=sent.message_id)
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await bot.edit_message_text("x", chat_id=ANN.id, message_id=99)
    with pytest.raises(TelegramBadRequest, match="BUTTON_DATA_INVALID"):
        await bot.send_message(ANN.id, "x", reply_markup=keyboard("y" * 64))
    with pytest.raises(TelegramBadRequest, match="query is too old"):
        await bot.answer_callback_query("unknown")
    await bot.delete_message(ANN.id, sent.message_id)
    assert telegram.transcript.texts(ANN.id) == []


async def test_files_go_both_ways(telegram: FakeTelegram, bot: Bot) -> None:
    note = Attachment("note.ogg", b"sound", "audio/ogg")
    plan = Attachment("plan.pdf", b"%PDF", "application/pdf")
    photo = Attachment("p.jpg", b"jpeg", "image/jpeg")
    await telegram.write(ANN, "see these", files=[plan, note, photo])
    messages = [update.message for update in await bot.get_updates() if update.message]
    assert len({message.media_group_id for message in messages}) == 1
    assert messages[0].caption == "see these"
    assert messages[0].document
    assert messages[1].voice
    assert messages[2].photo
    for file_id, content in (
        (messages[0].document.file_id, b"%PDF"),
        (messages[1].voice.file_id, b"sound"),
        (messages[2].photo[-1].file_id, b"jpeg"),
    ):
        downloaded = await bot.download(file_id)
        assert downloaded is not None
        assert downloaded.read() == content
    assert [act.data["name"] for act in telegram.transcript.acts] == ["plan.pdf", "note.ogg", "p.jpg"]

    await bot.send_document(
        ANN.id, BufferedInputFile(b"out", "report.txt"), caption="<i>here</i>", parse_mode="HTML"
    )
    sent = telegram.transcript.exactly_one("here")
    assert [(a.name, a.content) for a in sent.attachments] == [("report.txt", b"out")]
    await bot.send_photo(ANN.id, BufferedInputFile(b"png", "chart.png"))
    pages = [InputMediaDocument(media=BufferedInputFile(b"page", name)) for name in ("a", "b")]
    album = await bot.send_media_group(ANN.id, list(pages))
    assert len(album) == 2
    assert [a.name for d in telegram.transcript.deliveries for a in d.attachments] == [
        "report.txt", "chart.png", "a", "b",
    ]  # fmt: skip
    with pytest.raises(TelegramBadRequest, match="caption is too long"):
        await bot.send_document(ANN.id, BufferedInputFile(b"x", "x"), caption="c" * 1025)


async def test_groups_topics_replies_and_mentions(telegram: FakeTelegram, bot: Bot) -> None:
    group = telegram.add_group("Office", forum=True)
    topic = telegram.add_topic(group, "Releases")
    asked = await telegram.write(ANN, "@office_bot /status please", chat=group, thread=topic)
    update = (await bot.get_updates())[0]
    assert update.message is not None
    assert (update.message.chat.type, str(update.message.message_thread_id)) == ("supergroup", topic)
    assert [e.type for e in update.message.entities or []] == ["bot_command", "mention"]
    reply = ReplyParameters(message_id=int(asked.message_id))
    await bot.send_message(group, "fine", message_thread_id=int(topic), reply_parameters=reply)
    delivery = telegram.transcript.exactly_one("fine", chat=group)
    assert (delivery.thread, delivery.reply_to) == (topic, asked.message_id)
    with pytest.raises(TelegramBadRequest, match="message thread not found"):
        await bot.send_message(group, "x", message_thread_id=999)
    with pytest.raises(TelegramBadRequest, match="message to be replied not found"):
        await bot.send_message(group, "x", reply_parameters=ReplyParameters(message_id=999))
    await telegram.write(ANN, "and?", chat=group, reply_to=delivery.id)
    last = (await bot.get_updates())[-1].message
    assert last is not None
    assert last.reply_to_message is not None
    assert last.reply_to_message.from_user is not None
    assert last.reply_to_message.from_user.is_bot


async def test_message_ids_count_in_each_chat_by_themselves(telegram: FakeTelegram, bot: Bot) -> None:
    first = await telegram.write(ANN, "one")
    second = await telegram.write(BOB, "two")
    assert (first.message_id, second.message_id) == ("1", "1")


async def test_menus_actions_reactions_and_the_edit_of_a_person(telegram: FakeTelegram, bot: Bot) -> None:
    event = await telegram.write(ANN, "helo")
    await bot.set_my_commands([BotCommand(command="agent", description="List available agents")])
    assert [c.command for c in await bot.get_my_commands()] == ["agent"]
    await bot.send_chat_action(ANN.id, "typing")
    await bot.set_message_reaction(ANN.id, int(event.message_id), [ReactionTypeEmoji(emoji="👀")])
    assert [act.kind for act in telegram.transcript.acts] == ["typing", "reaction"]
    await telegram.edit(ANN, event, "hello")
    updates = await bot.get_updates()
    assert updates[0].message is not None
    assert updates[1].edited_message is not None
    assert (updates[0].message.text, updates[1].edited_message.text) == ("helo", "hello")
    assert (await bot.get_chat(ANN.id)).first_name == "Ann Archer"


async def test_who_cannot_be_reached_is_named_as_telegram_names_it(telegram: FakeTelegram, bot: Bot) -> None:
    with pytest.raises(TelegramBadRequest, match="chat not found"):
        await bot.send_message(BOB.id, "hello")
    await telegram.write(ANN, "hi")
    telegram.block(ANN)
    with pytest.raises(TelegramForbiddenError, match="bot was blocked by the user"):
        await bot.send_message(ANN.id, "hello")
    group = telegram.add_group("Old")
    moved = telegram.upgrade_group(group)
    with pytest.raises(TelegramMigrateToChat) as caught:
        await bot.send_message(group, "hello")
    assert str(caught.value.migrate_to_chat_id) == moved
    async with connect(telegram, "1:wrong") as stranger:
        with pytest.raises(TelegramUnauthorizedError):
            await stranger.get_me()


async def test_faults_reach_the_client_as_the_platforms_own(telegram: FakeTelegram, bot: Bot) -> None:
    await telegram.write(ANN, "hi")
    telegram.faults.plan("sendMessage", RateLimited(7), ServerFailed(500), ServerFailed(502))
    with pytest.raises(TelegramRetryAfter) as flood:
        await bot.send_message(ANN.id, "one")
    assert flood.value.retry_after == 7
    with pytest.raises(TelegramServerError):
        await bot.send_message(ANN.id, "one")
    with pytest.raises(ClientDecodeError):
        await bot.send_message(ANN.id, "one")
    assert telegram.transcript.texts() == []
    await bot.send_message(ANN.id, "one")
    assert telegram.transcript.texts() == ["one"]


@pytest.mark.parametrize(("when", "done"), [("before", 0), ("during", 1), ("after", 1)])
async def test_a_dropped_connection_does_not_tell_whether_it_was_done(
    telegram: FakeTelegram, bot: Bot, when: str, done: int
) -> None:
    await telegram.write(ANN, "hi")
    telegram.faults.plan("sendMessage", ConnectionDropped(when))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TelegramNetworkError):
        await bot.send_message(ANN.id, "one")
    assert telegram.transcript.texts() == ["one"] * done


async def test_a_held_call_stops_where_the_test_says(telegram: FakeTelegram, bot: Bot) -> None:
    await telegram.write(ANN, "hi")
    held = telegram.faults.hold("sendMessage", "after")
    sending = asyncio.create_task(bot.send_message(ANN.id, "one"))
    await held.reached.wait()
    assert telegram.transcript.texts() == ["one"]
    assert not sending.done()
    held.release()
    assert (await sending).text == "one"


async def test_a_platform_that_went_away_comes_back_with_all_it_had(telegram: FakeTelegram, bot: Bot) -> None:
    await telegram.write(ANN, "before")
    poll = asyncio.create_task(bot.get_updates(offset=-1, timeout=30))
    assert len(await poll) == 1
    await telegram.go_away()
    with pytest.raises(TelegramNetworkError):
        await bot.get_updates()
    await telegram.write(ANN, "meanwhile")
    await telegram.come_back()
    assert [u.message.text for u in await bot.get_updates() if u.message] == ["before", "meanwhile"]


async def use_what_is_missing() -> None:
    async with FakeTelegram() as telegram, connect(telegram) as bot:
        await telegram.write(ANN, "hi")
        for call in (
            bot.send_dice(ANN.id),
            bot.send_message(ANN.id, "*x*", parse_mode="MarkdownV2"),
            bot.send_message(ANN.id, "x", protect_content=True),
        ):
            with pytest.raises(TelegramServerError, match="does not implement"):
                await call
        async with aiohttp.ClientSession() as session, session.get(f"{telegram.url}/nothing") as answer:
            assert answer.status == 501
        assert telegram.transcript.deliveries == []


async def test_what_the_fake_does_not_implement_is_refused_and_raised_at_the_end() -> None:
    with pytest.raises(FakePlatformFailure) as caught:
        await use_what_is_missing()
    for word in ("sendDice", "parse_mode=MarkdownV2", "protect_content", "GET /nothing"):
        assert word in str(caught.value)


async def answer_a_webhook_with_a_method() -> None:
    async with FakeTelegram() as telegram, connect(telegram) as bot, WebhookReceiver() as receiver:
        receiver.answer = web.json_response({"method": "sendMessage", "chat_id": 1001, "text": "x"})
        await bot.set_webhook(receiver.url)
        await telegram.write(ANN, "hi")
        await telegram.webhook.drain()


async def test_a_method_in_the_answer_to_a_webhook_is_not_ignored() -> None:
    with pytest.raises(FakePlatformFailure, match="answer to a webhook"):
        await answer_a_webhook_with_a_method()
