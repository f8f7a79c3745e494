"""People and programs around an office of many processes: they know only what they were told."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx2

from postroom.channels.delivery_worker import REMARK
from postroom.testing import FakeTelegram, Person
from tests.acceptance.office import until
from tests.acceptance.processes.office import ANSWERS, OfficeProcesses

ANN, BOB, CAS = (Person(str(1001 + at), name, name.lower()) for at, name in enumerate(("Ann", "Bob", "Cas")))
PAUSE_S = 0.05


async def pair(office: OfficeProcesses, telegram: FakeTelegram, *people: Person) -> None:
    async with httpx2.AsyncClient(base_url=office.url("api-1"), headers=office.headers, timeout=60) as http:
        for person in people:
            await telegram.write(person, "hello?")
        for person in people:
            await until(lambda p=person: telegram.transcript.select("pairing code", chat=p.id), within=120)
            [said] = telegram.transcript.select("pairing code", chat=person.id)
            code = said.text.split("pairing code: ")[1].split()[0]
            answer = await http.post("/api/pairing/approve", json={"code": code})
            assert answer.is_success, answer.text


class Listener:
    """Hears the live events, of one API process and then of the other, each time from where it was."""

    def __init__(self, office: OfficeProcesses) -> None:
        self._office = office
        self.last_id = ""
        self.ids: list[str] = []
        self.connections: Counter[str] = Counter()

    async def listen(self) -> None:
        turn = 0
        while True:
            name = ("api-1", "api-2")[turn % 2]
            turn += 1
            try:
                await self._listen_to(name)
            except (httpx2.TransportError, AssertionError):
                await asyncio.sleep(PAUSE_S)

    async def _listen_to(self, name: str) -> None:
        headers = {**self._office.headers, **({"last-event-id": self.last_id} if self.last_id else {})}
        params = {} if self.last_id else {"since": "0"}
        async with (
            httpx2.AsyncClient(base_url=self._office.url(name), headers=headers, timeout=60) as http,
            http.stream("GET", "/api/events/stream", params=params) as response,
        ):
            self.connections[name] += 1
            async for event in httpx2.EventSource(response):
                if event.event != "connected":
                    self.last_id = event.id
                    self.ids.append(event.id)

    async def hear_all_again(self, upto: str) -> list[str]:
        """What somebody hears who comes only now."""
        later = Listener(self._office)
        hearing = asyncio.create_task(later.listen())
        await until(lambda: upto in later.ids, within=120)
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
        return later.ids[: later.ids.index(upto) + 1]


@asynccontextmanager
async def listening(office: OfficeProcesses) -> AsyncIterator[Listener]:
    listener = Listener(office)
    hearing = asyncio.create_task(listener.listen())
    try:
        yield listener
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)


async def post(office: OfficeProcesses, text: str, message_id: str) -> None:
    """As a program does that was told nothing: to any API process, again until one has accepted it."""
    body = {"message": text, "channel": "web", "sender": "Dan", "messageId": message_id}
    for turn in range(2000):
        name = ("api-1", "api-2")[turn % 2]
        try:
            async with httpx2.AsyncClient(
                base_url=office.url(name), headers=office.headers, timeout=60
            ) as http:
                answer = await http.post("/api/message", json=body)
        except (httpx2.TransportError, AssertionError):
            await asyncio.sleep(PAUSE_S)
            continue
        if answer.status_code in (200, 409):
            return
        assert answer.status_code == 503, answer.text
        await asyncio.sleep(PAUSE_S)
    raise AssertionError(f"nobody took {message_id}")


def received(telegram: FakeTelegram, person: Person, name: str) -> list[int]:
    """How often each answer of a conversation reached its person."""
    texts = telegram.transcript.texts(person.id)
    return [sum(answer.format(name) in text for text in texts) for answer in ANSWERS]


async def wait_for_answers(
    telegram: FakeTelegram, conversations: Sequence[tuple[Person, str]], within: float = 180
) -> None:
    """Until everybody has each answer; what broke in the sending, of which its person was told, may be
    missing."""

    def complete() -> bool:
        missing = sum(count == 0 for each in conversations for count in received(telegram, *each))
        return missing <= len(telegram.transcript.select(REMARK))

    try:
        await until(complete, within=within)
    except TimeoutError:
        found = {name: received(telegram, person, name) for person, name in conversations}
        raise AssertionError(f"answers are missing: {found}\n{telegram.transcript}") from None
