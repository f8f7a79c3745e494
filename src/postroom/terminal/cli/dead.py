"""`postroom dead`: look at dead letters, send them back, or give them up."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from postroom.kernel.model import Message
from postroom.kernel.states import State
from postroom.services.callers import Caller
from postroom.services.container import Services
from postroom.terminal.cli import completion
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.messages import go_on, show_page
from postroom.terminal.cli.options import CursorOption, LimitOption, ScopeOption, argument, flag, option
from postroom.terminal.cli.output import Column, ago, short, some, table
from postroom.terminal.cli.store_access import CommandContext

app = group("dead", "Dead letters: messages that used up their attempts, or were refused for good.")

AT_ONCE = 1000

Ids = Annotated[
    list[str] | None,
    argument("ID", "These dead letters; all of them, or none.", autocompletion=completion.dead_ids),
]
OfScope = Annotated[
    str | None,
    option("NAME", "All dead letters of this scope.", "--scope"),
]
All = Annotated[bool, flag("All dead letters there are.", "--all")]


@command(app, "list", examples=["postroom dead list", "postroom dead list --scope billing --json"])
async def list_dead(
    at: CommandContext,
    scope: ScopeOption = None,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
) -> None:
    """List dead letters with the queue they came from and the reason."""
    now = at.clock.now()
    async with at.services() as services:
        page = await services.messages.list_page(
            at.caller, scope, states=(State.DEAD,), deliveries=True, limit=limit, **go_on(cursor)
        )
    shown = table(
        [
            Column("id", whole=True),
            "from",
            "died",
            Column("tries", right=True),
            Column("reason", free=True),
            Column("body", free=True),
        ],
        [
            (
                message.id,
                _origin(message),
                ago(message.finished_at, now),
                message.attempts,
                short(message.failure_reason or "").strip('"'),
                short(message.body, 30),
            )
            for message in (each.message for each in page.items)
        ],
    )
    show_page(at, page, shown, "No dead letters.")


def _origin(message: Message) -> str:
    return f"{message.scope}/{message.origin_queue or message.queue}"


@command(
    app,
    "replay",
    examples=[
        "postroom dead replay 01890a5d-ac96-774b-bcce-b302099a8057",
        "postroom dead replay --scope billing",
        "postroom dead replay --all",
    ],
)
async def replay(at: CommandContext, ids: Ids = None, scope: OfScope = None, all_: All = False) -> None:
    """Send dead letters back to the queues they came from, with a clean slate of attempts."""
    _check_choice(ids, scope, all_)
    async with at.services(change=True) as services:
        if ids:
            done = [each.message.id for each in await services.dead_letters.replay(at.caller, *ids)]
        else:
            done = await _each_scope(at, services, services.dead_letters.replay_all, scope)
    at.out.show({"replayed": done}, _count(done, "is sent back", "are sent back"))


@command(
    app,
    "discard",
    examples=[
        "postroom dead discard 01890a5d-ac96-774b-bcce-b302099a8057",
        "postroom dead discard --scope billing --yes",
    ],
)
async def discard(
    at: CommandContext,
    ids: Ids = None,
    scope: OfScope = None,
    all_: All = False,
    yes: Annotated[bool, flag("Do not ask.", "--yes", "-y")] = False,
) -> None:
    """Give dead letters up for good. Asks first."""
    _check_choice(ids, scope, all_)
    if not yes:
        if ids:
            what = some(len(set(ids)), "dead letter")
        else:
            what = f'all dead letters of the scope "{scope}"' if scope else "all dead letters of all scopes"
        confirm(f"Discard {what} for good?")
    async with at.services(change=True) as services:
        if ids:
            done = [each.message.id for each in await services.dead_letters.discard(at.caller, *ids)]
        else:
            done = await _each_scope(at, services, services.dead_letters.discard_all, scope)
    at.out.show({"discarded": done}, _count(done, "is discarded", "are discarded"))


def _check_choice(ids: list[str] | None, scope: str | None, all_: bool) -> None:
    if [bool(ids), scope is not None, all_].count(True) != 1:
        raise Unclear("Say which dead letters: their ids, or --scope NAME, or --all")


async def _each_scope(
    at: CommandContext,
    services: Services,
    verb: Callable[[Caller, str, int], Awaitable[list[str]]],
    scope: str | None,
) -> list[str]:
    scopes = [scope]
    if scope is None:
        scopes = [each.slug for each in await services.scopes.list_all(at.caller)]
    done: list[str] = []
    for slug in scopes:
        while slug is not None and (batch := await verb(at.caller, slug, AT_ONCE)):
            done += batch
    return done


def _count(done: list[str], one: str, many: str) -> str:
    if not done:
        return "There are no dead letters."
    if len(done) == 1:
        return f"{done[0]} {one}."
    return f"{len(done):,} dead letters {many}."
