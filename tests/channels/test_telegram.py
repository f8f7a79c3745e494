"""Telegram for real against the fake: what people write is answered once, whatever goes wrong between."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from postroom.channels.channel import WebhookRequest
from postroom.channels.delivery_plan import DELIVERY
from postroom.channels.delivery_worker import REMARK
from postroom.channels.errors import ChannelMisconfigured
from postroom.channels.telegram import KIND
from postroom.clock import SystemClock
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.office import queues
from postroom.office.message_files import FilesAway
from postroom.office.pairing import Pairings
from postroom.providers.protocol import TurnRequest
from postroom.testing import Attachment, ConnectionDropped, FakeTelegram, RateLimited, ServerFailed
from tests.acceptance.office import until
from tests.channels.telegram_office import ANN, BOB, TelegramOffice, echo, open_office


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


@pytest.fixture
async def office(telegram: FakeTelegram, tmp_path: Path) -> AsyncIterator[TelegramOffice]:
    async with open_office(tmp_path, telegram) as office:
        await office.pair(ANN, BOB)
        yield office


async def publish(office: TelegramOffice, text: str, **fields: Any) -> str:
    """Something for Ann that nobody asked for."""
    message = NewMessage(
        body={"text": text, **fields.pop("body", {})},
        channel="telegram",
        sender="Ann",
        sender_id=ANN.id,
        **fields,
    )
    receipts = await office.room.run(c.Publish(queue=queues.outbox("telegram"), messages=[message]))
    return receipts[0].id


async def test_a_message_is_answered_once_and_the_answer_points_at_it(office: TelegramOffice) -> None:
    event = await office.telegram.write(ANN, "hello")
    [answer] = await office.telegram.transcript.wait_for("echo: hello", chat=ANN.id)
    assert answer.reply_to == event.message_id
    await until(lambda: not office.telegram.unconfirmed)
    assert [act.kind for act in office.telegram.transcript.acts][:1] == ["typing"]
    [envelope] = await office.ended("intake/telegram", 1)
    assert envelope.idempotency_key == event.id


async def test_what_telegram_tells_again_is_not_answered_again(office: TelegramOffice) -> None:
    event = await office.telegram.write(ANN, "hello")
    await office.telegram.transcript.wait_for("echo: hello")
    office.telegram.redeliver(event)
    await office.telegram.write(ANN, "and then")
    await office.telegram.transcript.wait_for("echo: and then")
    office.telegram.transcript.exactly_one("echo: hello")
    assert office.asked == ["hello", "and then"]


async def test_a_stranger_gets_one_code_and_costs_nothing_else(office: TelegramOffice) -> None:
    stranger = type(ANN)("6666", "Mallory")
    file = Attachment("big.bin", b"x" * 1000)
    for _ in range(3):
        await office.telegram.write(stranger, "let me in", files=[file])
    await office.telegram.write(ANN, "hello")
    await office.telegram.transcript.wait_for("echo: hello")
    [told] = office.telegram.transcript.select(chat=stranger.id)
    assert "pairing code" in told.text
    assert [act.kind for act in office.telegram.transcript.acts if act.kind == "download"] == []
    assert office.asked == ["hello"]
    assert [m.sender_id for m in await office.messages("intake/telegram")] == [ANN.id]


async def test_somebody_approved_is_heard_from_then_on(office: TelegramOffice) -> None:
    cleo = type(ANN)("1003", "Cleo")
    await office.telegram.write(cleo, "hello?")
    [told] = await office.telegram.transcript.wait_for("pairing code", chat=cleo.id)
    code = told.text.split("pairing code: ")[1].split()[0]
    await Pairings(office.room, SystemClock()).approve(code)
    await office.telegram.write(cleo, "again")
    await office.telegram.transcript.wait_for("echo: again", chat=cleo.id)


async def test_messages_of_a_chat_keep_their_order(office: TelegramOffice) -> None:
    for number in range(20):
        await office.telegram.write(ANN, f"a{number}")
        await office.telegram.write(BOB, f"b{number}")
    await until(lambda: {"a19", "b19"} <= {w for text in office.asked for w in text.split()})
    heard = [message.body["text"] for message in await office.messages("inbox/lead")]
    for person in "ab":
        assert [word for word in heard if word.startswith(person)] == [f"{person}{n}" for n in range(20)]


async def test_a_long_answer_comes_in_whole_pieces_with_its_styles(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    answer = "**bold start** " + "word " * 1500 + "\n\n```python\n" + "x = 1\n" * 300 + "```\nend *it*"
    replies = {"long_text_chars": 100_000}
    async with open_office(tmp_path, telegram, lambda request: answer, replies=replies) as office:
        await office.pair(ANN)
        await telegram.write(ANN, "go")
        [last] = await telegram.transcript.wait_for("end it")
        pieces = telegram.transcript.select(chat=ANN.id)
        assert len(pieces) > 2
        assert all(len(piece.text) <= 4096 for piece in pieces)
        assert pieces[0].markup[0]["type"] == "bold"
        assert [piece.reply_to for piece in pieces[1:]] == [None] * (len(pieces) - 1)
        code = [entity for piece in pieces for entity in piece.markup or [] if entity["type"] == "pre"]
        assert {entity["language"] for entity in code} == {"python"}
        assert last.markup[-1]["type"] == "italic"


async def test_files_go_both_ways(telegram: FakeTelegram, tmp_path: Path) -> None:
    def act(request: TurnRequest) -> str:
        (tmp_path / "work" / "lead" / "report.txt").write_text("the report")
        return "here [send_file: report.txt]"

    async with open_office(tmp_path, telegram, act) as office:
        (tmp_path / "work" / "lead").mkdir(parents=True, exist_ok=True)
        await office.pair(ANN)
        plan = Attachment("../plan.pdf", b"%PDF", "application/pdf")
        await telegram.write(ANN, "read this", files=[plan])
        await telegram.transcript.wait_for("here")
        [sent] = [d for d in telegram.transcript.deliveries if d.attachments]
        assert (sent.attachments[0].name, sent.attachments[0].content) == ("report.txt", b"the report")
        assert "read this" in office.asked[0]
        path = Path(office.asked[0].split("[file: ")[1].split("]")[0])
        assert path.parent == tmp_path / "home" / "files"
        assert await asyncio.to_thread(path.read_bytes) == b"%PDF"
        assert path.name.startswith("telegram_")


async def test_while_files_cannot_be_reached_messages_and_answers_wait_and_nothing_is_lost(
    telegram: FakeTelegram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def act(request: TurnRequest) -> str:
        (tmp_path / "work" / "lead" / "report.txt").write_text("the report")
        return "here [send_file: report.txt]"

    async with open_office(tmp_path, telegram, act) as office:
        (tmp_path / "work" / "lead").mkdir(parents=True, exist_ok=True)
        await office.pair(ANN)
        files: Any = office.office.files
        away = {"receiving", "check", "open"}

        def fail(name: str) -> Any:
            reach = getattr(files, name)

            def reached(*args: Any, **options: Any) -> Any:
                if name in away:
                    raise FilesAway(reason="it is away")
                return reach(*args, **options)

            return reached

        for name in tuple(away):
            monkeypatch.setattr(files, name, fail(name))
        await telegram.write(ANN, "read this", files=[Attachment("plan.pdf", b"%PDF", "application/pdf")])
        for tries in range(1, 4):
            await until(lambda tries=tries: caplog.text.count("plan.pdf waits") == tries)
            await telegram.clock.wait_for_sleepers(1)
            if tries == 3:
                away.discard("receiving")
            telegram.clock.advance(30)
        await until(lambda: bool(office.asked))
        # The answer is there, and its file cannot be read for a while.
        await until(lambda: "cannot be reached" in caplog.text.partition("piece 1 of")[2])
        assert not [each for each in telegram.transcript.deliveries if "here" in each.text]
        away.clear()

        def has_arrived() -> bool:
            # Others sleep too, so when it will have begun to wait for its next try is not known.
            telegram.clock.advance(30)
            return any("here" in each.text for each in telegram.transcript.deliveries)

        await until(has_arrived)
        [sent] = [each for each in telegram.transcript.deliveries if each.attachments]
        assert sent.attachments[0].content == b"the report"
        assert len(office.asked) == 1


async def test_a_file_that_cannot_be_fetched_does_not_keep_the_words_back(office: TelegramOffice) -> None:
    office.telegram.faults.plan("download", *[ServerFailed(500)] * 4)
    await office.telegram.write(ANN, "see", files=[Attachment("a.txt", b"a", "text/plain")])
    for _ in range(3):
        await office.telegram.clock.wait_for_sleepers(2)
        office.telegram.clock.advance(10)
    await until(lambda: bool(office.asked))
    assert "see" in office.asked[0]
    assert 'The file "a.txt" could not be fetched' in office.asked[0]


async def test_a_pressed_button_says_what_it_says(office: TelegramOffice) -> None:
    await office.telegram.write(ANN, "hi")
    await office.telegram.transcript.wait_for("echo: hi")
    await publish(office, "Deploy?", body={"choices": ["Yes, deploy", "No"]})
    [asked] = await office.telegram.transcript.wait_for("Deploy?")
    await office.telegram.press(ANN, asked, "Yes, deploy")
    [answer] = await office.telegram.transcript.wait_for("echo: Yes, deploy")
    assert answer.reply_to == asked.id
    assert "button answer" in [act.kind for act in office.telegram.transcript.acts]


async def test_in_a_group_the_bot_hears_what_is_meant_for_it_and_answers_in_the_topic(
    office: TelegramOffice,
) -> None:
    telegram = office.telegram
    group = telegram.add_group("Office", forum=True)
    topic = telegram.add_topic(group, "Releases")
    await telegram.write(ANN, "just talking", chat=group, thread=topic)
    await telegram.write(ANN, "@office_bot, status?", chat=group, thread=topic)
    [answer] = await telegram.transcript.wait_for("echo: status?", chat=group)
    assert answer.thread == topic
    await telegram.write(ANN, "really?", chat=group, thread=topic, reply_to=answer.id)
    await telegram.transcript.wait_for("echo: really?", chat=group)
    assert office.asked == ["status?", "really?"]


async def test_a_rate_limit_is_waited_for_and_uses_no_attempt(office: TelegramOffice) -> None:
    telegram = office.telegram
    await telegram.write(ANN, "hi")
    await telegram.transcript.wait_for("echo: hi")
    telegram.faults.plan("sendMessage", RateLimited(3600))
    first = await publish(office, "first")
    await until(lambda: bool(telegram.faults.happened))
    await telegram.clock.wait_for_sleepers(2)
    await publish(office, "second")
    telegram.clock.advance(3599)
    assert telegram.transcript.select("first") == telegram.transcript.select("second") == []
    telegram.clock.advance(2)
    await telegram.transcript.wait_for("second")
    assert telegram.transcript.texts(ANN.id)[-2:] == ["first", "second"]
    assert (await office.room.get(first)).attempts == 1


@pytest.mark.parametrize("fault", [ServerFailed(500), "away"])
async def test_a_failure_that_is_sure_is_tried_again(office: TelegramOffice, fault: Any) -> None:
    telegram = office.telegram
    await telegram.write(ANN, "hi")
    await telegram.transcript.wait_for("echo: hi")
    if fault == "away":
        await telegram.go_away()
    else:
        telegram.faults.plan("sendMessage", fault)
    message_id = await publish(office, "here I am")

    async def failed() -> bool:
        document = await office.room.document(DELIVERY, message_id)
        return document is not None and document.data["pieces"][0]["failures"] == 1

    await until(failed)
    if fault == "away":
        await telegram.come_back()

    async def arrives() -> bool:
        # Whoever has not begun to wait yet waits from the new time on.
        telegram.clock.advance(61)
        return bool(telegram.transcript.select("here I am"))

    await until(arrives)
    telegram.transcript.exactly_one("here I am")
    await office.ended("outbox/telegram", 2)
    assert await office.room.document(DELIVERY, message_id) is None


@pytest.mark.parametrize(("when", "arrived"), [("before", 0), ("after", 1)])
async def test_what_may_have_arrived_is_listed_and_told_and_not_repeated(
    office: TelegramOffice, when: Any, arrived: int
) -> None:
    telegram = office.telegram
    await telegram.write(ANN, "hi")
    await telegram.transcript.wait_for("echo: hi")
    telegram.faults.plan("sendMessage", ConnectionDropped(when))
    message_id = await publish(office, "important")
    await telegram.transcript.wait_for(REMARK)
    assert len(telegram.transcript.select("important")) == arrived
    message = next(m for m in await office.ended("outbox/telegram", 2) if m.id == message_id)
    assert message.result["delivery"] == "ambiguous"
    document = await office.room.document(DELIVERY, message_id)
    assert document is not None
    assert [piece["state"] for piece in document.data["pieces"]] == ["ambiguous", "confirmed"]


async def test_a_piece_that_fails_never_sends_the_ones_before_it_again(office: TelegramOffice) -> None:
    telegram = office.telegram
    await telegram.write(ANN, "hi")
    await telegram.transcript.wait_for("echo: hi")
    held = telegram.faults.hold("sendMessage", "after")
    telegram.faults.plan("sendMessage", ServerFailed(500), ServerFailed(500))
    text = "\n\n".join(letter * 4000 for letter in "xyz")
    await publish(office, text)
    await held.reached.wait()
    held.release()
    for _ in range(2):
        await telegram.clock.wait_for_sleepers(2)
        telegram.clock.advance(5)
    await telegram.transcript.wait_for("zzz")
    assert [piece.text[0] for piece in telegram.transcript.select(chat=ANN.id)[1:]] == ["x", "y", "z"]


async def test_a_blocked_bot_leaves_a_dead_letter_that_says_why(office: TelegramOffice) -> None:
    await office.telegram.write(ANN, "hi")
    await office.telegram.transcript.wait_for("echo: hi")
    office.telegram.block(ANN)
    await publish(office, "are you there?")
    dead = (await office.ended("outbox/telegram", 2))[-1]
    assert dead.failure_kind == "undeliverable"
    assert "blocked" in (dead.failure_reason or "")


async def test_an_old_answer_is_not_sent_any_more(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with open_office(tmp_path, telegram, max_age_s=-1) as office:
        await office.pair(ANN)
        await telegram.write(ANN, "hi")
        [dead] = await office.ended("outbox/telegram", 1)
        assert dead.failure_kind == "too_old"
        assert telegram.transcript.deliveries == []


async def test_a_group_with_a_new_id_is_followed(office: TelegramOffice) -> None:
    telegram = office.telegram
    group = telegram.add_group("Old")
    await telegram.write(ANN, "@office_bot hi", chat=group)
    await telegram.transcript.wait_for("echo: hi", chat=group)
    moved = telegram.upgrade_group(group)
    await publish(office, "news", metadata={"address": {"chat": group}})
    await telegram.transcript.wait_for("news", chat=moved)


async def test_a_process_that_died_while_sending_repeats_nothing(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with open_office(tmp_path, telegram) as office:
        await office.pair(ANN)
        await telegram.write(ANN, "hi")
        await telegram.transcript.wait_for("echo: hi")
        message_id = await publish(office, "\n\n".join(letter * 4000 for letter in "xyz"))
        await telegram.transcript.wait_for("zzz")
        # As a process leaves it that dies after piece 2 went out and before its id was written.
        plan = {
            "channel": "telegram",
            "address": {"chat": ANN.id},
            "pieces": [
                {"piece": {"kind": "text", "text": {"text": text}}, "state": state}
                for text, state in (("one", "confirmed"), ("two", "sent"), ("three", "prepared"))
            ],
        }
        again = NewMessage(body={"text": "one two three"}, sender_id=ANN.id, channel="telegram", delay_s=1)
        [receipt] = await office.room.run(c.Publish(queue=queues.outbox("telegram"), messages=[again]))
        await office.room.run(c.PutDocument(kind=DELIVERY, key=receipt.id, data=plan, history=False))
        await telegram.transcript.wait_for(REMARK)
        assert telegram.transcript.texts(ANN.id)[-2:] == ["three", REMARK]
        assert message_id != receipt.id


async def test_two_pollers_are_told_apart_in_plain_words(office: TelegramOffice) -> None:
    async with aiohttp.ClientSession() as session:
        url = f"{office.telegram.url}/bot{office.telegram.token}/getUpdates"
        async with session.post(url, json={"timeout": 0}) as answer:
            assert answer.status == 200
    await until(lambda: office.runner.status.problem is not None)
    assert "another program receives for the same bot" in (office.runner.status.problem or "")

    async def receives() -> bool:
        office.telegram.clock.advance(61)
        return office.runner.status.receiving

    await until(receives)
    await office.telegram.write(ANN, "still there?")
    await office.telegram.transcript.wait_for("echo: still there?")


async def test_a_wrong_token_says_what_to_do(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with open_office(tmp_path, telegram, options={"bot_token": "1:wrong"}) as office:
        assert "@BotFather" in (office.runner.status.problem or "")
    for options in (
        {},
        {"bot_token": "your_token_here"},
        {"bot_token": "1:x", "webhook_url": "https://e.org"},
    ):
        with pytest.raises(ChannelMisconfigured):
            KIND.build("telegram", options)


async def push(office: TelegramOffice, secret: str, body: bytes) -> int:
    headers = {"x-telegram-bot-api-secret-token": secret} if secret else {}
    return (await office.runner.accept_webhook(WebhookRequest(headers=headers, body=body))).status


async def test_webhooks_are_taken_with_their_secret_only(telegram: FakeTelegram, tmp_path: Path) -> None:
    options = {"webhook_url": "http://127.0.0.1:9/hook", "webhook_secret": "s3cret"}
    async with open_office(tmp_path, telegram, options=options) as office:
        await office.pair(ANN)
        await until(lambda: telegram.webhook.url == "http://127.0.0.1:9/hook")
        telegram.webhook.url = None
        event = await telegram.write(ANN, "pushed")
        body = json.dumps(telegram._sent_updates[event.id]).encode()
        assert await push(office, "wrong", body) == 401
        assert await push(office, "", body) == 401
        assert await push(office, "s3cret", b"[]") == 400
        assert await office.messages("intake/telegram") == []
        for _ in range(3):
            assert await push(office, "s3cret", body) == 200
        await telegram.transcript.wait_for("echo: pushed")
        assert office.asked == ["pushed"]


async def test_a_message_nobody_can_take_is_answered_with_the_reason(
    office: TelegramOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.room.run(c.UpdateQueue(queue=queues.inbox("lead"), settings={"max_depth": 1}))
    held = asyncio.Event()
    office.puppet._act = lambda request: held.wait()
    for number in range(4):
        await office.telegram.write(BOB, f"message {number}")
        await office.telegram.write(ANN, f"message {number}")
    told = await office.telegram.transcript.wait_for("holds 1 of 1 messages")
    assert told
    office.puppet._act = echo
    held.set()
