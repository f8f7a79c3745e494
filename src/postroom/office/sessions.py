"""Which session of its provider an agent goes on with: one for all, one per person, or one per thread.

A session is resumed by its id, never as "the last one", so that nobody's words reach another by accident.
What was said in it is kept too, for providers that remember nothing, and for a new session when an old one
has outgrown its model.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from postroom.kernel import commands as c
from postroom.kernel.model import Message, Record
from postroom.office.post import PostRoom
from postroom.office.texts import excerpt, fitted
from postroom.office.turns import Turn
from postroom.providers.protocol import Finished, SessionTotal, Utterance
from postroom.settings.agents import SessionScope

KIND = "session"
RESET = "session.reset"
EXCHANGE = "exchange"
PAGE = 500
# What a provider without a memory is given of the past, and what of it a new session begins with.
HISTORY_CHARS = 300_000
SUMMARY_CHARS = 8_000
SUMMARY_EACH = 1_200


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's session at each provider, with the tokens it had used. `carried` is what a new one is told
    of the one before it; None when it does not follow another."""

    key: str
    ids: dict[str, str] = {}
    totals: dict[str, SessionTotal] = {}
    carried: str | None = None

    @property
    def begun(self) -> bool:
        return bool(self.ids)


class Exchange(msgspec.Struct, frozen=True):
    prompt: str = ""
    answer: str = ""


class Sessions:
    def __init__(self, room: PostRoom, scopes: dict[str, SessionScope]) -> None:
        self._room = room
        self._scopes = scopes

    def key(self, message: Message, agent: str) -> str:
        scope = self._scopes.get(agent, "agent")
        if scope == "agent":
            return agent
        person = f"{agent}/{message.channel}/{message.sender_id or message.sender}"
        if scope == "sender":
            return person
        return f"{person}/{message.metadata.get('thread', '')}"

    async def of(self, message: Message, agent: str) -> Session:
        """The session to go on with at each provider; an empty one if there is none, or it was reset."""
        key = self.key(message, agent)
        record = await self._room.latest_record(KIND, key)
        reset = await self._room.latest_record(RESET, agent)
        if record is None or (reset is not None and reset.id > record.id):
            return Session(key=key)
        return msgspec.convert({**record.data, "key": key}, Session)

    async def exchanges(self, session: Session, provider: str, most_chars: int) -> list[Exchange]:
        """The last words of a session that fit into so many characters, oldest first."""
        session_id = session.ids.get(provider)
        if session_id is None:
            return []
        records: list[Record] = []
        after = 0
        key = _exchange_key(provider, session_id)
        while page := await self._room.records(EXCHANGE, key, after=after, limit=PAGE):
            records += page
            after = page[-1].id
        kept: list[Exchange] = []
        for record in reversed(records):
            exchange = msgspec.convert(record.data, Exchange)
            most_chars -= len(exchange.prompt) + len(exchange.answer)
            if most_chars < 0:
                break
            kept.append(exchange)
        return kept[::-1]

    async def history(self, session: Session, provider: str) -> tuple[Utterance, ...]:
        said = await self.exchanges(session, provider, HISTORY_CHARS)
        return tuple(
            utterance
            for exchange in said
            for utterance in (Utterance("user", exchange.prompt), Utterance("assistant", exchange.answer))
        )

    async def summary(self, session: Session, provider: str) -> str:
        """The end of a session, in short: what a new one has to know to go on."""
        said = await self.exchanges(session, provider, HISTORY_CHARS)
        return summarise(said)

    def after(self, session: Session, turn: Turn, prompt: str) -> list[c.Command]:
        """What to remember of a turn, to be committed with what follows from it."""
        commands: list[c.Command] = []
        finished = isinstance(turn.verdict, Finished)
        ids = {**session.ids, **turn.sessions}
        same = {name for name, session_id in session.ids.items() if ids[name] == session_id}
        totals = {name: total for name, total in session.totals.items() if name in same} | turn.totals
        after = Session(
            key=session.key, ids=ids, totals=totals, carried=None if finished else session.carried
        )
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

    def renewed(self, session: Session, carried: str) -> tuple[Session, c.Command]:
        """A new session in the place of one that has outgrown the model, or was lost."""
        new = Session(key=session.key, carried=carried)
        return new, _remember(new)

    def reset(self, agent: str, message: Message | None = None) -> c.Command:
        """Begin anew: for everybody, or for the person or thread of one message."""
        if message is None:
            return c.AddRecord(kind=RESET, key=agent, data={}, actor=agent)
        return _remember(Session(key=self.key(message, agent)))


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


def _remember(session: Session) -> c.Command:
    data: dict[str, Any] = msgspec.to_builtins(session)
    del data["key"]
    return c.AddRecord(kind=KIND, key=session.key, data=data)


def _exchange_key(provider: str, session_id: str) -> str:
    return f"{provider}/{session_id}"[:500]
