"""`postroom memory`: what agents remember, in the files of their memory."""

from typing import Annotated

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.options import argument
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

app = group("memory", "Memory: what agents keep in mind, file by file.")

AgentId = Annotated[str, argument("AGENT", "The agent's id.")]


@command(app, "list", store=False, aliases=["ls"], examples=["postroom memory list coder"])
async def list_notes(at: CommandContext, agent: AgentId) -> None:
    """List the files of an agent's memory."""
    async with at.office() as office:
        found = await office.agents.read_memory(at.caller, agent)
    document = {
        "agent": agent,
        "folder": found.folder,
        "files": [{"name": name, "path": path} for name, path in found.files],
    }
    shown = table(["file", Column("below", free=True)], [(path, found.folder) for _, path in found.files])
    at.out.show(
        document, shown if found.files else f"{agent} remembers nothing yet; its folder is {found.folder}."
    )


@command(app, "show", store=False, examples=["postroom memory show coder customers.md"])
async def show(
    at: CommandContext, agent: AgentId, path: Annotated[str, argument("FILE", "As the list names it.")]
) -> None:
    """Show one file of an agent's memory."""
    async with at.office() as office:
        found = await office.agents.read_note(at.caller, agent, path)
    at.out.show({"agent": agent, "path": path, "content": found.content}, found.content)


@command(app, "search", store=False, examples=["postroom memory search coder invoice"])
async def search(
    at: CommandContext,
    agent: AgentId,
    words: Annotated[str, argument("TEXT", "What to look for, in any case.")],
) -> None:
    """Find lines of an agent's memory."""
    found: list[dict[str, object]] = []
    async with at.office() as office:
        for _, path in (await office.agents.read_memory(at.caller, agent)).files:
            text = (await office.agents.read_note(at.caller, agent, path)).content
            for number, line in enumerate(text.splitlines(), 1):
                if words.lower() in line.lower():
                    found.append({"path": path, "line": number, "text": line.strip()})
    rows = [(each["path"], each["line"], each["text"]) for each in found]
    columns = ["file", Column("line", right=True), Column("text", free=True)]
    at.out.show(found, table(columns, rows) if rows else f"Nothing in the memory of {agent} says {words!r}.")
