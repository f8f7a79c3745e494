"""Listeners miss nothing and repeat nothing, however often they leave, and never slow anybody down."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import Room
from postroom.api.stream.frames import LAST_PART, EventFilter, StreamPosition, place
from postroom.api.stream.tail import EventTail
from postroom.errors import InvalidField, StoreFailed
from postroom.kernel.ledger import Event
from tests.api.house import TOKEN, House, opened
from tests.api.stream_client import listening

EVERYTHING = EventFilter()


async def translate(event: Event) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Each note is told in two parts, everything else not at all."""
    if event.type != "record.note":
        return ()
    key = event.details["key"]
    return [("new", {"n": int(key), "agentId": f"a{int(key) % 2}"}), ("old", {"n": int(key), "teamId": "t"})]


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with postroom.open(str(tmp_path / "room.db"), durability="relaxed") as room:
        yield room


async def notes(room: Room, first: int, last: int) -> None:
    for number in range(first, last):
        await room.record("note", str(number), {})


async def heard(
    tail: EventTail, start: StreamPosition, count: int, wanted: EventFilter = EVERYTHING
) -> list[str]:
    """The names and ids of the first so many frames."""
    found: list[str] = []
    async with asyncio.timeout(120), aclosing(tail.listen(start, wanted)) as wires:
        async for wire in wires:
            for frame in wire.decode().split("\n\n"):
                if frame and not frame.startswith(":"):
                    lines = dict(line.split(": ", 1) for line in frame.split("\n"))
                    found.append(f"{lines['event']} {lines['id']} {lines['data']}")
            if len(found) >= count:
                return found
    return found


async def test_whoever_comes_back_goes_on_exactly_where_it_left(room: Room) -> None:
    tail = EventTail(room, translate, kept=10)
    await tail.open()
    start = tail.end
    await notes(room, 0, 100)
    whole = await heard(tail, start, 200)
    assert len(whole) == 200
    assert len(set(whole)) == 200
    for cut in (0, 1, 2, 77, 150, 198):
        seen = place(whole[cut].split()[1], "id")
        assert await heard(tail, seen, 199 - cut) == whole[cut + 1 :]
    await tail.close()


async def test_what_happened_between_two_places_is_told_and_the_stream_ends(room: Room) -> None:
    tail = EventTail(room, translate, kept=10)
    await tail.open()
    start = tail.end
    await notes(room, 0, 100)
    whole = await heard(tail, start, 200)

    async def told(since: str, until: str) -> list[str]:
        wires = tail.listen(place(since, "since"), EVERYTHING, place(until, "until"))
        async with asyncio.timeout(120):
            text = "".join([wire.decode() async for wire in wires])
        return re.findall(r"^id: (\S+)$", text, re.MULTILINE)

    ids = [line.split()[1] for line in whole]
    assert await told(str(start), ids[9]) == ids[:10]
    assert await told(ids[9], ids[150]) == ids[10:151]
    assert await told(ids[190], ids[199]) == ids[191:]
    assert await told(ids[199], "999999") == [], "where all is told it ends too"
    await tail.close()


async def test_a_listener_that_is_slow_falls_behind_and_catches_up_without_a_gap(room: Room) -> None:
    tail = EventTail(room, translate, kept=20)
    await tail.open()
    found: list[str] = []
    async with asyncio.timeout(120), aclosing(tail.listen(tail.end, EventFilter())) as wires:
        await notes(room, 0, 5)
        found += (await anext(wires)).decode().split("\n\n")
        await notes(room, 5, 400)
        while len([f for f in found if f]) < 800:
            found += (await anext(wires)).decode().split("\n\n")
    numbers = [int(f.split('"n":')[1].split(",")[0]) for f in found if "event: new" in f]
    assert numbers == list(range(400))
    assert len(tail._frames) <= 40
    await tail.close()


async def test_a_tail_begun_later_tells_what_was_before_it(room: Room) -> None:
    await notes(room, 0, 30)
    tail = EventTail(room, translate)
    await tail.open()
    assert len(await heard(tail, StreamPosition(0), 60)) == 60
    await tail.close()


async def test_whoever_catches_up_while_more_happens_misses_nothing(room: Room) -> None:
    await notes(room, 0, 50)
    tail = EventTail(room, translate)
    await tail.open()
    writing: list[asyncio.Task[None]] = []

    async def busy(event: Event) -> Sequence[tuple[str, Mapping[str, Any]]]:
        if len(writing) < 20:
            # The tail goes on while one who is behind still reads.
            first = 50 + 5 * len(writing)
            writing.append(asyncio.create_task(notes(room, first, first + 5)))
            await writing[-1]
            await asyncio.sleep(0.01)
        return await translate(event)

    tail._translate = busy
    found = await heard(tail, StreamPosition(0), 300)
    numbers = [int(line.split('"n":')[1].split(",")[0]) for line in found if line.startswith("new")]
    assert sorted(numbers) == list(range(150))
    await tail.close()


async def test_only_what_is_wanted_is_told(room: Room) -> None:
    tail = EventTail(room, translate)
    await tail.open()
    start = tail.end
    await notes(room, 0, 10)
    only = await heard(tail, start, 5, EventFilter(types=frozenset({"new"}), agents=frozenset({"a1"})))
    assert ['"n":1,' in only[0], len(only)] == [True, 5]
    assert len(await heard(tail, start, 10, EventFilter(teams=frozenset({"t"})))) == 10
    await tail.close()


async def test_one_event_that_cannot_be_told_silences_nobody(room: Room) -> None:
    async def moody(event: Event) -> Sequence[tuple[str, Mapping[str, Any]]]:
        if event.type == "record.note" and event.details["key"] == "3":
            raise KeyError("odd")
        return await translate(event)

    tail = EventTail(room, moody)
    await tail.open()
    start = tail.end
    await notes(room, 0, 6)
    found = await heard(tail, start, 10)
    assert ['"n":3' in line for line in found].count(True) == 0
    assert len(found) == 10
    await tail.close()


async def test_events_that_a_failing_store_kept_from_being_told_are_told_when_it_is_back(room: Room) -> None:
    failures = 3

    async def failing(event: Event) -> Sequence[tuple[str, Mapping[str, Any]]]:
        nonlocal failures
        if event.type == "record.note" and event.details["key"] == "3" and failures:
            failures -= 1
            raise StoreFailed(path="db", reason="the server is away")
        return await translate(event)

    tail = EventTail(room, failing)
    await tail.open()
    start = tail.end
    await notes(room, 0, 6)
    found = await heard(tail, start, 12)
    assert [int(line.split('"n":')[1].split(",")[0]) for line in found] == [n // 2 for n in range(12)]
    assert not failures
    await tail.close()


async def test_silence_is_broken_by_comments(room: Room) -> None:
    tail = EventTail(room, translate, keep_alive_s=0.05)
    await tail.open()
    async with asyncio.timeout(60), aclosing(tail.listen(tail.end, EventFilter())) as wires:
        assert (await anext(wires)).startswith(b":")
    await tail.close()


async def test_closing_ends_every_listener(room: Room) -> None:
    tail = EventTail(room, translate)
    await tail.open()

    async def all_of_it() -> list[bytes]:
        return [wire async for wire in tail.listen(tail.end, EventFilter())]

    tasks = [asyncio.create_task(all_of_it()) for _ in range(3)]
    await asyncio.sleep(0)
    await tail.close()
    async with asyncio.timeout(60):
        assert await asyncio.gather(*tasks) == [[], [], []]
    assert tail.listeners == 0


@pytest.mark.parametrize("text", ["", "x", "-1", "1.", "1.x", "1.2.3", "9" * 30, "٣"])
def test_an_id_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidField):
        place(text, "since")


def test_ids_lead_back_to_their_place() -> None:
    for at in (StreamPosition(5, 0), StreamPosition(7, 3), StreamPosition(9, LAST_PART)):
        assert place(str(at), "id") == at


async def test_the_stream_over_http_greets_and_resumes(house: House) -> None:
    async with listening(house.http) as listener:
        assert listener.response.headers["content-type"].startswith("text/event-stream")
        assert listener.last_id
    answer = await house.http.get("/api/events/stream", params={"since": "nonsense"})
    assert answer.status_code == 422
    assert "since" in answer.json()["error"]


async def test_a_listener_that_hangs_up_is_forgotten(house: House) -> None:
    async with listening(house.http):
        pass
    async with listening(house.http), listening(house.http):
        pass


async def test_listeners_that_do_not_read_slow_nobody_and_lose_nothing(tmp_path: Path) -> None:
    """They are behind by more than fits into any buffer, and by more than the tail keeps in memory."""
    count, long_text = 400, "x" * 100
    limits = {"inbox_depth": 100_000}
    async with opened(tmp_path, works=False, limits=limits) as house:
        port = int(house.url.rpartition(":")[2])
        stalled: list[socket.socket] = []
        for _ in range(20):
            lazy = socket.socket()
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            await asyncio.to_thread(lazy.connect, ("127.0.0.1", port))
            head = (
                f"GET /api/events/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
            )
            lazy.sendall(head.encode())
            stalled.append(lazy)

        async def post(number: int) -> None:
            mail = {"message": f"@coder {number} {long_text}", "channel": "web", "messageId": f"m{number}"}
            assert (await house.http.post("/api/message", json=mail)).status_code == 200

        async with listening(house.http, params={"type": "message:incoming"}) as good:
            for first in range(0, count, 20):
                await asyncio.gather(*(post(number) for number in range(first, first + 20)))
            told = await good.take(count, within=120)
        assert sorted(int(data["messageId"][1:]) for _, data in told) == list(range(count))

        def all_of_it() -> bytes:
            lazy, data = stalled[7], b""
            lazy.settimeout(120)
            while data.count(b"event: message:incoming") < count:
                data += lazy.recv(65536)
            return data

        late = await asyncio.to_thread(all_of_it)
        ids = re.findall(rb"^id: (\d+)\.(\d+)\r?$", late, re.MULTILINE)
        order = [(int(seq), int(part)) for seq, part in ids]
        assert order == sorted(set(order))
        heard_late = re.findall(rb'"type":"message:incoming".*?"messageId":"m(\d+)"', late)
        assert [int(number) for number in heard_late] == [int(data["messageId"][1:]) for _, data in told]
        for lazy in stalled:
            lazy.close()


async def test_whoever_is_ahead_of_a_restored_store_is_told_that_the_past_has_changed(still: House) -> None:
    await still.room.record("note", "1", {})
    last = (await still.room.head()).seq
    ahead = {"Last-Event-ID": str(last + 1000)}
    async with listening(still.http, headers=ahead) as listener:
        name, data = await listener.next()
        assert (name, data["last"], data["after"]) == ("events:changed", last, str(last + 1000))
        assert "The past has changed" in data["message"]
        assert listener.last_id == str(last)
        sent = {"message": "@coder hello", "channel": "web", "sender": "Ann"}
        assert (await still.http.post("/api/message", json=sent)).status_code == 200
        await listener.next()
