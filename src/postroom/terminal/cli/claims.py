"""Claiming messages and settling claims: `claim`, `complete`, `fail`, `release`, `extend`, `snooze`."""

import time
from typing import Annotated, Any

import typer

from postroom.kernel.checks import split_path
from postroom.kernel.model import Message
from postroom.services.callers import Caller
from postroom.services.container import Services
from postroom.services.messages import FoundMessage
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import MessageId, argument, flag, option
from postroom.terminal.cli.output import ago, facts, json_text
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import duration

AT_ONCE_S = 25.0
Token = Annotated[str, argument("TOKEN", "The claim's token, as claim showed it.")]
LeaseOption = Annotated[
    float | None, option("DURATION", "How long the claim is good, from now. Default the queue's.", "--lease")
]


def register(app: typer.Typer, panel: str) -> None:
    def verb(name: str, function: Any, *examples: str) -> None:
        command(app, name, panel=panel, examples=examples)(function)

    verb(
        "claim",
        claim,
        "postroom claim jobs",
        "postroom claim jobs --limit 10 --lease 5m --json",
        "postroom claim news --subscription website",
    )
    verb(
        "complete",
        complete,
        "postroom complete 01890a5d-… 1-5f3c…",
        """postroom complete 01890a5d-… 1-5f3c… --result '{"sent": true}'""",
    )
    verb(
        "fail",
        fail,
        "postroom fail 01890a5d-… 1-5f3c… 'the printer is out of paper'",
        "postroom fail 01890a5d-… 1-5f3c… 'no such customer' --final",
    )
    verb("release", release, "postroom release 01890a5d-… 1-5f3c…")
    verb("extend", extend, "postroom extend 01890a5d-… 1-5f3c… --lease 10m")
    verb("snooze", snooze, "postroom snooze 01890a5d-… 1-5f3c… 1h --reason 'rate limit'")


async def claim(
    at: CommandContext,
    queues: Annotated[
        list[str],
        argument("QUEUE", "Where to claim from; of several, in this order."),
    ],
    limit: Annotated[int, option("N", "At most so many messages. Default 1.", "--limit")] = 1,
    wait: Annotated[float, option("DURATION", "Wait so long for the first one.", "--wait")] = 0,
    lease: LeaseOption = None,
    subscription: Annotated[
        str | None, option("NAME", "Of a broadcast queue: as which subscriber.", "--subscription")
    ] = None,
    worker: Annotated[str | None, option("NAME", "Who claims. Default you.", "--worker")] = None,
) -> None:
    """Claim the next messages: nobody else gets them while the lease lasts.

    Each comes with a token, which complete, fail and the other verbs ask for. Nothing to claim is no error.
    """
    async with at.services(change=True) as services:
        found = await _take(
            services,
            at.caller,
            [split_path(queue) for queue in queues],
            wait,
            limit=limit,
            lease_s=lease,
            subscription=subscription,
            worker=worker,
        )
    taken = [each.message for each in found]
    if at.out.as_json:
        at.out.line([documents.message(message) for message in taken])
        return
    if not taken:
        at.out.say("Nothing to claim.")
    for index, message in enumerate(taken):
        if index:
            at.out.say("")
        at.out.say(facts(_claimed(message, at.clock.now())))


async def _take(
    services: Services, caller: Caller, queues: list[tuple[str, str]], wait: float, **wish: Any
) -> list[FoundMessage]:
    """However long somebody waits: asked again and again, since no call waits for ever."""
    until = time.monotonic() + wait
    while True:
        left = max(0.0, until - time.monotonic())
        found = await services.claims.claim(caller, queues, wait_s=min(left, AT_ONCE_S), **wish)
        if found or left <= AT_ONCE_S:
            return found


def _claimed(message: Message, now: int) -> list[tuple[str, Any]]:
    body = message.body
    if isinstance(body, bytes):
        body = f"({len(body)} bytes of {message.content_type}; see them with --json)"
    elif not isinstance(body, str):
        body = json_text(body)
    return [
        ("message", message.id),
        ("token", message.claim_token),
        ("queue", message.path),
        ("type", message.message_type if message.message_type != "message" else None),
        ("attempt", message.attempts),
        ("lease ends", ago(message.claim_expires_at, now)),
        ("last failure", message.failure_reason),
        ("labels", json_text(message.labels) if message.labels else None),
        ("body", body),
        ("when done", f"postroom complete {message.id} {message.claim_token}"),
    ]


async def complete(
    at: CommandContext,
    message_id: MessageId,
    token: Token,
    result: Annotated[str | None, option("JSON", "What came of it.", "--result")] = None,
) -> None:
    """The work is done. Saying so again with the same token is no error."""
    async with at.services(change=True) as services:
        found = await services.claims.complete(at.caller, message_id, token, result=result)
    _show_settled(at, found.message, "is done")


async def fail(
    at: CommandContext,
    message_id: MessageId,
    token: Token,
    reason: Annotated[str, argument("REASON", "Why, for whoever looks later.")],
    final: Annotated[bool, flag("No retry: a dead letter at once.", "--final")] = False,
    delay: Annotated[
        float | None, option("DURATION", "Pause before the retry. Default the queue's backoff.", "--delay")
    ] = None,
    kind: Annotated[str | None, option("NAME", "A word for failures of this kind.", "--kind")] = None,
) -> None:
    """The work failed: it is retried after a pause, or a dead letter when no attempts are left."""
    if final and delay is not None:
        raise Unclear("--final means no retry, so it cannot go with --delay")
    async with at.services(change=True) as services:
        found = await services.claims.fail(
            at.caller, message_id, token, reason=reason, kind=kind, retry=not final, delay_s=delay
        )
    _show_settled(at, found.message, "failed")


async def release(at: CommandContext, message_id: MessageId, token: Token) -> None:
    """Give a message back untouched: the attempt does not count."""
    async with at.services(change=True) as services:
        found = await services.claims.release(at.caller, message_id, token)
    _show_settled(at, found.message, "is given back")


async def extend(at: CommandContext, message_id: MessageId, token: Token, lease: LeaseOption = None) -> None:
    """Keep a claim for another lease, counted from now."""
    async with at.services(change=True) as services:
        found = await services.claims.extend(at.caller, message_id, token, lease_s=lease)
    _show_settled(at, found.message, "stays yours")


async def snooze(
    at: CommandContext,
    message_id: MessageId,
    token: Token,
    pause: Annotated[float, argument("DURATION", "How long: 30, 10m, 2h.", parser=duration)],
    reason: Annotated[str | None, option("TEXT", "Why, for whoever looks later.", "--reason")] = None,
) -> None:
    """Come back later; unlike a failure this does not count as an attempt."""
    async with at.services(change=True) as services:
        found = await services.claims.snooze(at.caller, message_id, token, seconds=pause, reason=reason)
    _show_settled(at, found.message, "is snoozed")


def _show_settled(at: CommandContext, after: Message, done: str) -> None:
    """What became of it, which is not always what was asked for: attempts run out."""
    now = at.clock.now()
    text = f"{after.id} {done}; it is {after.state}"
    if after.visible_at is not None:
        text += f", back {ago(after.visible_at, now)}"
    elif after.claim_expires_at is not None:
        text += f", the lease ends {ago(after.claim_expires_at, now)}"
    at.out.show(documents.message(after), text + ".")
