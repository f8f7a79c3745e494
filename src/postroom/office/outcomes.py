"""What follows from a turn, as commands that commit together: completion, reply, hand-offs, posts, record.

The reply is written only with the completion, so a retry never repeats what was already sent.
"""

from typing import Any

import msgspec

from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.office import places, tags
from postroom.office.batches import Batch, team_of, text_of
from postroom.office.routing import Directory, Passed, pass_on
from postroom.office.turns import Turn
from postroom.providers.protocol import ErrorKind, Failed


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How far one conversation may go, and how answers are signed."""

    hops: int = 10
    mentions: int = 16
    attempts: int = 5
    signature: bool = True


def held(message: Message, actor: str) -> dict[str, Any]:
    assert message.claim_token is not None, "the lane holds what it settles"
    return {"message_id": message.id, "token": message.claim_token, "actor": actor}


def finished(
    batch: Batch, agent: str, turn: Turn, answer: str, directory: Directory, rules: Rules
) -> list[c.Command]:
    primary = batch.primary
    commands: list[c.Command] = [
        c.Complete(result={"turn": turn.turn_id}, **held(message, agent)) for message in batch.messages
    ]
    passed = pass_on(answer, agent, directory, team=team_of(primary))
    notice = None
    if passed.handoffs and primary.hop >= rules.hops:
        notice = (
            f"This conversation has been handed on {primary.hop} times, which is the limit, so "
            f"{', '.join('@' + handoff.agent for handoff in passed.handoffs)} was not asked. "
            "Write to them yourself to go on."
        )
    else:
        commands += _hand_on(primary, agent, passed, rules)
    commands += _reply(primary, agent, answer, rules)
    if notice is not None:
        commands += tell(primary, agent, notice, kind="office.notice")
    return [*commands, *_remember(primary, agent, turn)]


def _hand_on(primary: Message, agent: str, passed: Passed, rules: Rules) -> list[c.Command]:
    commands: list[c.Command] = []
    for handoff in passed.handoffs[: rules.mentions]:
        note = _derived(primary, agent, {"text": handoff.text, "team": handoff.team}, "office.note")
        note.agent = handoff.agent
        commands.append(c.Publish(queue=places.inbox(handoff.agent), messages=[note], actor=agent))
    for post in passed.posts:
        note = _derived(
            primary, agent, {"text": post.text, "team": post.team, "post": post.body}, "office.post"
        )
        note.channel = "chatroom"
        commands.append(c.Publish(queue=places.room_of(post.team), messages=[note], actor=agent))
    return commands


def _derived(cause: Message, agent: str, body: dict[str, object], kind: str) -> NewMessage:
    return NewMessage(
        body=body,
        message_type=kind,
        channel=cause.channel,
        sender=cause.sender,
        sender_id=cause.sender_id,
        from_agent=agent,
        metadata=dict(cause.metadata) or None,
        correlation_id=cause.correlation_id,
        causation_id=cause.id,
        hop=cause.hop + 1,
        source_type="agent",
        source_id=agent,
    )


def _reply(primary: Message, agent: str, answer: str, rules: Rules) -> list[c.Command]:
    text = tags.without_files_to_send(answer).strip()
    if rules.signature:
        text = f"{text}\n\n- [{agent}]"
    return tell(primary, agent, text, kind="office.reply")


def tell(cause: Message, agent: str, text: str, *, kind: str) -> list[c.Command]:
    """Something for the person behind a message; nothing when there is nobody who would read it."""
    if cause.channel is None or cause.channel in places.SILENT:
        return []
    reply = _derived(cause, agent, {"text": text, "original": text_of(cause)}, kind)
    reply.agent = agent
    return [
        places.open_outbox(cause.channel),
        c.Publish(queue=places.outbox(cause.channel), messages=[reply], actor=agent),
    ]


def _remember(primary: Message, agent: str, turn: Turn) -> list[c.Command]:
    about = {"message_id": primary.id, "correlation_id": primary.correlation_id, "actor": agent}
    return [c.AddRecord(kind="turn", key=turn.turn_id, data=turn.record(agent), **about)]


def failed(batch: Batch, agent: str, turn: Turn, problem: Failed, rules: Rules, now: int) -> list[c.Command]:
    """A provider failure is a failure: later, again, or the end, and then the person is told what to do."""
    primary = batch.primary
    commands: list[c.Command] = []
    over = False
    for message in batch.messages:
        if problem.kind is ErrorKind.RATE_LIMIT:
            until = problem.retry_at or now + 60_000_000
            commands.append(c.Snooze(until=until, reason=problem.message, **held(message, agent)))
            continue
        final = not (problem.kind.may_pass or problem.kind is ErrorKind.CONTEXT_TOO_LONG)
        delay = 0.0 if problem.kind is ErrorKind.CONTEXT_TOO_LONG else None
        commands.append(
            c.Fail(
                reason=problem.message,
                kind=problem.kind.value,
                retry=not final,
                delay_s=delay,
                **held(message, agent),
            )
        )
        over = over or (message is primary and (final or message.attempts >= rules.attempts))
    if over:
        words = (
            f"@{agent} could not answer: {problem.message}\n"
            f"Your message is kept. When the cause is gone, send it again with: "
            f"postroom dead replay {primary.id}"
        )
        commands += tell(primary, agent, words, kind="office.failure")
    return [*commands, *_remember(primary, agent, turn)]
