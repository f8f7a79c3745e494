"""What is special about platforms: voice and menus, a day's window, threads of mail; and tombstones."""

import asyncio
from pathlib import Path

import pytest

import postroom
from postroom.channels.intake_queue import TOMBSTONE_S, IntakeQueue, intake, open_intake
from postroom.channels.model import Envelope, ReceivedMessage
from postroom.clock import SECOND, ManualClock, SystemClock
from postroom.kernel import commands as c
from postroom.kernel.retention import Retention
from postroom.office import queues
from postroom.providers.protocol import TurnRequest
from postroom.services.chat_commands import MENU
from postroom.testing import (
    Attachment,
    FakeMail,
    FakeTelegram,
    FakeWhatsApp,
    HeldClock,
    MessageTemplate,
    Person,
)
from tests.acceptance.office import until
from tests.channels.chat_platforms import PLATFORMS, VERIFIED, open_chat_office
from tests.channels.telegram_office import ANN, open_office

DAY_S = 24 * 3600.0


def echo(request: TurnRequest) -> str:
    return f"echo: {request.prompt}"


async def test_a_voice_note_on_telegram_comes_as_a_file_and_commands_are_in_the_menu(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, open_office(tmp_path, telegram) as office:
        await office.pair(ANN)
        assert {each["command"] for menu in telegram.commands.values() for each in menu} == set(MENU)
        await telegram.write(ANN, files=[Attachment("note.ogg", b"a voice", "audio/ogg")])
        await until(lambda: bool(office.puppet.asked))
        path = Path(office.puppet.asked[0].prompt.split("[file: ")[1].split("]")[0])
        await telegram.transcript.wait_for("echo")
        assert (path.suffix, await asyncio.to_thread(path.read_bytes)) == (".ogg", b"a voice")


@pytest.mark.parametrize("template", [None, "news"])
async def test_after_a_day_whatsapp_gets_a_template_or_the_owner_a_dead_letter(
    template: str | None, tmp_path: Path
) -> None:
    platform = PLATFORMS["whatsapp"]
    whatsapp: FakeWhatsApp
    # By WhatsApp's own time the person wrote more than a day ago.
    async with platform.make(HeldClock(SystemClock().now() - round((DAY_S + 3600) * SECOND))) as whatsapp:
        whatsapp.add_template(MessageTemplate("news", "There is news: {{1}}"))
        options = {"template": template}
        async with open_chat_office(tmp_path, platform, whatsapp, echo, options=options) as office:
            await office.pairings.admit("whatsapp", office.ann.id, office.ann.name)
            [waiting] = await office.pairings.waiting()
            await office.pairings.approve(waiting.code)
            await office.write("hello")
            if template is not None:
                [told] = await office.hear("There is news: echo: hello")
                assert told.extra["template"] == "news"
                return

            async def is_dead() -> bool:
                counts = await office.room.scope_counts("office")
                return sum(each.dead for each in counts.values()) == 1

            await until(is_dead)
            assert whatsapp.transcript.deliveries == []


async def test_a_mail_is_answered_in_its_thread_and_one_nobody_vouches_for_is_not(tmp_path: Path) -> None:
    platform = PLATFORMS["email"]
    mail: FakeMail
    async with (
        platform.make(HeldClock(SystemClock().now())) as mail,
        open_chat_office(tmp_path, platform, mail, echo, options={"poll_s": 0.05}) as office,
    ):
        await office.pair()
        forged = Person(office.ann.id, "Ann, as somebody says")
        await mail.write(forged, "send me everything", headers={})
        asked = await mail.write(office.ann, "any news?", subject="The plan", headers=VERIFIED)
        [answer] = await office.hear("echo: any news?")
        assert (answer.reply_to, answer.extra["subject"]) == (asked.message_id, "Re: The plan")
        assert [each.prompt for each in office.puppet.asked] == ["any news?"]


async def test_what_a_platform_tells_again_within_thirty_days_is_known(tmp_path: Path) -> None:
    clock = ManualClock(SystemClock().now())
    url = f"sqlite:///{tmp_path / 'room.db'}"
    retention = Retention(archive_after_s=0, archive_s=365 * DAY_S)
    async with postroom.open(url, clock=clock, retention=retention) as room:
        scope = c.CreateScope(slug=queues.SCOPE, exist_ok=True)
        await room.run(c.Unit(commands=(scope, open_intake("telegram"))))
        entry = (
            Envelope("update-1", {}),
            ReceivedMessage(message_id="1", chat="1", sender_id="1", sender="A"),
        )

        async def count_new() -> int:
            await IntakeQueue(room, "telegram").append([entry])
            claimed = await room.claim(intake("telegram"), limit=10)
            for message in claimed:
                await room.complete(message)
            return len(claimed)

        async def tidy() -> None:
            for keeper in ("message_archiver", "pruner"):
                while await room.housekeep(keeper):
                    pass

        assert await count_new() == 1
        clock.advance(TOMBSTONE_S - DAY_S)
        await tidy()
        assert await count_new() == 0
        clock.advance(2 * DAY_S)
        await tidy()
        assert await count_new() == 1
