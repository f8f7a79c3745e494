"""`postroom queue`: make, look at, change and close queues."""

from typing import Annotated, Any

from postroom.kernel.model import ConsumerMode, Counts, LifecycleState, Queue
from postroom.runtime import SyncRoom
from postroom.terminal.cli import documents
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import QueuePath, ScopeOption, argument, flag
from postroom.terminal.cli.output import Column, facts, span, table
from postroom.terminal.cli.queue_settings import SETTINGS, chosen
from postroom.terminal.cli.store_access import CommandContext

app = group("queue", "Queues: ordered channels in a scope, with their rules for retries and limits.")

STATES = ("pending", "delayed", "claimed", "completed", "expired", "cancelled", "dead")


@command(app, "list", examples=["postroom queue list", "postroom queue list --scope billing --json"])
def list_queues(
    at: CommandContext,
    scope: ScopeOption = None,
    system: Annotated[bool, flag("Also the system's own queues.", "--system")] = False,
) -> None:
    """List the queues and how many messages of each state they hold."""
    with at.looking(at_messages=True) as room:
        found = [(queue, room.counts(queue.path)) for queue in room.queues(scope)]
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
def create(
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
    with at.room(make=True) as room:
        made = room.create_queue(queue, exist_ok=exist_ok, **chosen(settings))
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
def change(at: CommandContext, queue: QueuePath, settings: dict[str, Any]) -> None:
    """Change settings of a queue; what is not named stays. The word none takes a limit away.

    A new ordering gives every waiting message its new place at once.
    """
    changes = chosen(settings)
    if not changes:
        raise Unclear("Name at least one setting to change, like --lease 5m")
    with at.room() as room:
        changed = room.update_queue(queue, **changes)
    at.out.show(documents.queue(changed), f"{changed.path} is {changed.state}: {_summary(changed)}.")


def _summary(queue: Queue) -> str:
    settings = queue.settings
    return (
        f"{settings.ordering} order, {settings.consumer_mode} consumers, "
        f"lease {span(settings.visibility_timeout_s)}, {settings.max_retries} attempts"
    )


@command(app, "show", examples=["postroom queue show jobs", "postroom queue show billing/invoices --json"])
def show(at: CommandContext, queue: QueuePath) -> None:
    """Show a queue: its settings, what it holds, and who subscribes to it."""
    with at.looking(at_messages=True) as room:
        found = room.queue(queue)
        counts = room.counts(queue)
        subscribers = [
            (each, room.counts(queue, subscription=each.name)) for each in _subscriptions(room, found)
        ]
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


def _subscriptions(room: SyncRoom, queue: Queue) -> list[Any]:
    if queue.settings.consumer_mode is not ConsumerMode.BROADCAST:
        return []
    return room.subscriptions(queue.path)


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
        (
            "max depth",
            "no limit" if s.max_depth is None else f"{s.max_depth:,}, then {s.overflow_policy}",
        ),
        ("ttl", time(s.default_ttl_s)),
        ("schema", s.schema or "none"),
        ("retention", "for ever" if s.retention_s is None else span(s.retention_s)),
    ]


@command(app, "pause", examples=["postroom queue pause jobs"])
def pause(at: CommandContext, queue: QueuePath) -> None:
    """Take no new messages and hand none out, until it is resumed."""
    _state(at, queue, LifecycleState.PAUSED)


@command(app, "resume", examples=["postroom queue resume jobs"])
def resume(at: CommandContext, queue: QueuePath) -> None:
    """Open a paused or draining queue again."""
    _state(at, queue, LifecycleState.ACTIVE)


@command(app, "drain", examples=["postroom queue drain jobs"])
def drain(at: CommandContext, queue: QueuePath) -> None:
    """Take no new messages, but hand out those that wait."""
    _state(at, queue, LifecycleState.DRAINING)


@command(app, "archive", examples=["postroom queue archive jobs"])
def archive(at: CommandContext, queue: QueuePath) -> None:
    """Close a queue but keep everything in it."""
    _state(at, queue, LifecycleState.ARCHIVED)


@command(app, "unarchive", examples=["postroom queue unarchive jobs"])
def unarchive(at: CommandContext, queue: QueuePath) -> None:
    """Open an archived queue again."""
    _state(at, queue, LifecycleState.ACTIVE)


@command(app, "delete", examples=["postroom queue delete jobs"])
def delete(at: CommandContext, queue: QueuePath) -> None:
    """Delete a queue that holds no open messages and has no dead letters."""
    with at.room() as room:
        path = room.queue(queue).path
        room.delete_queue(queue)
    at.out.show({"deleted": path}, f"{path} is deleted; what had ended in it stays in the archive.")


def _state(at: CommandContext, queue: str, state: LifecycleState) -> None:
    with at.room() as room:
        changed = room.set_queue_state(queue, state)
        counts = room.counts(queue)
    at.out.show(
        documents.queue(changed, counts),
        f"{changed.path} is {changed.state}; {counts.waiting:,} wait, {counts.claimed:,} are claimed.",
    )
