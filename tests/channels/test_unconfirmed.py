"""Replies that no platform confirmed are listed, sent again with a word that says so, or let be."""

from pathlib import Path
from typing import Any, cast

import pytest

from postroom.channels.delivery_plan import DELIVERY
from postroom.channels.delivery_worker import REMARK
from postroom.channels.unconfirmed_retention import UnconfirmedRetention
from postroom.clock import ManualClock, SystemClock
from postroom.kernel.states import State
from postroom.providers.protocol import TurnRequest
from postroom.services import callers
from postroom.services.errors import OwnerOnly
from postroom.services.unconfirmed_replies import SENT_AGAIN, UnconfirmedNotFound, UnconfirmedReplies
from postroom.testing import ConnectionDropped, FakeTelegram, HeldClock
from tests.acceptance.office import until
from tests.channels.chat_platforms import PLATFORMS, ChatOffice, open_chat_office

OWNER = callers.owner()
PLATFORM = PLATFORMS["telegram"]
DAY_S = 24 * 3600.0


class _Context:
    """As much of the office's context as this service asks for."""

    def __init__(self, office: ChatOffice) -> None:
        self._office = office

    async def room(self) -> Any:
        return self._office.room


def serve(office: ChatOffice) -> UnconfirmedReplies:
    return UnconfirmedReplies(cast("Any", _Context(office)))


def answer(request: TurnRequest) -> str:
    return "**bold** words" if "hi" in request.prompt else f"echo: {request.prompt}"


def block(fake: FakeTelegram, request: TurnRequest) -> str:
    """Ann blocks the bot before it has answered."""
    fake.block(PLATFORM.people[0])
    return answer(request)


async def drop_answer(office: ChatOffice) -> str:
    """Ann's question is answered, and the answer gets lost on the way. The id of the answer."""
    await office.pair()
    await office.write("warm up")
    await office.hear("echo: warm up")
    office.fake.faults.plan(PLATFORM.sends, ConnectionDropped("before"))
    await office.write("hi")
    await office.hear(REMARK)
    found = await _wait_for_unconfirmed(office)
    return found[0].id


async def _wait_for_unconfirmed(office: ChatOffice) -> list[Any]:
    found: list[Any] = []

    async def is_there() -> bool:
        found[:] = await serve(office).list_all(OWNER)
        return bool(found)

    await until(is_there)
    return found


async def test_what_may_be_missing_is_sent_again_once_and_says_that_it_may_be_a_duplicate(
    tmp_path: Path,
) -> None:
    async with (
        PLATFORM.make(HeldClock(SystemClock().now())) as fake,
        open_chat_office(tmp_path, PLATFORM, fake, answer) as office,
    ):
        reply_id = await drop_answer(office)
        unconfirmed = serve(office)
        [listed] = await unconfirmed.list_all(OWNER, "telegram")
        assert (listed.state, listed.chat) == ("ambiguous", "1001")
        assert listed.text.startswith("bold words")
        assert "connection" in listed.reason
        assert await unconfirmed.list_all(OWNER, "discord") == []
        await unconfirmed.resend(OWNER, reply_id)
        [again] = await office.hear("bold words")
        assert again.markup, "it keeps its styles"
        fake.transcript.exactly_one(SENT_AGAIN)
        assert await unconfirmed.list_all(OWNER) == []
        with pytest.raises(UnconfirmedNotFound):
            await unconfirmed.resend(OWNER, reply_id)


async def test_what_is_let_be_is_neither_sent_nor_listed(tmp_path: Path) -> None:
    async with (
        PLATFORM.make(HeldClock(SystemClock().now())) as fake,
        open_chat_office(tmp_path, PLATFORM, fake, answer) as office,
    ):
        reply_id = await drop_answer(office)
        unconfirmed = serve(office)
        for act in (unconfirmed.dismiss, unconfirmed.resend):
            with pytest.raises(OwnerOnly):
                await act(callers.agent("lead"), reply_id)
            with pytest.raises(UnconfirmedNotFound):
                await act(OWNER, reply_id, "nothing")
        await unconfirmed.dismiss(OWNER, reply_id)
        assert await unconfirmed.list_all(OWNER) == []
        assert await office.room.document(DELIVERY, reply_id) is None
        assert fake.transcript.select("bold words") == []
        with pytest.raises(UnconfirmedNotFound):
            await unconfirmed.dismiss(OWNER, reply_id)


async def test_what_was_given_up_is_sent_again_or_let_be(tmp_path: Path) -> None:
    async with (
        PLATFORM.make(HeldClock(SystemClock().now())) as fake,
        open_chat_office(tmp_path, PLATFORM, fake, lambda request: block(fake, request)) as office,
    ):
        await office.pair()
        unconfirmed = serve(office)
        await office.write("hi")
        [listed] = await _wait_for_unconfirmed(office)
        assert listed.state == "abandoned"
        assert listed.text.startswith("bold words")
        fake.unblock(office.ann)
        await unconfirmed.resend(OWNER, listed.id)
        await office.hear("bold words")
        assert fake.transcript.select(SENT_AGAIN) == []
        assert await unconfirmed.list_all(OWNER) == []
        await office.write("hi again")
        [listed] = await _wait_for_unconfirmed(office)
        await unconfirmed.dismiss(OWNER, listed.id)
        assert (await office.room.get(listed.id)).state is State.CANCELLED
        assert await unconfirmed.list_all(OWNER) == []


async def test_what_nobody_sent_again_is_listed_as_long_as_dead_letters_and_no_longer(tmp_path: Path) -> None:
    clock = HeldClock(SystemClock().now())
    async with (
        PLATFORM.make(clock) as fake,
        open_chat_office(tmp_path, PLATFORM, fake, answer) as office,
    ):
        reply = await drop_answer(office)
        later = ManualClock(SystemClock().now())
        retention = UnconfirmedRetention(office.room, PLATFORM.name, later, keep_s=DAY_S)
        await retention.forget_old()
        assert [each.id for each in await serve(office).list_all(OWNER)] == [reply]
        later.advance(DAY_S + 60)
        await UnconfirmedRetention(office.room, "another", later, keep_s=DAY_S).forget_old()
        assert [each.id for each in await serve(office).list_all(OWNER)] == [reply]
        await retention.forget_old()
        assert await serve(office).list_all(OWNER) == []
        assert (await office.room.get(reply)).result["delivery"] == "ambiguous"
