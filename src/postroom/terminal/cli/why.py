"""Why a message is where it is, in a sentence or two that say what to do next."""

from collections.abc import Sequence

from postroom.clock import SECOND
from postroom.kernel.ledger import Event
from postroom.kernel.model import LifecycleState, Message, Queue, Scope
from postroom.kernel.states import OPEN, Change, State
from postroom.services.messages import MessageStory
from postroom.terminal.cli.output import ago, clean, span

_CHANGES = frozenset(Change)


def why(story: MessageStory, now: int) -> str:
    message, deliveries = story.message, story.deliveries
    if deliveries and message.state in OPEN:
        waiting = sum(each.state in OPEN for each in deliveries)
        return f"It is a broadcast; {waiting} of its {len(deliveries)} deliveries have not ended yet."
    if message.state is State.PENDING:
        text = _pending(story, now)
    elif message.state is State.DELAYED:
        text = _delayed(message, story.events, now)
    elif message.state is State.CLAIMED:
        text = _claimed(message, now)
    else:
        text = _ended(message, now)
    return clean(f"{text} {story.waits_for}".rstrip())


def _pending(story: MessageStory, now: int) -> str:
    message, queue = story.message, story.queue
    assert queue is not None, "a queue with open messages is not deleted"
    shut = _shut(story.scope, queue)
    if shut:
        return shut
    text = f"It waits to be claimed, for {span((now - message.updated_at) / SECOND)} now."
    if message.failure_reason is not None and message.attempts:
        text += (
            f" Attempt {message.attempts} of {queue.settings.max_retries} failed: {message.failure_reason}."
        )
    limit = queue.settings.concurrency
    if limit is not None and message.subscription is None and story.counts.claimed >= limit:
        text += f" The queue allows {limit} claims at once, and all are taken."
    return text


def _shut(scope: Scope | None, queue: Queue) -> str | None:
    closed = (LifecycleState.PAUSED, LifecycleState.ARCHIVED)
    assert scope is not None, "a scope with open messages is not deleted"
    for kind, name, state in (("scope", scope.slug, scope.state), ("queue", queue.path, queue.state)):
        if state in closed:
            verb = "resume" if state is LifecycleState.PAUSED else "unarchive"
            return (
                f'It waits, but the {kind} "{name}" is {state} and hands nothing out. '
                f"Open it: postroom {kind} {verb} {name}"
            )
    return None


def _delayed(message: Message, history: Sequence[Event], now: int) -> str:
    # Records about a message, as of its turns, are in its history too, and change nothing.
    last = next((event.type for event in reversed(history) if event.type in _CHANGES), None)
    reason = (message.failure_reason or "").rstrip(".")
    if last == Change.FAILED:
        text = f"Attempt {message.attempts} failed: {reason}."
    elif last == Change.SNOOZED:
        text = f"It was snoozed: {reason}." if reason else "It was snoozed."
    else:
        text = "It was published to be worked on later."
    if message.visible_at is not None and message.visible_at <= now:
        return f"{text} Its time has come; the next claim can take it."
    return f"{text} It can be claimed {ago(message.visible_at, now)}."


def _claimed(message: Message, now: int) -> str:
    text = f"{message.claimed_by} claimed it {ago(message.claimed_at, now)}"
    if message.claim_expires_at is not None and message.claim_expires_at <= now:
        ended = ago(message.claim_expires_at, now)
        return f"{text}; the lease ran out {ended}, so the next claim gives it back."
    return f"{text}; the lease ends {ago(message.claim_expires_at, now)}."


def _ended(message: Message, now: int) -> str:
    took = span(((message.finished_at or message.updated_at) - message.created_at) / SECOND)
    if message.state is State.COMPLETED:
        if not message.attempts:
            return f"It was completed {took} after it was published."
        return f"It was completed on attempt {message.attempts}, {took} after it was published."
    if message.state is State.DEAD:
        after = f" after {message.attempts} attempts" if message.attempts else ""
        tail = "" if message.archived else f" Send it back: postroom dead replay {message.id}"
        return f"It is a dead letter{after}: {message.failure_reason}.{tail}"
    if message.state is State.EXPIRED:
        return f"Its time ran out {took} after it was published, before anybody completed it."
    reason = f": {message.failure_reason}" if message.failure_reason else ""
    return f"It was cancelled {ago(message.finished_at, now)}{reason}."
