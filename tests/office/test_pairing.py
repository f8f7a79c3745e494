"""Who may write: a code once, then silence; approved, revoked, dismissed by the owner; always bounded."""

import asyncio

import pytest

from postroom import Room
from postroom.clock import ManualClock, iso
from postroom.errors import InvalidField
from postroom.office.pairing import (
    ALPHABET,
    CodeNotFound,
    PairingLimits,
    PairingNotFound,
    Pairings,
    reply_with,
)


async def code_of(pairings: Pairings, sender_id: str, channel: str = "telegram") -> str:
    admission = await pairings.admit(channel, sender_id, "Bob")
    assert not admission.approved
    [code] = [entry.code for entry in await pairings.waiting() if entry.sender_id == sender_id]
    assert admission.reply == reply_with(code)
    return code


async def test_a_stranger_gets_a_code_once_and_then_silence(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    code = await code_of(pairings, "42")
    assert len(code) == 8
    assert set(code) <= set(ALPHABET)
    for _ in range(3):
        admission = await pairings.admit("telegram", "42", "Bob")
        assert (admission.approved, admission.reply) == (False, None)
    [entry] = await pairings.waiting()
    assert entry.document() == {
        "channel": "telegram",
        "senderId": "42",
        "sender": "Bob",
        "code": code,
        "createdAt": clock.now() // 1000,
        "lastSeenAt": clock.now() // 1000,
        "created_at": iso(clock.now()),
        "last_seen_at": iso(clock.now()),
    }


def test_the_reply_has_four_lines_and_says_what_to_do() -> None:
    lines = reply_with("ABCD2345").splitlines()
    assert len(lines) == 4
    assert lines[1] == "Your pairing code: ABCD2345"
    assert lines[3].endswith("pairing approve ABCD2345")


async def test_who_is_approved_may_write(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    code = await code_of(pairings, "42")
    clock.advance(5)
    entry = await pairings.approve(f" {code.lower()} ")
    assert (await pairings.admit("telegram", "42", "Bob")).approved
    assert await pairings.waiting() == []
    assert [each.document() for each in await pairings.approved()] == [
        {
            "channel": "telegram",
            "senderId": "42",
            "sender": "Bob",
            "approvedAt": clock.now() // 1000,
            "approvedCode": code,
            "approved_at": iso(clock.now()),
            "role": "owner",
        }
    ]
    assert entry.sender_id == "42"
    assert not (await pairings.admit("discord", "42", "Bob")).approved, "another channel is another person"
    assert not (await pairings.admit("telegram", "421", "Bob")).approved
    with pytest.raises(CodeNotFound, match=code):
        await pairings.approve(code)


async def test_an_approval_does_not_expire_and_a_new_name_is_kept(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    await pairings.approve(await code_of(pairings, "42"))
    clock.advance(400 * 86_400)
    assert (await pairings.admit("telegram", "42", "Robert")).approved
    assert [entry.sender for entry in await pairings.approved()] == ["Robert"]


async def test_who_is_revoked_begins_anew(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    code = await code_of(pairings, "42")
    with pytest.raises(PairingNotFound):
        await pairings.revoke("telegram", "42")
    await pairings.approve(code)
    await pairings.revoke("telegram", "42")
    with pytest.raises(PairingNotFound, match="42"):
        await pairings.revoke("telegram", "42")
    assert await code_of(pairings, "42") != code


async def test_who_is_dismissed_may_ask_again(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    code = await code_of(pairings, "42")
    await pairings.dismiss(code.lower())
    assert await pairings.waiting() == []
    for wrong in (code, "", "ZZZZZZZZ", "half a \ud83d smile"):
        with pytest.raises(CodeNotFound):
            await pairings.dismiss(wrong)
    await code_of(pairings, "42")


async def test_a_code_does_not_live_for_ever(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    code = await code_of(pairings, "42")
    clock.advance(24 * 3600)
    assert await pairings.waiting() == []
    with pytest.raises(CodeNotFound):
        await pairings.approve(code)
    assert await code_of(pairings, "42") != code


async def test_strangers_have_a_bound(
    room: Room, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    pairings = Pairings(room, clock, PairingLimits(waiting=3))
    for number in range(3):
        await code_of(pairings, str(number))
    assert (await pairings.admit("telegram", "late", "Eve")).reply is None
    assert len(await pairings.waiting()) == 3
    assert "too many" in caplog.text
    clock.advance(24 * 3600)
    await code_of(pairings, "late")
    assert len(await room.documents("pairing")) == 1, "what has expired is forgotten"


async def test_codes_have_a_pace(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock, PairingLimits(codes_an_hour=2))
    for number in range(2):
        await pairings.dismiss(await code_of(pairings, str(number)))
    assert (await pairings.admit("telegram", "third", "Eve")).reply is None
    await code_of(pairings, "other", "discord")
    clock.advance(3600)
    await code_of(pairings, "third")


async def test_a_stranger_who_writes_much_makes_little_work(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    await code_of(pairings, "42")
    before = await room.head()
    for _ in range(50):
        await pairings.admit("telegram", "42", "Bob")
    assert (await room.head()).seq == before.seq
    clock.advance(60)
    await pairings.admit("telegram", "42", "Bob")
    [entry] = await pairings.waiting()
    assert entry.seen_at == clock.now()


async def test_many_first_messages_at_once_get_one_code(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    admissions = await asyncio.gather(*(pairings.admit("telegram", "42", "Bob") for _ in range(10)))
    assert len([each for each in admissions if each.reply]) == 1
    [entry] = await pairings.waiting()
    await asyncio.gather(
        pairings.approve(entry.code), pairings.admit("telegram", "42", "Robert"), return_exceptions=True
    )
    assert [each.sender_id for each in await pairings.approved()] == ["42"]


async def test_odd_names_are_refused_or_cut(room: Room, clock: ManualClock) -> None:
    pairings = Pairings(room, clock)
    for channel, sender_id in (("", "42"), ("telegram", " "), ("telegram", "x" * 201), ("a/b", "1")):
        with pytest.raises(InvalidField):
            await pairings.admit(channel, sender_id, "Bob")
    await pairings.admit("telegram", "42", "half a \ud83d smile" + "x" * 500)
    [entry] = await pairings.waiting()
    assert len(entry.sender) == 200
