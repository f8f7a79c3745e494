"""What a person types into a chat about a paused conversation: `/continue`, `/stop` and `/raise`."""

import re

from postroom.errors import PostroomError
from postroom.office.guards import pauses
from postroom.office.guards.budgets import dollars
from postroom.office.guards.notices import code
from postroom.office.guards.pauses import PausedConversation
from postroom.office.ports import RoomPort

_ANSWER = re.compile(r"/(continue|stop|raise)\b\s*(.*)", re.IGNORECASE | re.DOTALL)
_AMOUNT = re.compile(r"\$?(\d{1,6}(?:\.\d{1,6})?)")
HOW = "Write /continue, /stop or /raise AMOUNT, and behind it the code of the conversation."


async def answer(room: RoomPort, channel: str, person: str, text: str) -> str | None:
    """What to say to it at once; None when it is no such answer. People decide about their own only."""
    match = _ANSWER.fullmatch(text.strip())
    if match is None:
        return None
    verb, words = match[1].lower(), match[2].split()
    if len(words) > (2 if verb == "raise" else 1):
        return None  # "/stop this nonsense" is for an agent
    amount = None
    if verb == "raise":
        found = _AMOUNT.fullmatch(words.pop(0).replace(",", "")) if words else None
        if found is None:
            return f"By how much is missing. {HOW}"
        amount = float(found[1])
    own = [
        one
        for one in await pauses.paused_conversations(room)
        if (one.channel, one.person) == (channel, person)
    ]
    chosen = [one for one in own if not words or one.conversation.endswith(words[0])]
    if len(chosen) != 1:
        return _which(own, chosen)
    try:
        return await _done(room, chosen[0], verb, amount, f"{channel}/{person}"[:500])
    except PostroomError as error:
        return str(error)


async def _done(
    room: RoomPort, chosen: PausedConversation, verb: str, amount: float | None, actor: str
) -> str:
    if verb == "stop":
        ended = await pauses.stop(room, chosen.conversation, actor=actor)
        return f"Stopped. {_count(ended)} cancelled."
    if amount is not None:
        woken = await pauses.raise_limit(room, chosen.conversation, usd=amount, actor=actor)
        return f"The limit is {dollars(round(amount * 1_000_000))} now. {_count(woken)} taken up again."
    woken = await pauses.resume(room, chosen.conversation, actor=actor)
    return f"It goes on. {_count(woken)} taken up again."


def _count(number: int) -> str:
    return "1 message is" if number == 1 else f"{number} messages are"


def _which(own: list[PausedConversation], chosen: list[PausedConversation]) -> str:
    if not own:
        return "Nothing of yours is paused."
    lines = [
        f"{code(one.conversation)}: @{one.agent}, {one.guard}, {dollars(one.spent)}" for one in chosen or own
    ]
    return "\n".join(["Which one do you mean? These are paused:", *lines, HOW])
