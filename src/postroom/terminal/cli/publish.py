"""`postroom publish`: messages in, from an argument or from stdin."""

import sys
from collections.abc import Iterable
from typing import Annotated, Any, cast

import typer

from postroom.kernel.checks import JSON, split_path
from postroom.kernel.model import AfterFailed, ConsumerMode, Message, NewMessage, Queue, Receipt, Tier
from postroom.kernel.states import State
from postroom.runtime.command_builder import CommandBuilder, PublishOptions
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import GatheredOptions, command
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import QueuePath, argument, choice, flag, option
from postroom.terminal.cli.output import some
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import When, json_or_text, read_text

_TRACE = "Where it belongs"
_NEW = NewMessage()


def _trace(kind: str, about: str, name: str) -> Any:
    return option(kind, about, name, panel=_TRACE)


OPTIONS = GatheredOptions(
    "options",
    {
        "type": Annotated[
            str | None, option("NAME", f"What kind of message it is. Default {_NEW.message_type}.", "--type")
        ],
        "priority": Annotated[
            Tier | None, choice(Tier, "How urgent it is", "--priority", default=_NEW.priority_tier)
        ],
        "score": Annotated[
            int | None,
            option("N", f"Its rank in the tier, 0 to 1000. Default {_NEW.priority_score}.", "--score"),
        ],
        "labels": Annotated[
            list[str] | None,
            option("NAME=TEXT", "A label; name:=5 for JSON. As often as needed.", "--label"),
        ],
        "ttl": Annotated[float | None, option("DURATION", "It expires after this.", "--ttl")],
        "deadline": Annotated[
            str | None, option("TIME", "It expires then; a time, or a duration from now.", "--deadline")
        ],
        "delay": Annotated[float | None, option("DURATION", "It waits this long first.", "--delay")],
        "delay_until": Annotated[str | None, option("TIME", "It waits until then.", "--delay-until")],
        "key": Annotated[
            str | None,
            option("TEXT", "Idempotency key: the same key again makes no second message.", "--key"),
        ],
        "content_type": Annotated[
            str | None,
            option("TYPE", "The body is not JSON but this, like text/plain or image/png.", "--content-type"),
        ],
        "correlation_id": Annotated[str | None, _trace("ID", "Its conversation.", "--correlation-id")],
        "after": Annotated[
            list[str] | None, _trace("ID", "Wait until this message has completed; repeatable.", "--after")
        ],
        "after_failed": Annotated[
            AfterFailed | None,
            choice(
                AfterFailed,
                "If it ends otherwise",
                "--after-failed",
                default=AfterFailed.DEAD_LETTER,
                panel=_TRACE,
            ),
        ],
        "causation_id": Annotated[str | None, _trace("ID", "The message that caused it.", "--causation-id")],
        "parent_id": Annotated[str | None, _trace("ID", "The message it is a part of.", "--parent-id")],
        "hop": Annotated[int | None, _trace("N", "How many hand-offs led to it.", "--hop")],
        "source_type": Annotated[str | None, _trace("NAME", "What kind of author it has.", "--source-type")],
        "source_id": Annotated[str | None, _trace("NAME", "Its author. Default you.", "--source-id")],
        "channel": Annotated[str | None, _trace("NAME", "The channel it came through.", "--channel")],
        "sender": Annotated[str | None, _trace("NAME", "Who wrote it, for people.", "--sender")],
        "sender_id": Annotated[str | None, _trace("ID", "Who wrote it, for programs.", "--sender-id")],
        "agent": Annotated[str | None, _trace("NAME", "The agent it is for.", "--agent")],
        "from_agent": Annotated[str | None, _trace("NAME", "The agent it is from.", "--from-agent")],
        "files": Annotated[list[str] | None, _trace("PATH", "A file that goes with it.", "--file")],
        "metadata": Annotated[
            str | None, _trace("JSON OBJECT", "Whatever should be kept with it.", "--metadata")
        ],
        "hitl_spec": Annotated[str | None, _trace("JSON OBJECT", "What a human is asked.", "--hitl-spec")],
    },
)


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "publish",
        gather=OPTIONS,
        panel=panel,
        examples=[
            """postroom publish jobs '{"hello": "world"}'""",
            "postroom publish jobs 'call Ada back' --priority high --delay 10m",
            "postroom publish jobs '{\"invoice\": 17}' --key invoice-17 --label customer=ada",
            "cat jobs.jsonl | postroom publish jobs - --lines",
            "postroom publish pictures - --content-type image/png < cat.png",
        ],
    )(publish)


async def publish(
    at: CommandContext,
    queue: QueuePath,
    body: Annotated[str, argument("BODY", "JSON, or else a text; - reads it from stdin.")],
    options: dict[str, Any],
    lines: Annotated[bool, flag("One message per line of stdin; all of them, or none.", "--lines")] = False,
    text: Annotated[bool, flag("The body is text, even if it looks like JSON.", "--text")] = False,
    strict: Annotated[bool, flag("The body must be JSON; a text is refused.", "--strict")] = False,
) -> None:
    """Publish a message. When this ends without an error, the message survives a power cut."""
    if lines and body != "-":
        raise Unclear("--lines reads from stdin, so give - as the body")
    if lines and "key" in options:
        raise Unclear("--key names one message, so it cannot go with --lines")
    if strict and (text or "content_type" in options):
        raise Unclear("--strict is for JSON, so it cannot go with --text or --content-type")
    options = _resolved(at, options)
    raw_type = options.get("content_type", JSON)
    bodies = list(_lines(_body_text())) if lines else [_raw(body, raw_type)]
    if raw_type == JSON and not text:
        bodies = [_decoded(at, each, strict=strict) for each in bodies]
    builder, (scope, slug) = CommandBuilder(at.caller.actor, at.caller.tenant), split_path(queue)
    drafts = [builder.message(each, cast(PublishOptions, options)) for each in bodies]
    async with at.services(change=True) as services:
        if lines:
            receipts = await services.messages.publish_many(at.caller, scope, slug, drafts)
            at.out.show([documents.receipt(each) for each in receipts], _many(f"{scope}/{slug}", receipts))
            return
        [made] = await services.messages.publish(at.caller, scope, slug, drafts)
    message = made.found.message
    receipt = Receipt(message.id, made.created, message.state)
    at.out.show(documents.receipt(receipt), _one(made.queue, receipt, message))


def _resolved(at: CommandContext, options: dict[str, Any]) -> dict[str, Any]:
    """Moments as the room takes them, labels as one map."""
    now = at.clock.now()
    values = {
        name: value.ahead_of(now) if isinstance(value, When) else value for name, value in options.items()
    }
    if "labels" in values:
        values["labels"] = dict(options["labels"])
    return values


def _raw(body: str, content_type: str) -> str | bytes:
    if body != "-":
        return body
    if content_type == JSON or content_type.startswith("text/"):
        return _body_text().removesuffix("\n")
    return sys.stdin.buffer.read()


def _body_text() -> str:
    return read_text("The body", "say what it is with --content-type")


def _lines(text: str) -> Iterable[str]:
    return (line for line in text.split("\n") if line.strip())


def _decoded(at: CommandContext, body: Any, *, strict: bool) -> Any:
    value, problem = json_or_text(body)
    if problem is not None and strict:
        raise Unclear(f"The body is not valid JSON ({problem}); nothing was published")
    if problem is not None:
        at.out.note(f"the body is not valid JSON ({problem}), so it goes as text")
    return value


def _one(queue: Queue, receipt: Receipt, message: Message) -> str:
    path = queue.path
    if not receipt.created:
        return f"{receipt.id} was there already with this key ({path}, {receipt.state})."
    if receipt.state is not State.DEAD and message.path != path:
        return f"{receipt.id} is {receipt.state} in {message.path}, where a rule of {path} put it."
    broadcast = queue.settings.consumer_mode is ConsumerMode.BROADCAST
    if receipt.state is State.CANCELLED or (receipt.state is State.COMPLETED and not broadcast):
        return f"{receipt.id} is {receipt.state}: a rule of {path} ended it at once."
    if receipt.state is State.COMPLETED:
        return f"{receipt.id} is completed in {path} at once, since nobody subscribes to it."
    if receipt.state is State.DEAD and message.failure_kind == "dependency":
        return f"{receipt.id} is a dead letter: {message.failure_reason}."
    if receipt.state is State.DEAD:
        return f"{receipt.id} is a dead letter, since {path} is full."
    if receipt.state is State.DELAYED and message.metadata.get("after"):
        return f"{receipt.id} waits in {path} for {some(len(message.metadata['after']), 'message')}."
    return f"{receipt.id} is {receipt.state} in {path}."


def _many(path: str, receipts: list[Receipt]) -> str:
    new = sum(receipt.created for receipt in receipts)
    return f"Published to {path}: {some(new, 'message')}."
