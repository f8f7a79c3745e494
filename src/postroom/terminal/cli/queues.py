"""`postroom queue`: make, look at, change and close queues."""

from typing import Annotated, Any

from postroom.kernel.checks import split_path
from postroom.kernel.model import Counts, Queue, QueueSettings
from postroom.terminal.cli import documents, queue_schedules
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import QueuePath, ScopeOption, argument, flag
from postroom.terminal.cli.output import Column, facts, span, table
from postroom.terminal.cli.queue_settings import SETTINGS, chosen
from postroom.terminal.cli.store_access import CommandContext

app = group("queue", "Queues: ordered channels in a scope, with their rules for retries and limits.")

STATES = ("pending", "delayed", "claimed", "completed", "expired", "cancelled", "dead")


@command(app, "list", examples=["postroom queue list", "postroom queue list --scope billing --json"])
async def list_queues(
    at: CommandContext,
    scope: ScopeOption = None,
    system: Annotated[bool, flag("Also the system's own queues.", "--system")] = False,
) -> None:
    """List the queues and how many messages of each state they hold."""
    async with at.services(at_messages=True) as services:
        found = [(each.queue, each.counts) for each in await services.queues.list_all(at.caller, scope)]
    dead = sum(counts.dead for _, counts in found)
    found = [(queue, counts) for queue, counts in found if system or not queue.system]
    states = STATES if system else STATES[:-1]
    at.out.show(
        [documents.queue(queue, counts) for queue, counts in found],
        table(
            ["queue", "state", "order", "mode", *(Column(state, right=True) for state in states)],
            [_row(queue, counts, states) for queue, counts in found],
        ),
    )
    if not at.out.as_json:
        if not found:
            at.out.say("No queues yet. Make one: postroom queue create jobs", style="dim")
        if dead:
            at.out.say(f"Dead letters: {dead:,}. See them: postroom dead list", style="dim")


def _row(queue: Queue, counts: Counts, states: tuple[str, ...]) -> tuple[Any, ...]:
    settings = queue.settings
    return (
        queue.path,
        queue.state,
        settings.ordering,
        settings.consumer_mode,
        *(getattr(counts, state) for state in states),
    )


@command(
    app,
    "create",
    gather=SETTINGS,
    examples=[
        "postroom queue create jobs",
        "postroom queue create billing/invoices --ordering priority --max-retries 3 --lease 2m",
        "postroom queue create news --mode broadcast --ttl 7d",
    ],
)
async def create(
    at: CommandContext,
    queue: Annotated[
        str,
        argument("QUEUE", "scope/queue, or the queue alone for the default scope."),
    ],
    settings: dict[str, Any],
    exist_ok: Annotated[
        bool, flag("No error when it exists already; its settings stay.", "--exist-ok")
    ] = False,
) -> None:
    """Create a queue."""
    scope, slug = split_path(queue)
    async with at.services(make=True) as services:
        counted = await services.queues.create(at.caller, scope, slug, chosen(settings), exist_ok=exist_ok)
    made = counted.queue
    at.out.show(documents.queue(made), f"{made.path} is {made.state}: {_summary(made)}.")


@command(
    app,
    "set",
    gather=SETTINGS,
    examples=[
        "postroom queue set jobs --lease 5m --max-retries 10",
        "postroom queue set jobs --max-depth none",
        "postroom queue set jobs --ordering priority",
    ],
)
async def change(at: CommandContext, queue: QueuePath, settings: dict[str, Any]) -> None:
    """Change settings of a queue; what is not named stays. The word none takes a limit away.

    A new ordering gives every waiting message its new place at once.
    """
    changes = chosen(settings)
    if not changes:
        raise Unclear("Name at least one setting to change, like --lease 5m")
    async with at.services(change=True) as services:
        changed = (await services.queues.update(at.caller, *split_path(queue), changes)).queue
    at.out.show(documents.queue(changed), f"{changed.path} is {changed.state}: {_summary(changed)}.")


def _summary(queue: Queue) -> str:
    settings = queue.settings
    return (
        f"{settings.ordering} order, {settings.consumer_mode} consumers, "
        f"lease {span(settings.visibility_timeout_s)}, {settings.max_retries} attempts"
    )


@command(app, "show", examples=["postroom queue show jobs", "postroom queue show billing/invoices --json"])
async def show(at: CommandContext, queue: QueuePath) -> None:
    """Show a queue: its settings, what it holds, and who subscribes to it."""
    async with at.services(at_messages=True) as services:
        details = await services.queues.read(at.caller, *split_path(queue))
    found, counts = details.queue, details.counts
    subscribers = [(each.subscription, each.counts) for each in details.subscriptions]
    document = documents.queue(found, counts)
    document["subscriptions"] = [documents.subscription(each, held) for each, held in subscribers]
    at.out.show(document, facts(_facts(found, counts)))
    if subscribers and not at.out.as_json:
        at.out.say("")
        at.out.say(
            table(
                ["subscriber", *(Column(state, right=True) for state in STATES)],
                [(each.name, *(getattr(held, state) for state in STATES)) for each, held in subscribers],
            )
        )


def _rate(settings: QueueSettings) -> str:
    if settings.rate_limit is None:
        return "no limit"
    by_label = f" for each value of {settings.rate_key}" if settings.rate_key else ""
    return f"{settings.rate_limit:,} in {span(settings.rate_period_s)}{by_label}"


def _facts(queue: Queue, counts: Counts) -> list[tuple[str, Any]]:
    s = queue.settings
    held = ", ".join(f"{count:,} {state}" for state in STATES if (count := getattr(counts, state)))

    def time(seconds: float | None) -> str:
        return "none" if seconds is None else span(seconds)

    return [
        ("queue", queue.path),
        ("state", f"{queue.state}, one of the system's own" if queue.system else queue.state),
        ("holds", held or "nothing"),
        ("description", s.description),
        ("ordering", s.ordering),
        ("mode", s.consumer_mode),
        ("lease", time(s.visibility_timeout_s)),
        ("max retries", f"{s.max_retries}, then a dead letter"),
        ("backoff", f"from {time(s.backoff_base_s)}, doubling, up to {time(s.backoff_cap_s)}"),
        ("concurrency", "no limit" if s.concurrency is None else f"{s.concurrency:,} claims at once"),
        ("rate", _rate(s)),
        (
            "max depth",
            "no limit" if s.max_depth is None else f"{s.max_depth:,}, then {s.overflow_policy}",
        ),
        ("ttl", time(s.default_ttl_s)),
        ("schema", s.schema or "none"),
        ("retention", "for ever" if s.retention_s is None else span(s.retention_s)),
    ]


@command(app, "pause", examples=["postroom queue pause jobs"])
async def pause(at: CommandContext, queue: QueuePath) -> None:
    """Take no new messages and hand none out, until it is resumed."""
    await _change(at, queue, "pause")


@command(app, "resume", examples=["postroom queue resume jobs"])
async def resume(at: CommandContext, queue: QueuePath) -> None:
    """Open a paused or draining queue again."""
    await _change(at, queue, "resume")


@command(app, "drain", examples=["postroom queue drain jobs"])
async def drain(at: CommandContext, queue: QueuePath) -> None:
    """Take no new messages, but hand out those that wait."""
    await _change(at, queue, "drain")


@command(app, "archive", examples=["postroom queue archive jobs"])
async def archive(at: CommandContext, queue: QueuePath) -> None:
    """Close a queue but keep everything in it."""
    await _change(at, queue, "archive")


@command(app, "unarchive", examples=["postroom queue unarchive jobs"])
async def unarchive(at: CommandContext, queue: QueuePath) -> None:
    """Open an archived queue again."""
    await _change(at, queue, "unarchive")


@command(app, "delete", examples=["postroom queue delete jobs"])
async def delete(at: CommandContext, queue: QueuePath) -> None:
    """Delete a queue that holds no open messages and has no dead letters."""
    async with at.services(change=True) as services:
        path = (await services.queues.delete(at.caller, *split_path(queue))).path
    at.out.show({"deleted": path}, f"{path} is deleted; what had ended in it stays in the archive.")


async def _change(at: CommandContext, queue: str, verb: str) -> None:
    async with at.services(change=True) as services:
        changed = await services.queues.set_state(at.caller, *split_path(queue), verb)
    found, counts = changed.queue, changed.counts
    at.out.show(
        documents.queue(found, counts),
        f"{found.path} is {found.state}; {counts.waiting:,} wait, {counts.claimed:,} are claimed.",
    )


queue_schedules.add_commands(app)
