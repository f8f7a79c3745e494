"""`postroom schedule`: what is sent by itself, and when."""

from typing import Annotated, Any

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.office import ask, part
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("schedule", "Schedules: what is sent to whom by itself, and when.")

Which = Annotated[str, argument("NAME", "Its id or label.")]


@command(
    app,
    "list",
    store=False,
    aliases=["ls"],
    examples=["postroom schedule list", "postroom schedule list --agent coder"],
)
def list_schedules(
    at: CommandContext,
    agent: Annotated[str | None, option("NAME", "Only those for this agent.", "--agent")] = None,
) -> None:
    """List schedules."""
    found = ask(lambda office: office.get("/api/schedules", agent=agent))
    rows = [
        (
            one["label"],
            one["agentId"],
            one["cron"] or one.get("runAt", ""),
            one["zone"],
            "on" if one["enabled"] else "off",
            one["message"],
        )
        for one in found
    ]
    columns = ["label", "for", "when", "zone", "", Column("message", free=True)]
    at.out.show(found, table(columns, rows) if rows else "No schedules.")


@command(
    app,
    "add",
    store=False,
    aliases=["create"],
    examples=[
        'postroom schedule add coder "report what changed" --cron "0 9 * * 1-5" --label daily',
        'postroom schedule add lead "ship it" --at 2030-01-01T09:00:00Z',
    ],
)
def add(
    at: CommandContext,
    agent: Annotated[str, argument("AGENT", "For which agent or team.")],
    message: Annotated[str, argument("TEXT", "What it is sent.")],
    cron: Annotated[str | None, option("CRON", "Minute, hour, day, month, weekday.", "--cron")] = None,
    run_at: Annotated[str | None, option("TIME", "Once, then.", "--at", parser=str)] = None,
    label: Annotated[str | None, option("NAME", "To find it by.", "--label")] = None,
    zone: Annotated[
        str | None, option("NAME", "Like Europe/Berlin. Default schedules.zone.", "--zone")
    ] = None,
    channel: Annotated[str | None, option("NAME", "Where the answer goes.", "--channel")] = None,
) -> None:
    """Send something regularly, or once."""
    if (cron is None) == (run_at is None):
        raise Unclear("say when: either --cron or --at")
    body: dict[str, Any] = {"agentId": agent, "message": message}
    given = {"cron": cron, "runAt": run_at, "label": label, "zone": zone, "channel": channel}
    body |= {name: value for name, value in given.items() if value is not None}
    made = ask(lambda office: office.post("/api/schedules", body))["schedule"]
    at.out.show(made, f"{made['label']} is scheduled: {made['cron'] or made['runAt']} ({made['zone']}).")


@command(
    app,
    "remove",
    store=False,
    aliases=["rm", "delete"],
    examples=["postroom schedule remove daily --yes"],
)
def remove(at: CommandContext, name: Which, yes: Yes = False) -> None:
    """Remove a schedule. To keep it for later, pause it instead."""
    if not yes:
        confirm(f"Remove the schedule {name}?")
    at.out.show(ask(lambda office: office.delete(f"/api/schedules/{part(name)}")), f"{name} is removed.")


@command(app, "pause", store=False, examples=["postroom schedule pause daily"])
def pause(at: CommandContext, name: Which) -> None:
    """Switch a schedule off."""
    _switch(at, name, on=False)


@command(app, "resume", store=False, examples=["postroom schedule resume daily"])
def resume(at: CommandContext, name: Which) -> None:
    """Switch a schedule on again."""
    _switch(at, name, on=True)


def _switch(at: CommandContext, name: str, *, on: bool) -> None:
    done = ask(lambda office: office.put(f"/api/schedules/{part(name)}", {"enabled": on}))
    at.out.show(done["schedule"], f"{name} is {'on' if on else 'off'}.")


@command(app, "run", store=False, examples=["postroom schedule run daily"])
def run(at: CommandContext, name: Which) -> None:
    """Send it once more, now."""
    done = ask(lambda office: office.post(f"/api/schedules/{part(name)}/run"))
    at.out.show(done, f"{name} is sent: {done['messageId']}.")
