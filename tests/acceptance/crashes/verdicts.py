"""What must hold of an office after it was killed and began again, whatever shape the conversation took."""

from collections import Counter
from pathlib import Path

import postroom
from postroom import Message, State
from postroom.kernel.states import TERMINAL
from tests.conformance.promises import check_promises


async def problems(folder: Path, kind: str) -> list[str]:
    async with postroom.open(str(folder / "room.db"), durability="relaxed", housekeeping=False) as room:
        check_promises(room)
        page = await room.messages(scope="office", limit=1000, deliveries=True)
        turns = [record async for record in _turns(room)]
    everything = page.messages
    sent = [m for m in everything if m.queue == "outbox/web"]
    mail = [m for m in everything if m.queue.startswith("inbox/") or m.origin_queue is not None]
    found = [
        f"{m.id} in {m.queue} is {m.state}"
        for m in everything
        if m.state not in TERMINAL and not m.queue.startswith("outbox/")
    ]
    found += _persons_words(mail, kind)
    found += _combined(mail, sent) if kind == "combined" else _each(mail, sent)
    found += _written(folder, [*mail, *sent])
    found += [f"turn {key} is recorded {count} times" for key, count in Counter(turns).items() if count > 1]
    known = set(turns)
    for message in mail:
        turn = message.result["turn"] if message.result else None
        if message.state is State.COMPLETED and turn not in known:
            found.append(f"{message.id} was completed by a turn that nobody recorded")
    return found


async def _turns(room: postroom.Room):
    for record in await room.records("turn", limit=1000):
        yield record.key


def _written(folder: Path, said: list[Message]) -> list[str]:
    """Whatever was said stands in the file of the conversation, once."""
    [path] = folder.glob("home/chats/*/*.md")
    text = path.read_text("utf-8")
    times = {message.id: text.count(f"<!-- message {message.id} -->") for message in said}
    return [
        f"{message_id} stands {count} times in {path.name}"
        for message_id, count in times.items()
        if count != 1
    ]


def _persons_words(mail: list[Message], kind: str) -> list[str]:
    own = [m for m in mail if m.message_type == "office.mail"]
    wanted = 3 if kind == "programs" else 1
    return [] if len(own) == wanted else [f"the person's message is there {len(own)} times"]


def _each(mail: list[Message], sent: list[Message]) -> list[str]:
    """Every message that was answered has one reply, and every dead one has one word about it."""
    found: list[str] = []
    replies = Counter(m.causation_id for m in sent if m.message_type == "office.reply")
    failures = Counter(m.causation_id for m in sent if m.message_type == "office.failure")
    ids = {m.id: m for m in mail}
    for message in mail:
        if message.state is State.COMPLETED:
            answered = message.id if "answer" in message.result else message.result["with"]
            if replies[answered] != 1:
                found.append(f"{message.id}, answered with {answered}, has {replies[answered]} replies")
            if answered not in ids or ids[answered].state is not State.COMPLETED:
                found.append(f"{message.id} is done, but not {answered}")
        elif failures[message.id] != 1:
            found.append(f"{message.id} is {message.state}, and that was told {failures[message.id]} times")
    extra = set(replies) - {m.id for m in mail if m.state is State.COMPLETED and "answer" in m.result}
    return found + [f"a reply to {cause} that was not answered" for cause in extra]


def _combined(mail: list[Message], sent: list[Message]) -> list[str]:
    if len(sent) != 1:
        return [f"the person got {len(sent)} answers: {[m.body['text'] for m in sent]}"]
    told = set(sent[0].body["parts"])
    due = {f"{m.id}:{m.state}" for m in mail if m.state is not State.COMPLETED or "answer" in m.result}
    return [] if told == due else [f"the answer holds {told}, and not {due}"]
