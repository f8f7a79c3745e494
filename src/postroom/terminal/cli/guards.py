"""`postroom guards`: what was stopped before it cost too much, and how it goes on."""

from typing import Annotated, Any

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.office import ask
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
def list_paused(at: CommandContext) -> None:
    """List conversations that wait for a person, and today's budgets."""
    found = ask(lambda office: office.get("/api/guards"))
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
def go_on(at: CommandContext, conversation: Conversation) -> None:
    """Let a paused conversation go on, as far again as the guard allows."""
    done = ask(lambda office: office.post("/api/guards/continue", {"conversation": conversation}))
    at.out.show(done, f"It goes on with {_waiting(done['messages'])}.")


@command(app, "stop", store=False, examples=["postroom guards stop web:17 --yes"])
def stop(
    at: CommandContext,
    conversation: Conversation,
    yes: Annotated[bool, flag("Do not ask.", "--yes", "-y")] = False,
) -> None:
    """End a conversation for good: what is open of it is cancelled."""
    if not yes:
        confirm(f"Cancel everything that is open in {conversation}?")
    done = ask(lambda office: office.post("/api/guards/stop", {"conversation": conversation}))
    at.out.show(done, f"It has ended; {_waiting(done['messages'])} cancelled.")


@command(
    app,
    "raise",
    store=False,
    examples=["postroom guards raise agent/coder/2026-11-16 20", "postroom guards raise web:17 5"],
)
def raise_limit(
    at: CommandContext,
    account: Annotated[str, argument("ACCOUNT", "A budget, or a conversation.")],
    amount: Annotated[float, argument("DOLLARS", "The new limit.")],
    messages: Annotated[int | None, option("N", "Also this many messages.", "--messages")] = None,
    hops: Annotated[int | None, option("N", "Also this many hand-offs.", "--hops")] = None,
) -> None:
    """A higher limit for a budget of today or for one conversation; what waited for it goes on."""

    async def question(office: Any) -> Any:
        known = await office.get("/api/guards")
        if account in {one["account"] for one in known["budgets"]}:
            if messages is not None or hops is not None:
                raise Unclear("A budget is money only; --messages and --hops are for conversations.")
            return await office.post("/api/guards/budget", {"account": account, "usd": amount})
        body = {"conversation": account, "usd": amount, "messages": messages, "hops": hops}
        return await office.post("/api/guards/raise", body)

    done = ask(question)
    at.out.show(done, f"The limit of {account} is ${amount:,.2f}; {_waiting(done['messages'])} go on.")


@command(app, "pause-all", store=False, examples=["postroom guards pause-all"])
def pause_all(at: CommandContext) -> None:
    """No agent begins a turn any more. Mail is still taken in, and nothing is lost."""
    done = ask(lambda office: office.post("/api/guards/pause-all"))
    before = "" if done["changed"] else " already"
    at.out.show(done, f"Everybody pauses{before}. To go on: postroom guards resume-all")


@command(app, "resume-all", store=False, examples=["postroom guards resume-all"])
def resume_all(at: CommandContext) -> None:
    """Everybody goes on."""
    done = ask(lambda office: office.post("/api/guards/resume-all"))
    at.out.show(done, f"Everybody goes on, with {_waiting(done['messages'])}.")
