"""`postroom task`: the board, from a shell."""

from typing import TYPE_CHECKING, Annotated, Any

from postroom.clock import iso
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, facts, table
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.office.tasks.model import Task
    from postroom.services.office import OfficeServices

app = group("task", "Tasks: the board of the office, its columns and what is said about them.")

Which = Annotated[str, argument("TASK", "Its number like T-3, or its id.")]
StatusOption = Annotated[
    str | None, option("WORD", "backlog, todo, in_progress, review or done.", "--status")
]
Assignee = Annotated[
    str | None,
    option("NAME", "An agent or team, or a person's name.", "--assign"),
]
ProjectOption = Annotated[str | None, option("NAME", "The project's name, prefix or id.", "--project")]
Description = Annotated[str | None, option("TEXT", "What it is about.", "--description")]


def task_document(task: "Task") -> dict[str, Any]:
    return {**task.document(), "createdAt": iso(task.created_at), "updatedAt": iso(task.updated_at)}


async def find_task(at: CommandContext, office: "OfficeServices", name: str) -> str:
    """The id of a task that is called by its number; anything else is taken for an id."""
    for task in await office.tasks.list_all(at.caller):
        if task.identifier.lower() == name.lower():
            return task.id
    return name


async def find_project(at: CommandContext, office: "OfficeServices", name: str | None) -> str | None:
    for project in await office.projects.list_all(at.caller):
        if name and name.lower() in (project.name.lower(), project.prefix.lower()):
            return project.id
    return name


@command(
    app,
    "list",
    store=False,
    aliases=["ls"],
    examples=["postroom task list", "postroom task list --status todo --json"],
)
async def list_tasks(
    at: CommandContext, status: StatusOption = None, assignee: Assignee = None, project: ProjectOption = None
) -> None:
    """List tasks, column by column."""
    async with at.office() as office:
        of = await find_project(at, office, project)
        found = await office.tasks.list_all(at.caller, status=status, assignee=assignee, project=of)
    rows = [(each.identifier, each.status, each.assignee, each.title) for each in found]
    columns = ["task", "status", "assigned to", Column("title", free=True)]
    at.out.show([task_document(each) for each in found], table(columns, rows) if rows else "No tasks.")


@command(
    app,
    "add",
    store=False,
    aliases=["create"],
    examples=['postroom task add "Write the release notes" --assign coder --status todo'],
)
async def add(
    at: CommandContext,
    title: Annotated[str, argument("TITLE", "What is to be done.")],
    status: StatusOption = None,
    assignee: Assignee = None,
    project: ProjectOption = None,
    description: Description = None,
) -> None:
    """Put a task on the board. Nobody is told of it: to have it done, send it."""
    async with at.office() as office:
        of = await find_project(at, office, project)
        given = {"status": status, "assignee": assignee, "project": of, "description": description}
        fields = {name: value for name, value in given.items() if value is not None}
        made = await office.tasks.add(at.caller, title, **fields)
    at.out.show(task_document(made), f"{made.identifier} is on the board ({made.status}).")


@command(app, "show", store=False, examples=["postroom task show T-3"])
async def show(at: CommandContext, task: Which) -> None:
    """Show a task and what was said about it."""
    async with at.office() as office:
        found = await office.tasks.get(at.caller, await find_task(at, office, task))
        comments = await office.tasks.comments(at.caller, found.id)
    document = task_document(found)
    document["comments"] = [{**each.document(), "createdAt": iso(each.created_at)} for each in comments]
    said = [f"{iso(each.created_at)} {each.author}: {each.content}" for each in comments]
    told = {name: value for name, value in document.items() if name != "comments"}
    at.out.show(document, facts(told.items()), *said)


@command(
    app,
    "set",
    store=False,
    examples=["postroom task set T-3 --status done", "postroom task set T-3 --assign ''"],
)
async def change(
    at: CommandContext,
    task: Which,
    title: Annotated[str | None, option("TEXT", "Its title.", "--title")] = None,
    status: StatusOption = None,
    assignee: Assignee = None,
    project: ProjectOption = None,
    description: Description = None,
) -> None:
    """Change a task; an empty --project or --assign takes it away."""
    async with at.office() as office:
        of = await find_project(at, office, project)
        given = {
            "title": title,
            "status": status,
            "assignee": assignee,
            "project": of,
            "description": description,
        }
        fields = {name: value for name, value in given.items() if value is not None}
        if not fields:
            raise Unclear("nothing to change: name at least one of the options")
        made = await office.tasks.change(at.caller, await find_task(at, office, task), **fields)
    at.out.show(task_document(made), f"{made.identifier} is {made.status}.")


@command(app, "comment", store=False, examples=['postroom task comment T-3 "The tests are green."'])
async def comment(
    at: CommandContext, task: Which, text: Annotated[str, argument("TEXT", "What is to be said.")]
) -> None:
    """Say something about a task."""
    async with at.office() as office:
        made = await office.tasks.comment(at.caller, await find_task(at, office, task), text)
    at.out.show({**made.document(), "createdAt": iso(made.created_at)}, "It is written down.")


@command(app, "remove", store=False, aliases=["rm"], examples=["postroom task remove T-3 --yes"])
async def remove(at: CommandContext, task: Which, yes: Yes = False) -> None:
    """Take a task off the board, with its comments."""
    async with at.office() as office:
        found = await office.tasks.get(at.caller, await find_task(at, office, task))
        if not yes:
            confirm(f"Remove {found.identifier} ({found.title})?")
        await office.tasks.remove(at.caller, found.id)
    at.out.show({"removed": found.id}, f"{found.identifier} is removed.")
