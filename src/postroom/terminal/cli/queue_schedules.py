"""`postroom queue schedule` and its like: what is published to a queue by itself, and when."""

from typing import Annotated, Any

import typer

from postroom.clock import iso
from postroom.kernel.checks import split_path
from postroom.kernel.schedules.due import Missed
from postroom.kernel.schedules.model import QueueSchedule
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import QueuePath, argument, choice, flag, option
from postroom.terminal.cli.output import Column, span, table
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.values import When, json_or_text

Name = Annotated[str, argument("NAME", "scope/name, or the name alone in the default scope.")]


def add_commands(app: typer.Typer) -> None:
    command(
        app,
        "schedule",
        examples=[
            """postroom queue schedule report jobs '{"of": 1}' --cron "0 3 * * *" --zone Europe/Berlin""",
            "postroom queue schedule poll jobs look --every 5m --overlap",
        ],
    )(schedule)
    command(app, "schedules", examples=["postroom queue schedules", "postroom queue schedules --json"])(
        schedules
    )
    command(app, "unschedule", examples=["postroom queue unschedule report"])(unschedule)
    command(app, "run-schedule", examples=["postroom queue run-schedule report"])(run_schedule)


async def schedule(
    at: CommandContext,
    name: Name,
    queue: QueuePath,
    body: Annotated[str, argument("BODY", "JSON, or else a text.")] = "null",
    cron: Annotated[str | None, option("CRON", "Minute, hour, day, month, weekday.", "--cron")] = None,
    every: Annotated[float | None, option("DURATION", "Again and again.", "--every")] = None,
    once: Annotated[str | None, option("TIME", "Once, then.", "--at")] = None,
    zone: Annotated[str, option("NAME", "Whose clock; like Europe/Berlin. Default UTC.", "--zone")] = "UTC",
    missed: Annotated[
        Missed, choice(Missed, "Times that nobody was there for", "--missed", default=Missed.ONCE)
    ] = Missed.ONCE,
    overlap: Annotated[bool, flag("Also while what it published before is open.", "--overlap")] = False,
    off: Annotated[bool, flag("Keep it, switched off.", "--off")] = False,
) -> None:
    """Publish to a queue by itself: by cron, at an interval, or once.

    A schedule of this name is changed whole. One run at a time: while what it published before is open, its
    times are passed over.
    """
    if sum(given is not None for given in (cron, every, once)) != 1:
        raise Unclear("say when: one of --cron, --every and --at")
    scope, own = split_path(name)
    of, slug = split_path(queue)
    if of != scope:
        raise Unclear(f"the schedule is in the scope {scope} and the queue in {of}: name both in one scope")
    fields: dict[str, Any] = {
        "body": json_or_text(body)[0],
        "cron": cron or "",
        "every_s": every,
        "at": once.ahead_of(at.clock.now()) if isinstance(once, When) else once,
        "zone": zone,
        "missed": missed.value,
        "overlap": overlap,
        "enabled": not off,
    }
    async with at.services(change=True) as services:
        made = await services.queue_schedules.put(at.caller, scope, own, slug, fields)
    comes = "is switched off" if made.next_at is None else f"comes next at {iso(made.next_at)}"
    at.out.show(documents.schedule(made), f"{made.path} publishes to {made.queue} and {comes}.")


async def schedules(
    at: CommandContext,
    scope: Annotated[str, option("NAME", "Of this scope. Default default.", "--scope")] = "default",
) -> None:
    """List schedules of queues, with when each comes next and what went wrong last."""
    async with at.services() as services:
        found = await services.queue_schedules.list_all(at.caller, scope)
    columns = ["name", "queue", "when", "next", Column("published", right=True), Column("problem", free=True)]
    rows = [
        (each.path, each.queue, _times(each), _next(each), each.published, each.problem) for each in found
    ]
    shown = table(columns, rows) if rows else f"No schedules in {scope}."
    at.out.show([documents.schedule(each) for each in found], shown)


async def unschedule(at: CommandContext, name: Name) -> None:
    """Remove a schedule of a queue; what it has published stays."""
    async with at.services(change=True) as services:
        gone = await services.queue_schedules.delete(at.caller, *split_path(name))
    at.out.show({"unscheduled": gone.path}, f"{gone.path} is removed.")


async def run_schedule(at: CommandContext, name: Name) -> None:
    """Publish what a schedule would, now, besides its times."""
    async with at.services(change=True) as services:
        receipt = await services.queue_schedules.run(at.caller, *split_path(name))
    at.out.show(documents.receipt(receipt), f"{receipt.id} is {receipt.state}.")


def _times(schedule: QueueSchedule) -> str:
    if schedule.every_s is not None:
        return f"every {span(schedule.every_s)}"
    return schedule.cron + f" {schedule.zone}" if schedule.cron else iso(schedule.at or 0)


def _next(schedule: QueueSchedule) -> str:
    if not schedule.enabled:
        return "off"
    return "over" if schedule.next_at is None else iso(schedule.next_at)
