"""What was said in a session is found again: the end of it, and without reading all of it each time."""

from typing import Any, cast

from postroom.kernel.model import Record
from postroom.office.ports import RoomPort
from postroom.office.sessions import HISTORY_CHARS, ProviderSession, Sessions

SESSION = ProviderSession(key="coder", ids={"api": "s1"})


class Shelf:
    """The exchanges of one session; it counts how many are read."""

    def __init__(self) -> None:
        self.kept: list[Record] = []
        self.read = 0

    def say(self, prompt: str, answer: str) -> None:
        number = len(self.kept) + 1
        fields: dict[str, Any] = dict.fromkeys(Record.__struct_fields__)
        own = {
            "id": number,
            "kind": "exchange",
            "key": "api/s1",
            "data": {"prompt": prompt, "answer": answer},
        }
        self.kept.append(Record(**{**fields, **own}))

    async def records(self, kind: str, key: str, *, after: int = 0, limit: int = 100) -> list[Record]:
        found = [record for record in self.kept if record.id > after][:limit]
        self.read += len(found)
        return found


async def test_a_long_session_is_not_read_from_its_beginning_at_every_turn() -> None:
    shelf = Shelf()
    sessions = Sessions(cast(RoomPort, shelf), {})
    size = HISTORY_CHARS // 10
    for number in range(300):
        shelf.say(f"{number}".ljust(size - 1, "."), "a")
    for number in range(300, 305):
        first = await sessions.history(SESSION, "api")
        assert len(first) == 2 * 10
        assert first[-2].text.startswith(str(number - 1))
        again = await Sessions(cast(RoomPort, shelf), {}).history(SESSION, "api")
        assert first == again, "who begins anew finds the same"
        shelf.say(f"{number}".ljust(size - 1, "."), "a")
    shelf.read = 0
    await sessions.history(SESSION, "api")
    assert shelf.read <= 12


async def test_words_that_are_too_long_alone_leave_room_for_what_comes_later() -> None:
    shelf = Shelf()
    sessions = Sessions(cast(RoomPort, shelf), {})
    shelf.say("short", "yes")
    shelf.say("x" * HISTORY_CHARS, "too long")
    assert await sessions.history(SESSION, "api") == ()
    shelf.say("later", "yes")
    assert [said.text for said in await sessions.history(SESSION, "api")] == ["later", "yes"]
