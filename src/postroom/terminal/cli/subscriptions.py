"""`postroom subscribe` and `unsubscribe`: who gets what is published to a broadcast queue."""

from typing import Annotated

import typer

from postroom.kernel.checks import split_path
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


async def subscribe(
    at: CommandContext,
    queue: QueuePath,
    name: Name,
    earliest: Annotated[bool, flag("Also get what is still kept from before.", "--earliest")] = False,
) -> None:
    """Subscribe to a broadcast queue: from now on each message is also delivered to this name.

    Subscribing again is no error and changes nothing.
    """
    async with at.services(change=True) as services:
        found = await services.subscriptions.subscribe(
            at.caller, *split_path(queue), name, earliest=earliest, exist_ok=True
        )
    made, counts = found.subscription, found.counts
    at.out.show(
        documents.subscription(made, counts),
        f"{made.name} is subscribed to {made.queue}; waiting for it: {some(counts.waiting, 'message')}.",
    )


async def unsubscribe(at: CommandContext, queue: QueuePath, name: Name) -> None:
    """End a subscription; what the subscriber had not finished is cancelled."""
    scope, slug = split_path(queue)
    async with at.services(change=True) as services:
        path = (await services.subscriptions.unsubscribe(at.caller, scope, name, queue=slug)).queue
    at.out.show({"queue": path, "unsubscribed": name}, f"{name} is no longer subscribed to {path}.")
