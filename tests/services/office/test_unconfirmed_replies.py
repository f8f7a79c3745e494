"""Replies that no platform confirmed: what the owner sees of them, and what their answers do."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from postroom.channels.delivery_plan import DELIVERY, DeliveryPlan, PieceState, PlannedPiece
from postroom.channels.model import Address, Piece, PieceKind
from postroom.channels.styled_text import StyledText
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.kernel.states import State
from postroom.office import queues
from postroom.services import callers
from postroom.services.errors import OwnerOnly
from postroom.services.need_answers import give_answer
from postroom.services.needs_you import NeedKind
from postroom.services.unconfirmed_replies import SENT_AGAIN, UnconfirmedNotFound, UnconfirmedReplies
from tests.api.house import House, opened

OWNER = callers.owner()
OUTBOX = queues.outbox("telegram")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path, works=False) as house:
        yield house


@pytest.fixture
def unconfirmed(house: House) -> UnconfirmedReplies:
    return house.deps.services.unconfirmed


async def leave_unconfirmed(
    house: House, text: str, states: Sequence[PieceState] = (PieceState.AMBIGUOUS,), *, dead: bool = False
) -> str:
    """A reply whose pieces ended so, as a channel leaves it."""
    message = NewMessage(body={"text": text}, channel="telegram", sender="Ben", sender_id="7001")
    _, [receipt] = await house.room.run(
        c.Unit(commands=(queues.open_outbox("telegram"), c.Publish(queue=OUTBOX, messages=[message])))
    )
    [claimed] = await house.room.claim(OUTBOX)
    pieces = [
        PlannedPiece(
            piece=Piece(kind=PieceKind.TEXT, text=StyledText(f"{text} ({number})")),
            state=state,
            reason="it broke",
        )
        for number, state in enumerate(states)
    ]
    plan = DeliveryPlan(channel="telegram", address=Address(chat="7001"), pieces=tuple(pieces))
    put = c.PutDocument(kind=DELIVERY, key=receipt.id, data=msgspec.to_builtins(plan), history=False)
    await house.room.run(put)
    if dead:
        await house.room.fail(claimed, "it broke", retry=False)
    else:
        await house.room.complete(claimed)
    return receipt.id


async def read_outbox(house: House) -> list[dict[str, object]]:
    return [message.body for message in await house.room.claim(OUTBOX, limit=10)]


async def test_the_ambiguous_pieces_are_sent_again_with_a_word_and_no_others(
    house: House, unconfirmed: UnconfirmedReplies
) -> None:
    reply = await leave_unconfirmed(house, "news", (PieceState.CONFIRMED, PieceState.AMBIGUOUS))
    [listed] = await unconfirmed.list_all(OWNER)
    assert (listed.id, listed.state, listed.text, listed.reason) == (
        reply,
        "ambiguous",
        "news (1)",
        "it broke",
    )
    await unconfirmed.resend(OWNER, reply)
    [body] = await read_outbox(house)
    assert body["text"] == SENT_AGAIN
    assert [piece["text"]["text"] for piece in msgspec.convert(body["pieces"], list[dict])] == ["news (1)"]
    assert await unconfirmed.list_all(OWNER) == []


async def test_what_is_on_its_way_or_arrived_is_not_listed_and_not_touched(
    house: House, unconfirmed: UnconfirmedReplies
) -> None:
    sending = await leave_unconfirmed(house, "news", (PieceState.AMBIGUOUS, PieceState.SENT))
    arrived = await leave_unconfirmed(house, "news", (PieceState.CONFIRMED,))
    assert await unconfirmed.list_all(OWNER) == []
    for reply in (sending, arrived):
        for act in (unconfirmed.resend, unconfirmed.dismiss):
            with pytest.raises(UnconfirmedNotFound):
                await act(OWNER, reply)


async def test_other_messages_are_not_touched(house: House, unconfirmed: UnconfirmedReplies) -> None:
    await house.room.create_queue("office/orders", exist_ok=True)
    order = await house.room.publish("office/orders", {"text": "an order"})
    await house.room.fail((await house.room.claim("office/orders"))[0], "it broke", retry=False)
    for act in (unconfirmed.resend, unconfirmed.dismiss):
        with pytest.raises(UnconfirmedNotFound):
            await act(OWNER, order.id)
    assert (await house.room.get(order.id)).state is State.DEAD


async def test_what_was_given_up_is_replayed_or_discarded(
    house: House, unconfirmed: UnconfirmedReplies
) -> None:
    first = await leave_unconfirmed(house, "one", (PieceState.ABANDONED,), dead=True)
    second = await leave_unconfirmed(house, "two", (PieceState.ABANDONED,), dead=True)
    assert [(each.id, each.state) for each in await unconfirmed.list_all(OWNER)] == [
        (first, "abandoned"),
        (second, "abandoned"),
    ]
    await unconfirmed.resend(OWNER, first)
    assert (await house.room.get(first)).state is State.PENDING
    await unconfirmed.dismiss(OWNER, second)
    assert (await house.room.get(second)).state is State.CANCELLED
    assert await house.room.document(DELIVERY, second) is None
    assert await unconfirmed.list_all(OWNER) == []


async def test_a_dead_reply_that_no_channel_took_up_is_dismissed_too(
    house: House, unconfirmed: UnconfirmedReplies
) -> None:
    reply = await leave_unconfirmed(house, "one", (PieceState.ABANDONED,), dead=True)
    await house.room.run(c.DropDocument(kind=DELIVERY, key=reply))
    await unconfirmed.dismiss(OWNER, reply)
    assert (await house.room.get(reply)).state is State.CANCELLED


async def test_the_owner_is_told_of_them_and_answers_there(
    house: House, unconfirmed: UnconfirmedReplies
) -> None:
    services = house.deps.services
    for word in ("resend", "dismiss"):
        await leave_unconfirmed(house, "news")
        await leave_unconfirmed(house, "more news")
        [need] = await services.needs_you.list_all(OWNER)
        assert (need.kind, need.is_blocking) == (NeedKind.UNCONFIRMED, False)
        assert need.title == "2 answers may not have arrived on telegram"
        await give_answer(services, OWNER, need, word)
        assert await services.needs_you.list_all(OWNER) == []
        assert len(await read_outbox(house)) == (2 if word == "resend" else 0)
    dead = await leave_unconfirmed(house, "one", (PieceState.ABANDONED,), dead=True)
    [need] = await services.needs_you.list_all(OWNER)
    assert need.kind is NeedKind.DELIVERY
    await give_answer(services, OWNER, need, "discard")
    assert await house.room.document(DELIVERY, dead) is None


async def test_only_the_owner_sees_and_decides(house: House, unconfirmed: UnconfirmedReplies) -> None:
    reply = await leave_unconfirmed(house, "news")
    agent = callers.agent("coder")
    for asked in (
        unconfirmed.list_all(agent),
        unconfirmed.resend(agent, reply),
        unconfirmed.dismiss(agent, reply),
    ):
        with pytest.raises(OwnerOnly):
            await asked
    assert len(await unconfirmed.list_all(OWNER)) == 1
