"""Looking at messages: `peek`, `list`, `show`; and `cancel`."""

from typing import Annotated, Any

import typer

from postroom.clock import SECOND, iso
from postroom.kernel.checks import split_path
from postroom.kernel.model import Message
from postroom.kernel.states import State
from postroom.services.messages import MessagePage
from postroom.services.pages import bad_cursor
from postroom.terminal.cli import completion, documents
from postroom.terminal.cli.command import GatheredOptions, command
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.events import what
from postroom.terminal.cli.options import (
    CursorOption,
    LimitOption,
    MessageId,
    QueuePath,
    argument,
    choice,
    flag,
    option,
)
from postroom.terminal.cli.output import Column, TextTable, age, facts, json_text, short, table
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.why import why

MOST_DIGITS = 18
COLUMNS = [
    Column("id", whole=True),
    "queue",
    "state",
    "priority",
    Column("tries", right=True),
    Column("age", right=True),
    Column("body", free=True),
]


_PANEL = "Only messages"


def _only(kind: str, about: str, name: str) -> Any:
    return option(kind, about, name, panel=_PANEL)


FILTERS = GatheredOptions(
    "wanted",
    {
        "scope": Annotated[str | None, _only("NAME", "of this scope", "--scope")],
        "state": Annotated[
            list[State] | None, choice(State, "in this state, or several", "--state", panel=_PANEL)
        ],
        "message_type": Annotated[str | None, _only("NAME", "of this type", "--type")],
        "labels": Annotated[
            list[str] | None, _only("NAME=TEXT", "with this label; name:=5 for JSON", "--label")
        ],
        "correlation_id": Annotated[str | None, _only("ID", "of this conversation", "--correlation-id")],
        "causation_id": Annotated[str | None, _only("ID", "caused by this one", "--causation-id")],
        "parent_id": Annotated[str | None, _only("ID", "that are parts of this one", "--parent-id")],
        "agent": Annotated[str | None, _only("NAME", "for this agent", "--agent")],
        "channel": Annotated[str | None, _only("NAME", "that came through this channel", "--channel")],
        "sender_id": Annotated[str | None, _only("ID", "of this sender", "--sender-id")],
        "subscription": Annotated[
            str | None, _only("NAME", "that are deliveries to this subscriber", "--subscription")
        ],
        "created_after": Annotated[
            str | None, _only("TIME", "published since; a time, or 2h for two hours ago", "--since")
        ],
        "created_before": Annotated[str | None, _only("TIME", "published until", "--until")],
    },
)


def register(app: typer.Typer, panel: str) -> None:
    command(app, "peek", panel=panel, examples=["postroom peek jobs", "postroom peek jobs --limit 3 --json"])(
        peek
    )
    command(
        app,
        "list",
        gather=FILTERS,
        panel=panel,
        examples=[
            "postroom list",
            "postroom list jobs --state pending --state delayed",
            "postroom list --label customer=ada --since 2h --newest",
            "postroom list --limit 20 --cursor 1234",
        ],
    )(list_messages)
    command(
        app,
        "show",
        panel=panel,
        examples=["postroom show 01890a5d-ac96-774b-bcce-b302099a8057", "postroom show 01890a5d-… --json"],
    )(show)
    command(
        app,
        "cancel",
        panel=panel,
        examples=["postroom cancel 01890a5d-…", "postroom cancel 01890a5d-… --reason 'ordered twice'"],
    )(cancel)


def row(message: Message, now: int) -> tuple[Any, ...]:
    return (
        message.id,
        f"{message.path} → {message.subscription}" if message.subscription else message.path,
        message.state,
        message.priority_tier,
        message.attempts,
        age(message.created_at, now),
        short(message.body),
    )


async def peek(
    at: CommandContext,
    queue: QueuePath,
    limit: Annotated[int, option("N", "At most so many. Default 10.", "--limit", min=1)] = 10,
    subscription: Annotated[
        str | None, option("NAME", "Of a broadcast queue: for which subscriber.", "--subscription")
    ] = None,
) -> None:
    """Show what would be claimed next, without claiming it."""
    async with at.services(at_messages=True) as services:
        waiting = await services.messages.peek(
            at.caller, *split_path(queue), limit, subscription=subscription
        )
    found, counts = waiting.messages, waiting.counts
    if at.out.as_json:
        at.out.line([documents.message(message) for message in found])
    elif found:
        at.out.say(table(COLUMNS, [row(message, at.clock.now()) for message in found]))
        if counts.pending > len(found):
            at.out.say(f"… and {counts.pending - len(found):,} more.", style="dim")
    else:
        later = f" {counts.delayed:,} are delayed." if counts.delayed else ""
        at.out.say(f"Nothing waits to be claimed.{later}")


async def list_messages(
    at: CommandContext,
    wanted: dict[str, Any],
    queue: Annotated[
        str | None,
        argument("QUEUE", "Only of this queue."),
    ] = None,
    deliveries: Annotated[bool, flag("Also what subscribers of broadcasts got.", "--deliveries")] = False,
    newest: Annotated[bool, flag("Newest first.", "--newest")] = False,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
) -> None:
    """List messages, live and archived, in the order they came."""
    now = at.clock.now()
    for name in ("created_after", "created_before"):
        if name in wanted:
            wanted[name] = wanted[name].before(now)
    scope = wanted.pop("scope", None)
    if queue is not None:
        place, queue = split_path(queue)
        if scope not in (None, place):
            raise Unclear(f"--scope is {scope}, but the queue is one of {place}")
        scope = place
    async with at.services(at_messages=True) as services:
        page = await services.messages.list_page(
            at.caller,
            scope,
            queue,
            **go_on(cursor),
            limit=limit,
            states=tuple(wanted.pop("state", ())),
            deliveries=deliveries,
            newest_first=newest,
            **wanted,
        )
    show_page(at, page, table(COLUMNS, [row(each.message, now) for each in page.items]), "No messages.")


def go_on(cursor: str | None) -> dict[str, Any]:
    """Where a listing goes on: after the number it ended with."""
    if cursor is None:
        return {}
    if not (cursor.isascii() and cursor.isdecimal()) or len(cursor) > MOST_DIGITS:
        raise bad_cursor(cursor)
    return {"after": int(cursor)}


def show_page(at: CommandContext, page: MessagePage, shown: TextTable, nothing: str) -> None:
    """A listing, and how to see what comes after it."""
    following = str(page.items[-1].seq) if page.more else None
    listed = [documents.message(each.message) for each in page.items]
    at.out.show({"messages": listed, "next_cursor": following}, shown if listed else nothing)
    if following is not None and not at.out.as_json:
        at.out.say(f"There are more: add --cursor {following}", style="dim")


async def show(at: CommandContext, message_id: MessageId) -> None:
    """Show a message, why it is where it is, and everything that happened to it."""
    async with at.services(at_messages=True) as services:
        story = await services.messages.explain(at.caller, message_id)
    message, history, deliveries = story.message, story.events, story.deliveries
    reason = why(story, at.clock.now())
    if at.out.as_json:
        document = documents.message(message)
        document["why"] = reason
        document["events"] = [documents.event(event) for event in history]
        if deliveries:
            document["deliveries"] = [documents.message(each) for each in deliveries]
        at.out.line(document)
        return
    at.out.say(facts(_facts(message)))
    at.out.say("")
    at.out.say(reason)
    at.out.say("")
    at.out.say(
        table(
            [Column("event", right=True), "after", Column("what happened", free=True), "by"],
            [(each.seq, _after(each.time, message), what(each), each.actor) for each in history],
        )
    )
    if deliveries:
        at.out.say("")
        at.out.say(
            table(
                [Column("delivery", whole=True), "subscriber", "state", Column("attempts", right=True)],
                [(each.id, each.subscription, each.state, each.attempts) for each in deliveries],
            )
        )


def _after(time: int, message: Message) -> str:
    return f"{(time - message.created_at) / SECOND:+,.3f} s"


def _facts(m: Message) -> list[tuple[str, Any]]:
    def time(moment: int | None) -> str | None:
        return None if moment is None else iso(moment)

    body = m.body
    if isinstance(body, bytes):
        body = f"({len(body)} bytes of {m.content_type}; see them with --json)"
    elif not isinstance(body, str):
        body = json_text(body)
    return [
        ("message", m.id),
        ("queue", m.path + (f", delivery to {m.subscription}" if m.subscription else "")),
        ("came from", m.origin_queue),
        ("state", f"{m.state}, archived" if m.archived else m.state),
        ("type", m.message_type),
        ("priority", f"{m.priority_tier}, score {m.priority_score}"),
        ("attempts", m.attempts),
        ("published", iso(m.created_at) + (f" by {m.source_id}" if m.source_id else "")),
        ("ended", time(m.finished_at)),
        ("expires", time(m.expires_at)),
        ("back at", time(m.visible_at)),
        ("claimed by", m.claimed_by),
        ("lease ends", time(m.claim_expires_at)),
        ("key", m.idempotency_key),
        ("conversation", m.correlation_id if m.correlation_id != m.id else None),
        ("caused by", m.causation_id),
        ("part of", m.parent_id),
        ("channel", m.channel),
        ("sender", m.sender or m.sender_id),
        ("agent", m.agent),
        ("from agent", m.from_agent),
        ("labels", json_text(m.labels) if m.labels else None),
        ("files", json_text(m.files) if m.files else None),
        ("metadata", json_text(m.metadata) if m.metadata else None),
        ("last failure", m.failure_reason),
        ("result", None if m.result is None else json_text(m.result)),
        ("body", body),
    ]


async def cancel(
    at: CommandContext,
    message_ids: Annotated[
        list[str],
        argument("ID", "The messages' ids; all of them, or none.", autocompletion=completion.message_ids),
    ],
    reason: Annotated[str, option("TEXT", "Why, for whoever looks later.", "--reason")] = "cancelled",
) -> None:
    """End open messages for good. Whoever holds a claim learns of it when it next uses it."""
    async with at.services(change=True) as services:
        ended = await services.messages.cancel(at.caller, *message_ids, reason=reason)
    at.out.show(
        [documents.message(each.message) for each in ended],
        *(f"{each.message.id} is {each.message.state}." for each in ended),
    )
