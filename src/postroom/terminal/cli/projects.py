"""`postroom project`: what tasks belong to."""

from typing import TYPE_CHECKING, Annotated, Any

from postroom.clock import iso
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.tasks import find_project

if TYPE_CHECKING:
    from postroom.office.tasks.model import Project

app = group("project", "Projects: what tasks belong to.")

Which = Annotated[str, argument("PROJECT", "Its name, prefix or id.")]
Description = Annotated[str | None, option("TEXT", "What it is about.", "--description")]


def project_document(project: "Project") -> dict[str, Any]:
    created, updated = iso(project.created_at), iso(project.updated_at)
    return {**project.document(), "createdAt": created, "updatedAt": updated}


@command(app, "list", store=False, aliases=["ls"], examples=["postroom project list"])
async def list_projects(
    at: CommandContext, archived: Annotated[bool, flag("Those that are archived.", "--archived")] = False
) -> None:
    """List projects, the newest first."""
    async with at.office() as office:
        found = await office.projects.list_all(at.caller, "archived" if archived else "active")
    rows = [(each.prefix, each.name, each.status, each.description) for each in found]
    columns = ["prefix", "name", "status", Column("description", free=True)]
    at.out.show([project_document(each) for each in found], table(columns, rows) if rows else "No projects.")


@command(
    app,
    "add",
    store=False,
    aliases=["create"],
    examples=['postroom project add Website --description "The new one"'],
)
async def add(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "How people call it.")],
    description: Description = None,
) -> None:
    """Make a project; its prefix is chosen for it."""
    async with at.office() as office:
        made = await office.projects.add(at.caller, name, description=description or "")
    at.out.show(
        project_document(made), f"{made.name} is there; its tasks are called {made.prefix}-1 and so on."
    )


@command(app, "set", store=False, examples=["postroom project set Website --archive"])
async def change(
    at: CommandContext,
    project: Which,
    name: Annotated[str | None, option("TEXT", "Its name.", "--name")] = None,
    description: Description = None,
    archive: Annotated[bool, flag("Put it away.", "--archive")] = False,
    activate: Annotated[bool, flag("Take it out again.", "--activate")] = False,
) -> None:
    """Change a project, or archive it."""
    if archive and activate:
        raise Unclear("--archive and --activate exclude each other")
    status = "archived" if archive else "active" if activate else None
    given = {"name": name, "description": description, "status": status}
    fields = {field: value for field, value in given.items() if value is not None}
    if not fields:
        raise Unclear("nothing to change: name at least one of the options")
    async with at.office() as office:
        which = await find_project(at, office, project) or project
        made = await office.projects.change(at.caller, which, **fields)
    at.out.show(project_document(made), f"{made.name} is {made.status}.")


@command(app, "remove", store=False, aliases=["rm"], examples=["postroom project remove Website --yes"])
async def remove(at: CommandContext, project: Which, yes: Yes = False) -> None:
    """Remove a project. Its tasks stay, without one."""
    async with at.office() as office:
        found = await office.projects.get(at.caller, await find_project(at, office, project) or project)
        if not yes:
            confirm(f"Remove the project {found.name}? Its tasks stay.")
        await office.projects.remove(at.caller, found.id)
    at.out.show({"removed": found.id}, f"{found.name} is removed.")
