"""`postroom schedule`: what is sent by itself, and when."""

from typing import Annotated, Any

from postroom.terminal.cli import completion
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("schedule", "Schedules: what is sent to whom by itself, and when.")

Which = Annotated[str, argument("NAME", "Its id or label.", autocompletion=completion.schedules)]


@command(
    app,
    "list",
    store=False,
    aliases=["ls"],
    examples=["postroom schedule list", "postroom schedule list --agent coder"],
)
async def list_schedules(
    at: CommandContext,
    agent: Annotated[str | None, option("NAME", "Only those for this agent.", "--agent")] = None,
) -> None:
    """List schedules."""
    from postroom.services.office_documents import schedule_document

    async with at.office() as office:
        found = [schedule_document(each) for each in await office.schedules.list_all(at.caller, agent)]
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
async def add(
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
    from postroom.services.office_documents import schedule_document
    from postroom.services.schedules import moment

    if (cron is None) == (run_at is None):
        raise Unclear("say when: either --cron or --at")
    given: dict[str, Any] = {"cron": cron, "label": label, "zone": zone, "channel": channel}
    given["at"] = None if run_at is None else moment(run_at)
    fields = {name: value for name, value in given.items() if value is not None}
    async with at.office() as office:
        made = schedule_document(await office.schedules.add(at.caller, agent, message, **fields))
    at.out.show(made, f"{made['label']} is scheduled: {made['cron'] or made['runAt']} ({made['zone']}).")


@command(
    app,
    "remove",
    store=False,
    aliases=["rm", "delete"],
    examples=["postroom schedule remove daily --yes"],
)
async def remove(at: CommandContext, name: Which, yes: Yes = False) -> None:
    """Remove a schedule. To keep it for later, pause it instead."""
    if not yes:
        confirm(f"Remove the schedule {name}?")
    async with at.office() as office:
        await office.schedules.remove(at.caller, name)
    at.out.show({"ok": True}, f"{name} is removed.")


@command(app, "pause", store=False, examples=["postroom schedule pause daily"])
async def pause(at: CommandContext, name: Which) -> None:
    """Switch a schedule off."""
    await _switch(at, name, on=False)


@command(app, "resume", store=False, examples=["postroom schedule resume daily"])
async def resume(at: CommandContext, name: Which) -> None:
    """Switch a schedule on again."""
    await _switch(at, name, on=True)


async def _switch(at: CommandContext, name: str, *, on: bool) -> None:
    from postroom.services.office_documents import schedule_document

    async with at.office() as office:
        done = await office.schedules.change(at.caller, name, enabled=on)
    at.out.show(schedule_document(done), f"{name} is {'on' if on else 'off'}.")


@command(app, "run", store=False, examples=["postroom schedule run daily"])
async def run(at: CommandContext, name: Which) -> None:
    """Send it once more, now."""
    async with at.office() as office:
        message_id = await office.schedules.run(at.caller, name)
    at.out.show({"ok": True, "messageId": message_id}, f"{name} is sent: {message_id}.")
