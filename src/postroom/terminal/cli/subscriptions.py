"""`postroom subscribe` and `unsubscribe`: who gets what is published to a broadcast queue."""

from typing import Annotated

import typer

from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command
from postroom.terminal.cli.options import QueuePath, argument, flag
from postroom.terminal.cli.output import some
from postroom.terminal.cli.store_access import CommandContext

Name = Annotated[str, argument("NAME", "The subscriber's name.")]


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "subscribe",
        panel=panel,
        examples=["postroom subscribe news website", "postroom subscribe news archive --earliest"],
    )(subscribe)
    command(app, "unsubscribe", panel=panel, examples=["postroom unsubscribe news website"])(unsubscribe)


def subscribe(
    at: CommandContext,
    queue: QueuePath,
    name: Name,
    earliest: Annotated[bool, flag("Also get what is still kept from before.", "--earliest")] = False,
) -> None:
    """Subscribe to a broadcast queue: from now on each message is also delivered to this name.

    Subscribing again is no error and changes nothing.
    """
    with at.room() as room:
        made = room.subscribe(queue, name, earliest=earliest)
        counts = room.counts(queue, subscription=name)
    at.out.show(
        documents.subscription(made, counts),
        f"{made.name} is subscribed to {made.queue}; waiting for it: {some(counts.waiting, 'message')}.",
    )


def unsubscribe(at: CommandContext, queue: QueuePath, name: Name) -> None:
    """End a subscription; what the subscriber had not finished is cancelled."""
    with at.room() as room:
        path = room.queue(queue).path
        room.unsubscribe(queue, name)
    at.out.show({"queue": path, "unsubscribed": name}, f"{name} is no longer subscribed to {path}.")
