"""What follows from a turn, as commands that commit together: completion, reply, hand-offs, posts, record.

The reply is written only with the completion, so a retry never repeats what was already sent.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec

from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.office import queues
from postroom.office.intake.routing import OfficeDirectory, Passed, pass_on
from postroom.office.lanes.batches import Batch, is_combined, team_of, text_of
from postroom.office.message_files import ReferredText
from postroom.office.texts import clean, excerpt, fitted
from postroom.office.turns.replies import ReplyText
from postroom.office.turns.turn import TurnResult
from postroom.providers.protocol import ErrorKind, Failed, Permissions, ToolDenied

# So many tags that reach nobody are told one by one.
MOST_SKIPPED = 5

# Of an answer that is sent as a file: what histories show of it.
WHOLE_BYTES = 96 * 1024


class TurnRules(msgspec.Struct, frozen=True, kw_only=True):
    """How far one conversation may go."""

    mentions: int = 16
    attempts: int = 5
    crashes: int = 20
    rate_limit_s: float = 24 * 3600.0


def held(message: Message, actor: str) -> dict[str, Any]:
    assert message.claim_token is not None, "the lane holds what it settles"
    return {"message_id": message.id, "token": message.claim_token, "actor": actor}


def finished(
    batch: Batch,
    agent: str,
    turn: TurnResult,
    answer: ReferredText,
    reply: ReplyText,
    directory: OfficeDirectory,
    rules: TurnRules,
    closed: Container[str] = (),
) -> list[c.Command]:
    """`answer` is what the agent wrote, and `reply` what the person gets to read of it. Nothing is handed on
    to queues that are `closed`."""
    primary = batch.primary
    commands = _complete(batch, agent, turn, reply)
    if not is_combined(primary):
        commands += tell(
            primary,
            agent,
            reply.text,
            kind="office.reply",
            files=reply.files,
            metadata=reply.metadata,
            together=_together(batch),
            whole=reply.whole,
        )
    commands += remember(primary, agent, turn)
    # Last, since clients are told of what was handed on after they are told of the answer.
    passed = pass_on(answer.text, agent, directory, team=team_of(primary))
    return [
        *commands,
        *(each for each in _hand_on(primary, agent, passed, rules, answer.refs) if each.queue not in closed),
    ]


def not_delivered(
    primary: Message, agent: str, answer: str, directory: OfficeDirectory, rules: TurnRules
) -> tuple[str, ...]:
    """What is not handed on: tags that reach nobody, and what is more than goes with one answer."""
    passed = pass_on(answer, agent, directory, team=team_of(primary))
    notes = tuple(f"_(Not delivered: {each.reason})_" for each in passed.skipped[:MOST_SKIPPED])
    if more := len(passed.skipped) - MOST_SKIPPED:
        notes += (f"_({more} more were not delivered.)_",) if more > 0 else ()
    left = sum(max(0, len(each) - rules.mentions) for each in (passed.handoffs, passed.posts))
    if not left:
        return notes
    what = "1 more message to teammates was" if left == 1 else f"{left} more messages to teammates were"
    return (*notes, f"_({what} not sent: {rules.mentions} of a kind go with one answer.)_")


def told_of_denials(agent: str, denied: Sequence[ToolDenied], permissions: Permissions) -> tuple[str, ...]:
    """A line about what the agent wanted and may not do, and how to let it."""
    if not denied:
        return ()
    shown = [f"{tool.name} ({excerpt(tool.summary, 80)})" if tool.summary else tool.name for tool in denied]
    what = ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")
    wider = "full" if permissions is not Permissions.READ else "workspace"
    how = (
        f" To let it: postroom agent set {agent} --permissions {wider}"
        if permissions is not Permissions.FULL
        else ""
    )
    return (clean(f"_(Not allowed with the permissions `{permissions}`: {what}.{how})_"),)


def unreached(reply: ReplyText, agent: str, queue: str, error: PostroomError) -> ReplyText:
    """The turn is paid for: what it could not hand on must not cost the answer."""
    name = queue.removeprefix(queues.inbox("")).removeprefix(queues.room_of(""))
    whom = f"@{name}" if queue == queues.inbox(name) else f"#{name}"
    said = reply.text.removesuffix(signature := f"\n\n- [{agent}]")
    note = f"\n\n_({whom} was not reached. {error})_" + ("" if said == reply.text else signature)
    return msgspec.structs.replace(reply, text=said + note)


def _complete(batch: Batch, agent: str, turn: TurnResult, reply: ReplyText) -> list[c.Command]:
    """The message that was answered keeps the answer; the others say with which one they were answered."""
    result: dict[str, Any] = {"turn": turn.turn_id, "agent": agent, "answer": fitted(reply.text)}
    result["files"] = list(reply.files)
    if reply.metadata and is_combined(batch.primary):
        # The answer goes out later, with those of the others.
        result["metadata"] = reply.metadata
    if is_combined(batch.primary) and (others := _together(batch)):
        result["together"] = others
    together = {"turn": turn.turn_id, "agent": agent, "with": batch.primary.id}
    return [
        c.Complete(result=result if message is batch.primary else together, **held(message, agent))
        for message in batch.messages
    ]


def _together(batch: Batch) -> list[str]:
    """The conversations of what else the person wrote and is answered in the same turn."""
    talks = [each.correlation_id for each in batch.company if each.from_agent is None]
    return [talk for talk in dict.fromkeys(talks) if talk and talk != batch.primary.correlation_id]


def _hand_on(
    primary: Message, agent: str, passed: Passed, rules: TurnRules, refs: Sequence[str] = ()
) -> list[c.Publish]:
    """Files that a note speaks of go along with it."""
    commands: list[c.Publish] = []
    for handoff in passed.handoffs[: rules.mentions]:
        note = _derived(primary, agent, {"text": fitted(handoff.text), "team": handoff.team}, "office.note")
        note.agent = handoff.agent
        note.files = [ref for ref in refs if ref in handoff.text] or None
        commands.append(c.Publish(queue=queues.inbox(handoff.agent), messages=[note], actor=agent))
    for post in passed.posts[: rules.mentions]:
        body: dict[str, object] = {"text": fitted(post.text), "team": post.team, "post": fitted(post.body)}
        note = _derived(primary, agent, body, "office.post")
        note.channel = "chatroom"
        note.files = [ref for ref in refs if ref in post.text] or None
        commands.append(c.Publish(queue=queues.room_of(post.team), messages=[note], actor=agent))
    return commands


def handed(cause: Message, agent: str, to: str, text: ReferredText, team: str, by: str) -> c.Publish:
    """A note to a teammate before the turn has ended. `by` says in a label how the agent sent it."""
    note = _derived(cause, agent, {"text": fitted(text.text), "team": team}, "office.note")
    note.agent, note.labels = to, {"by": by, "from": agent}
    note.files = list(text.refs) or None
    return c.Publish(queue=queues.inbox(to), messages=[note], actor=agent)


def _derived(cause: Message, agent: str, body: dict[str, object], kind: str) -> NewMessage:
    if is_combined(cause) and kind == "office.note":
        body["replies"] = "combined"
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


def tell(
    cause: Message,
    agent: str,
    text: str,
    *,
    kind: str,
    files: tuple[str, ...] = (),
    key: str | None = None,
    parts: tuple[str, ...] = (),
    metadata: dict[str, Any] | None = None,
    together: Sequence[str] = (),
    whole: str = "",
    choices: Mapping[str, str] | None = None,
) -> list[c.Command]:
    """Something for the person behind a message; nothing when there is nobody who would read it.

    `parts` are the messages whose answers it holds, when it holds several; `together` are the
    conversations that were answered in the same turn; `whole` is all of a text that begins with this one;
    `choices` are buttons, and what each says."""
    if cause.channel is None or cause.channel in queues.SILENT:
        return []
    body: dict[str, object] = {"text": fitted(text), "original": fitted(text_of(cause), 32 * 1024)}
    if whole:
        body["whole"] = fitted(whole, WHOLE_BYTES)
    if parts:
        body["parts"] = list(parts)
    if together:
        body["together"] = list(together)
    if choices:
        body |= {"choices": list(choices), "says": list(choices.values())}
    reply = _derived(cause, agent, body, kind)
    reply.agent = agent
    reply.files = list(files) or None
    reply.idempotency_key = key
    if metadata:
        # What the channel itself said of the chat is not for plugins to change.
        reply.metadata = {**metadata, **cause.metadata}
    return [
        queues.open_outbox(cause.channel),
        c.Publish(queue=queues.outbox(cause.channel), messages=[reply], actor=agent),
    ]


def remember(primary: Message, agent: str, turn: TurnResult) -> list[c.Command]:
    about = {"message_id": primary.id, "correlation_id": primary.correlation_id, "actor": agent}
    return [c.AddRecord(kind="turn", key=turn.turn_id, data=turn.record(agent), **about)]


def failed(batch: Batch, agent: str, turn: TurnResult, problem: Failed, rules: TurnRules) -> list[c.Command]:
    """A provider failure is a failure: again, or the end, and then the person is told what to do. Of rate
    limits, `rate_limits` decides."""
    primary = batch.primary
    commands: list[c.Command] = []
    # What is too long together may fit alone.
    alone_next = problem.kind is ErrorKind.CONTEXT_TOO_LONG and bool(batch.company)
    over: list[Message] = []
    for message in batch.messages:
        # What the person is told to be over must be over, whatever the queue itself would allow.
        final = not (problem.kind.may_pass or alone_next) or is_last(message, rules)
        commands.append(
            c.Fail(
                reason=problem.message,
                kind=problem.kind.value,
                retry=not final,
                delay_s=0.0 if alone_next else None,
                **held(message, agent),
            )
        )
        if final:
            over.append(message)
    if over and not is_combined(primary):
        words = gave_up(agent, problem.message, over)
        others = [talk for talk in _together(batch) if any(each.correlation_id == talk for each in over)]
        commands += tell(primary, agent, words, kind="office.failure", together=others)
    return [*commands, *remember(primary, agent, turn)]


def is_last(message: Message, rules: TurnRules) -> bool:
    """Whether a failure now is the last: a turn that was only cut short before had no chance to fail."""
    if message.failure_kind == "lease_expired":
        return message.attempts >= max(rules.attempts, rules.crashes)
    return message.attempts >= rules.attempts


def gave_up(agent: str, reason: str, over: list[Message]) -> str:
    """What happened, and how to try again."""
    ids = " ".join(message.id for message in over if message.subscription is None)
    kept, it = ("Your messages are kept", "them") if " " in ids else ("Your message is kept", "it")
    return (
        f"@{agent} could not answer: {reason}\n"
        f"{kept}. When the cause is gone, send {it} again with: postroom dead replay {ids}"
    )
