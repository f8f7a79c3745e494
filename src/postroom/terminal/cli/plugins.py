"""`postroom plugins`: code of others, and which of it may run here."""

from typing import Annotated

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.options import argument
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("plugins", "Plugins: code of others that may change texts and hear what happens.")

Name = Annotated[str, argument("NAME", "As the list names it.")]
_STATES = {"not_allowed": "not allowed", "missing": "allowed, but not there"}


@command(app, "list", store=False, aliases=["ls"], examples=["postroom plugins list"])
async def list_plugins(at: CommandContext) -> None:
    """List plugins that are there or are allowed, and how they do."""
    import msgspec

    async with at.office() as office:
        found = await office.plugins.list_all(at.caller)
    rows = [
        (
            one.name,
            _STATES.get(one.state, one.state),
            one.source,
            ", ".join([*one.hooks, *one.events]),
            one.calls,
            one.failures,
            one.last_error,
        )
        for one in found
    ]
    columns = [
        "name",
        "state",
        "from",
        "listens to",
        Column("calls", right=True),
        Column("failures", right=True),
        Column("last error", free=True),
    ]
    nothing = "No plugins. Put one into plugins/ of the home folder, see docs/how-to/plugins.md."
    at.out.show(msgspec.to_builtins(found), table(columns, rows) if rows else nothing)


@command(app, "allow", store=False, examples=["postroom plugins allow polite --yes"])
async def allow(at: CommandContext, name: Name, yes: Yes = False) -> None:
    """Let a plugin run. Its code can do whatever you can do."""
    async with at.office() as office:
        known = {one.name: one for one in await office.plugins.list_all(at.caller)}
        found = known.get(name)
        if found is None or found.state == "missing":
            at.out.note(
                f"{name} is not there yet: install it, or put {name}.py into {at.home.path / 'plugins'}"
            )
        if not yes:
            where = found.path if found is not None and found.path else "it is not there yet"
            confirm(f"Let {name} run ({where})? Its code can do whatever you can do.")
        allowed = await office.plugins.allow(at.caller, name)
    _show(at, allowed, f"{name} is allowed.")


@command(app, "forbid", store=False, examples=["postroom plugins forbid polite"])
async def forbid(at: CommandContext, name: Name) -> None:
    """Let a plugin run no more."""
    async with at.office() as office:
        allowed = await office.plugins.forbid(at.caller, name)
    _show(at, allowed, f"{name} is not allowed any more.")


def _show(at: CommandContext, allowed: tuple[str, ...], told: str) -> None:
    at.out.show({"allowed": list(allowed)}, told)
    if at.server_runs:
        at.out.note("takes effect with the next start: postroom restart")
