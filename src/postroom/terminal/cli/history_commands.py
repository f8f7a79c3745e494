"""`postroom history search`, `trace` and `why`: what happened, from the hot store and the lake together."""

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.clock import SECOND
from postroom.errors import MessageNotFound
from postroom.kernel import checks
from postroom.terminal.cli import completion
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.lake_access import LakeOption, find_source, lake_of
from postroom.terminal.cli.options import MessageId, argument, option
from postroom.terminal.cli.output import Column, facts, span, table
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import When
from postroom.terminal.cli.why import why as explain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postroom.pipeline.serving.engine import QueryEngine

app = group("history", "Search everything that was ever said.")


def register(root: typer.Typer, panel: str) -> None:
    root.add_typer(app, rich_help_panel=panel)
    command(
        root, "trace", panel=panel, examples=["postroom trace telegram:1-17", "postroom trace ID --json"]
    )(trace)
    command(root, "why", panel=panel, examples=["postroom why 01890a5d-ac96-774b-bcce-b302099a8057"])(why)


@contextmanager
def _lake(at: CommandContext, named: str | None) -> "Iterator[QueryEngine | None]":
    """The lake, if there is one: without it, the hot store answers alone."""
    from postroom.pipeline.errors import LakeMissing, PartMissing

    try:
        lake = lake_of(at, named)
        from postroom.pipeline.serving.engine import engine

        opened = engine(lake)
        found = opened.__enter__()
    except (LakeMissing, PartMissing, ImportError):
        if named is not None:
            raise
        yield None
        return
    try:
        yield found
    finally:
        opened.__exit__(None, None, None)


@command(
    app,
    "search",
    examples=[
        "postroom history search invoice",
        "postroom history search refund order --channel telegram --since 7d",
    ],
)
def search(
    at: CommandContext,
    words: Annotated[list[str], argument("WORDS", "All of them must occur.")],
    agent: Annotated[str | None, option("NAME", "To or from this agent.", "--agent")] = None,
    channel: Annotated[str | None, option("NAME", "On this channel.", "--channel")] = None,
    sender: Annotated[str | None, option("NAME", "From this person.", "--sender")] = None,
    since: Annotated[When | None, option("TIME", "From this time on, or so long ago.", "--since")] = None,
    limit: Annotated[int, option("N", "At most so many. Default 20.", "--limit")] = 20,
    lake: LakeOption = None,
) -> None:
    """Find messages by their words, the newest first: those that live and those that left long ago."""
    from postroom.pipeline.serving.history import Search
    from postroom.pipeline.serving.history import search as find

    checks.check_count("--limit", limit, least=1, most=10_000)
    first = since.before(at.clock.now()) if since is not None else None
    wanted = Search(
        words=tuple(words),
        agent=agent,
        channel=channel,
        sender=sender,
        since=datetime.fromtimestamp(first / SECOND, UTC).date() if first is not None else None,
        limit=limit,
    )
    with _lake(at, lake) as engine:
        found = find(engine, find_source(at), wanted)
    at.out.show(
        found,
        table(
            [Column("message", whole=True), "when", "who", "state", Column("text", free=True)],
            [(row["id"], row["created_at"][:16], _who(row), row["state"], row["text"]) for row in found],
        )
        if found
        else "Nothing was found.",
    )


def _who(row: dict[str, Any]) -> str:
    return f"@{row['from_agent']}" if row["from_agent"] else row["sender"] or row["channel"] or ""


async def trace(
    at: CommandContext,
    wanted: Annotated[
        str, argument("ID", "A conversation, or any message of it.", autocompletion=completion.message_ids)
    ],
    lake: LakeOption = None,
) -> None:
    """Show a conversation as a tree: who did what, caused by what, how long it waited and was worked on.

    Of what the store still has also the words, the attempts, and each turn with its tokens and cost.
    """
    from postroom.pipeline.serving.traces import trace as find
    from postroom.pipeline.serving.traces import tree
    from postroom.terminal.cli.conversation_tree import render_tree

    with _lake(at, lake) as engine:
        found = find(engine, find_source(at), wanted)
    steps = None if at.out.as_json else await at.look_at_conversation(found["trace_id"])
    total = found["summary"]
    starred = any(each.get("critical") for each in found["spans"])
    at.out.show(
        found,
        facts(
            [
                ("conversation", found["trace_id"]),
                ("length", span(total["duration_us"] / 1e6) if total else None),
                ("agents", ", ".join(total["agents"]) if total else None),
                ("turns", total["turns"] if total and total.get("turns") else None),
                ("tokens", f"{total['tokens']:,}" if total and total.get("tokens") else None),
                ("cost", f"${total['cost_usd']:.4f}" if total and total["cost_usd"] else None),
            ]
        ),
        *([render_tree(steps), ""] if steps is not None else []),
        table(
            [Column("step", free=True), "state", "waited", "worked", "message"],
            [
                (
                    f"{'  ' * depth}{'* ' if each.get('critical') else '  '}{each['name']}",
                    each["state"]
                    if not each.get("error_class")
                    else f"{each['state']} ({each['error_class']})",
                    _span(each.get("wait_us")),
                    _span(each.get("work_us")),
                    each["span_id"],
                )
                for depth, each in tree(found["spans"])
            ],
        ),
        *(["Steps with a star lie on the way that took longest."] if starred else []),
    )


def _span(micros: int | None) -> str:
    return "" if micros is None else span(micros / 1e6)


async def why(at: CommandContext, message_id: MessageId, lake: LakeOption = None) -> None:
    """Say why a message is where it is, or why it ended as it did, and what led there."""
    if at.has_file or at.is_served:
        try:
            async with at.services() as services:
                story = await services.messages.explain(at.caller, message_id)
            reason = explain(story, at.clock.now())
            at.out.show({"id": message_id, "why": reason, "from": "store"}, reason)
            return
        except MessageNotFound:
            pass
    from postroom.pipeline.serving.history import life

    with _lake(at, lake) as engine:
        found = life(engine, message_id) if engine is not None else None
    if found is None:
        raise MessageNotFound(message_id=message_id)
    reason = _reason(found["life"])
    at.out.show(
        {"id": message_id, "why": reason, "from": "lake", **found},
        reason,
        table(
            [Column("event", right=True), "when", "what", "by"],
            [(each["seq"], each["time"], each["type"], each["actor"]) for each in found["events"]],
        ),
    )


def _reason(told: dict[str, Any]) -> str:
    """From the lake: the message has left the hot store."""
    took = f", {_span(told['total_us'])} after it was published" if told["total_us"] is not None else ""
    text = f"It left the store after its end: it was {told['outcome']} on attempt {told['attempts']}{took}."
    if told["error_class"]:
        text += f" Its last failure was {told['error_class']}"
        text += f": {told['error_reason']}." if told["error_reason"] else "."
    return text
