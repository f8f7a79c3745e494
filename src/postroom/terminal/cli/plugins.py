"""`postroom plugins`: code of others, and which of it may run here."""

from typing import Annotated, Any

from postroom.app.home import Home
from postroom.settings.names import check_id
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.connection import OfficeClient
from postroom.terminal.cli.office import ask
from postroom.terminal.cli.options import argument
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("plugins", "Plugins: code of others that may change texts and hear what happens.")

Name = Annotated[str, argument("NAME", "As the list names it.")]
_STATES = {"not_allowed": "not allowed", "missing": "allowed, but not there"}


@command(app, "list", store=False, aliases=["ls"], examples=["postroom plugins list"])
def list_plugins(at: CommandContext) -> None:
    """List plugins that are there or are allowed, and how they do."""
    found = ask(lambda office: office.get("/api/plugins"))
    rows = [
        (
            one["name"],
            _STATES.get(one["state"], one["state"]),
            one["source"],
            ", ".join([*one["hooks"], *one["events"]]),
            one["calls"],
            one["failures"],
            one["last_error"],
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
    at.out.show(found, table(columns, rows) if rows else nothing)


@command(app, "allow", store=False, examples=["postroom plugins allow polite --yes"])
def allow(at: CommandContext, name: Name, yes: Yes = False) -> None:
    """Let a plugin run. Its code can do whatever you can do."""
    known = {one["name"]: one for one in ask(lambda office: office.get("/api/plugins"))}
    if known.get(name, {}).get("state", "missing") == "missing":
        at.out.note(
            f"{name} is not there yet: install it, or put {name}.py into {Home.of().path / 'plugins'}"
        )
    if not yes:
        where = (known.get(name) or {}).get("path") or "it is not there yet"
        confirm(f"Let {name} run ({where})? Its code can do whatever you can do.")
    _change(at, check_id("plugins.allowed", name), on=True)


@command(app, "forbid", store=False, examples=["postroom plugins forbid polite"])
def forbid(at: CommandContext, name: Name) -> None:
    """Let a plugin run no more."""
    _change(at, name, on=False)


def _change(at: CommandContext, name: str, *, on: bool) -> None:
    async def question(office: OfficeClient) -> tuple[Any, bool]:
        own = dict((await office.get("/api/settings")).get("plugins") or {})
        others = [each for each in own.get("allowed") or [] if each != name]
        own["allowed"] = [*others, name] if on else others
        await office.put("/api/settings", {"plugins": own})
        return own["allowed"], office.live

    allowed, live = ask(question)
    at.out.show({"allowed": allowed}, f"{name} is {'allowed' if on else 'not allowed any more'}.")
    if live:
        at.out.note("takes effect with the next start: postroom restart")
