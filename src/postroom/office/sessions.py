"""Which session of its provider an agent goes on with: one for all, one per person, or one per thread.

A session is resumed by its id, never as "the last one", so that nobody's words reach another by accident.
What was said in it is kept too, for providers that remember nothing, and for a new session when an old one
has outgrown its model.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.kernel import commands as c
from postroom.kernel.model import Message, Record
from postroom.office.lanes.batches import thread_of
from postroom.office.ports import RoomPort
from postroom.office.texts import excerpt, fitted
from postroom.office.turns.turn import TurnResult
from postroom.providers.protocol import Finished, SessionTotal, Utterance
from postroom.settings.agents import SessionScope

KIND = "session"
RESET = "session.reset"
EXCHANGE = "exchange"
PAGE = 500
KEY_CHARS = 400
# Of so many sessions it is remembered what is too old to be read again.
PASSED_KEPT = 1000
# What a provider without a memory is given of the past, and what of it a new session begins with.
HISTORY_CHARS = 300_000
SUMMARY_CHARS = 8_000
SUMMARY_EACH = 1_200


class ProviderSession(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's session at each provider, with the tokens it had used. `carried` is what a new one is told
    of the one before it; None when it does not follow another. `lost` says that the one before was gone, not
    full. `reset` is the last reset it knows of: a turn may end after a later one, and must not bring back
    what that ended."""

    key: str
    ids: dict[str, str] = {}
    totals: dict[str, SessionTotal] = {}
    carried: str | None = None
    lost: bool = False
    reset: int = 0

    @property
    def begun(self) -> bool:
        return bool(self.ids)


class Exchange(msgspec.Struct, frozen=True):
    prompt: str = ""
    answer: str = ""


class Sessions:
    def __init__(self, room: RoomPort, scopes: dict[str, SessionScope]) -> None:
        self._room = room
        self._scopes = scopes
        self._passed: dict[str, int] = {}

    def key(self, message: Message, agent: str) -> str:
        scope = self._scopes.get(agent, "agent")
        if scope == "agent":
            return agent
        person = f"{agent}/{message.channel}/{message.sender_id or message.sender}"
        return _short(person if scope == "sender" else f"{person}/{thread_of(message)}")

    async def of(self, message: Message, agent: str) -> ProviderSession:
        """The session to go on with at each provider; an empty one if there is none, or it was reset."""
        key = self.key(message, agent)
        record = await self._room.latest_record(KIND, key)
        found = await self._room.latest_record(RESET, agent)
        reset = found.id if found is not None else 0
        # Older records do not say which reset they know of: there, what was written later counts.
        if record is None or reset > record.data.get("reset", record.id):
            return ProviderSession(key=key, reset=reset)
        return msgspec.convert({**record.data, "key": key, "reset": reset}, ProviderSession)

    async def _exchanges(self, session: ProviderSession, provider: str) -> list[Exchange]:
        """The last words of a session that fit into so many characters, oldest first."""
        most_chars = HISTORY_CHARS
        session_id = session.ids.get(provider)
        if session_id is None:
            return []
        records: list[Record] = []
        key = _exchange_key(provider, session_id)
        after = self._passed.get(key, 0)
        while page := await self._room.records(EXCHANGE, key, after=after, limit=PAGE):
            records += page
            after = page[-1].id
        kept: list[Exchange] = []
        for record in reversed(records):
            exchange = msgspec.convert(record.data, Exchange)
            most_chars -= len(exchange.prompt) + len(exchange.answer)
            if most_chars < 0:
                self._pass(key, record.id)
                break
            kept.append(exchange)
        return kept[::-1]

    def _pass(self, key: str, record_id: int) -> None:
        """What did not fit never will: later words only take more room."""
        self._passed.pop(key, None)
        self._passed[key] = record_id
        if len(self._passed) > PASSED_KEPT:
            del self._passed[next(iter(self._passed))]

    async def history(self, session: ProviderSession, provider: str) -> tuple[Utterance, ...]:
        said = await self._exchanges(session, provider)
        return tuple(
            utterance
            for exchange in said
            for utterance in (Utterance("user", exchange.prompt), Utterance("assistant", exchange.answer))
        )

    async def summary(self, session: ProviderSession, provider: str) -> str:
        """The end of a session, in short: what a new one has to know to go on."""
        said = await self._exchanges(session, provider)
        return summarise(said)

    def after(self, session: ProviderSession, turn: TurnResult, prompt: str) -> list[c.Command]:
        """What to remember of a turn, to be committed with what follows from it."""
        commands: list[c.Command] = []
        finished = isinstance(turn.verdict, Finished)
        ids = {**session.ids, **turn.sessions}
        same = {name for name, session_id in session.ids.items() if ids[name] == session_id}
        totals = {name: total for name, total in session.totals.items() if name in same} | turn.totals
        carried = None if finished else session.carried
        after = msgspec.structs.replace(session, ids=ids, totals=totals, carried=carried)
        if after != session:
            commands.append(_remember(after))
        if isinstance(turn.verdict, Finished) and turn.provider:
            commands.append(
                c.AddRecord(
                    kind=EXCHANGE,
                    key=_exchange_key(turn.provider, turn.sessions[turn.provider]),
                    data={"prompt": fitted(prompt), "answer": fitted(turn.verdict.text)},
                )
            )
        return commands

    def renewed(
        self, session: ProviderSession, carried: str, *, lost: bool
    ) -> tuple[ProviderSession, c.Command]:
        """A new session in the place of one that has outgrown the model, or was lost."""
        new = ProviderSession(key=session.key, carried=carried, lost=lost, reset=session.reset)
        return new, _remember(new)

    def reset(self, agent: str) -> c.Command:
        """Begin anew, for everybody."""
        return c.AddRecord(kind=RESET, key=agent, data={}, actor=agent)


def summarise(said: Sequence[Exchange]) -> str:
    kept: list[str] = []
    left = SUMMARY_CHARS
    for exchange in reversed(said):
        asked, answered = (excerpt(text, SUMMARY_EACH) for text in (exchange.prompt, exchange.answer))
        text = f"They wrote: {asked}\nYou answered: {answered}"
        left -= len(text)
        if left < 0:
            break
        kept.append(text)
    return "\n\n".join(reversed(kept))


def _remember(session: ProviderSession) -> c.Command:
    data: dict[str, Any] = msgspec.to_builtins(session)
    del data["key"]
    return c.AddRecord(kind=KIND, key=session.key, data=data)


def _short(key: str) -> str:
    """Names of records have a length, and people and threads may be named by strangers."""
    if len(key) <= KEY_CHARS:
        return key
    return f"{key[:100]}…{hashlib.sha256(key.encode(errors='replace')).hexdigest()}"


def _exchange_key(provider: str, session_id: str) -> str:
    return f"{provider}/{session_id}"[:500]
