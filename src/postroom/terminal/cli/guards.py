"""`postroom guards`: what was stopped before it cost too much, and how it goes on."""

from typing import Annotated, Any

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import confirm
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("guards", "Guards: paused conversations, budgets, and the switch that pauses everybody.")

DOLLAR = 1_000_000
Conversation = Annotated[str, argument("CONVERSATION", "As `postroom guards list` names it.")]


def _dollars(amount: int | None) -> str:
    return "no limit" if amount is None else f"${amount / DOLLAR:,.2f}"


def _waiting(count: int) -> str:
    return f"{count} waiting message{'' if count == 1 else 's'}"


@command(app, "list", store=False, examples=["postroom guards list", "postroom guards list --json"])
async def list_paused(at: CommandContext) -> None:
    """List conversations that wait for a person, and today's budgets."""
    from postroom.services.office_documents import guards_document

    async with at.office() as office:
        found = guards_document(await office.budgets.overview(at.caller))
    talks = [
        (one["conversation"], one["guard"], one["agent"], one["channel"] or "", _dollars(one["spent"]))
        for one in found["conversations"]
    ]
    money = [
        (
            one["account"],
            _dollars(one["spent"]),
            _dollars(one["reserved"]),
            _dollars(one["limit"]),
            "reached" if one["frozen"] else "",
        )
        for one in found["budgets"]
    ]
    parts: list[Any] = []
    if found["paused"]:
        parts.append("Everybody pauses. To go on: postroom guards resume-all\n")
    if talks:
        parts.append(
            table([Column("conversation", free=True), "stopped by", "agent", "channel", "spent"], talks)
        )
    else:
        parts.append("No conversation waits for a person.")
    parts.append(table([Column("budget of today", free=True), "spent", "reserved", "limit", ""], money))
    at.out.show(found, *parts)


@command(app, "continue", store=False, examples=["postroom guards continue web:17"])
async def go_on(at: CommandContext, conversation: Conversation) -> None:
    """Let a paused conversation go on, as far again as the guard allows."""
    async with at.office() as office:
        count = await office.budgets.resume(at.caller, conversation)
    at.out.show({"ok": True, "messages": count}, f"It goes on with {_waiting(count)}.")


@command(app, "stop", store=False, examples=["postroom guards stop web:17 --yes"])
async def stop(
    at: CommandContext,
    conversation: Conversation,
    yes: Annotated[bool, flag("Do not ask.", "--yes", "-y")] = False,
) -> None:
    """End a conversation for good: what is open of it is cancelled."""
    if not yes:
        confirm(f"Cancel everything that is open in {conversation}?")
    async with at.office() as office:
        count = await office.budgets.stop(at.caller, conversation)
    at.out.show({"ok": True, "messages": count}, f"It has ended; {_waiting(count)} cancelled.")


@command(
    app,
    "raise",
    store=False,
    examples=["postroom guards raise agent/coder/2026-11-16 20", "postroom guards raise web:17 5"],
)
async def raise_limit(
    at: CommandContext,
    account: Annotated[str, argument("ACCOUNT", "A budget, or a conversation.")],
    amount: Annotated[float, argument("DOLLARS", "The new limit.")],
    messages: Annotated[int | None, option("N", "Also this many messages.", "--messages")] = None,
    hops: Annotated[int | None, option("N", "Also this many hand-offs.", "--hops")] = None,
) -> None:
    """A higher limit for a budget of today or for one conversation; what waited for it goes on."""
    async with at.office() as office:
        count = await office.budgets.raise_named(at.caller, account, usd=amount, messages=messages, hops=hops)
    told = f"The limit of {account} is ${amount:,.2f}; {_waiting(count)} go on."
    at.out.show({"ok": True, "messages": count}, told)


@command(app, "pause-all", store=False, examples=["postroom guards pause-all"])
async def pause_all(at: CommandContext) -> None:
    """No agent begins a turn any more. Messages are still accepted, and nothing is lost."""
    async with at.office() as office:
        changed = await office.budgets.pause_all(at.caller)
    before = "" if changed else " already"
    at.out.show(
        {"ok": True, "changed": changed}, f"Everybody pauses{before}. To go on: postroom guards resume-all"
    )


@command(app, "resume-all", store=False, examples=["postroom guards resume-all"])
async def resume_all(at: CommandContext) -> None:
    """Everybody goes on."""
    async with at.office() as office:
        count = await office.budgets.resume_all(at.caller)
    at.out.show({"ok": True, "messages": count}, f"Everybody goes on, with {_waiting(count)}.")
