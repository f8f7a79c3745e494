"""The one thing that must hold after every history: each accepted message ends in exactly one reply, one
visible failure, or a pause that its person was told of and can answer."""

from collections import Counter
from collections.abc import Set
from pathlib import Path

import postroom
from postroom import Message, State
from postroom.office.guards import pauses
from postroom.office.lanes.batches import PASSED_ON, is_combined
from tests.acceptance.histories.life import ACCEPTED, STOPPED, everything, is_held
from tests.conformance.promises import check_promises

OPEN = (State.PENDING, State.CLAIMED, State.DELAYED)


async def problems(folder: Path) -> list[str]:
    async with postroom.open(str(folder / "room.db"), durability="relaxed", housekeeping=False) as room:
        check_promises(room)
        found = await everything(room)
        paused = {each.conversation: each.person for each in await pauses.paused_conversations(room)}
        held = {each.id for each in found if each.state is State.DELAYED and await is_held(room, each)}
        accepted = {int(line) for line in (folder / ACCEPTED).read_text().split()}
        stopped = set((folder / STOPPED).read_text().split()) if (folder / STOPPED).exists() else set[str]()
        return judge(accepted, found, held, paused, stopped) + _unread(found)


def judge(
    accepted: set[int],
    found: list[Message],
    held: set[str],
    paused: dict[str, str | None],
    stopped: Set[str] = frozenset(),
) -> list[str]:
    told = [each for each in found if each.queue == "outbox/web"]
    mail = [each for each in found if each.message_type in ("office.mail", "office.note")]
    answers = Counter(each.causation_id for each in told if each.message_type == "office.reply")
    # Of several messages that failed in one turn, one failure tells, by their ids.
    failures = Counter(
        dead.id
        for each in told
        if each.message_type == "office.failure"
        for dead in mail
        if dead.id == each.causation_id or dead.id in each.body["text"]
    )
    parts = Counter(part.partition(":")[0] for each in told for part in each.body.get("parts", ()))
    notices = {(each.sender_id, each.correlation_id) for each in told if each.message_type == "office.notice"}
    people_told = {person for person, _ in notices}
    bad: list[str] = []
    for number in sorted(accepted):
        if not any(each.correlation_id == f"web:{number}" for each in mail):
            bad.append(f"message {number} was accepted and is gone")
    waiting = {each.correlation_id for each in mail if each.id in held}
    for each in mail:
        name = f"{each.id} of {each.correlation_id} for @{each.agent} ({each.state})"
        if each.state in OPEN:
            asked = paused.get(each.correlation_id or "") == each.sender_id or each.sender_id in people_told
            if each.id not in held:
                bad.append(f"{name} is open, and nobody will take it")
            elif not asked:
                bad.append(f"{name} waits, and its person was never told")
            continue
        if each.state is State.CANCELLED and (each.failure_reason or "").startswith(PASSED_ON):
            if not any(
                m.correlation_id == each.correlation_id and m.id != each.id and m.agent != each.agent
                for m in mail
            ):
                bad.append(f"{name} was passed on to nobody")
            continue
        if each.state is State.CANCELLED and each.failure_reason == "stopped by a person":
            if each.correlation_id not in stopped:
                bad.append(f"{name} was stopped, and no person had said so")
            continue
        answered = each.id
        if each.state is State.COMPLETED and isinstance(each.result, dict):
            answered = each.result.get("with", each.id)
        counts = answers[answered] + failures[answered] if not is_combined(each) else parts[answered]
        if is_combined(each) and each.correlation_id in waiting and not counts:
            continue  # the rest of the answer waits for a person
        if is_combined(each) and answered != each.id:
            continue  # with that of another, which is looked at itself
        if counts != 1:
            told_of = f"{answers[answered]} replies, {failures[answered]} failures, {parts[answered]} parts"
            bad.append(f"{name} has {told_of}")
    return bad


def _unread(found: list[Message]) -> list[str]:
    """Nothing waits in a room for somebody who is there."""
    return [
        f"a post waits for @{each.subscription}"
        for each in found
        if each.subscription is not None and each.state in (State.PENDING, State.CLAIMED)
    ]
