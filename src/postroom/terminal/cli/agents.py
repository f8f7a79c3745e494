"""`postroom agent`: who works here."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from postroom.settings.defaults import PROGRAMS
from postroom.terminal.cli import prompts
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Column, facts, table
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.agent_hosts import AgentHost

app = group("agent", "Agents: who works here, with what, and where.")

AgentId = Annotated[str, argument("AGENT", "The agent's id.")]
PROVIDERS = ("anthropic", "openai", "opencode", "anthropic_api", "openai_api", "script")
Provider = Annotated[
    str | None, option("NAME", "anthropic, openai, opencode, custom:…, script.", "--provider")
]
PermissionsOption = Annotated[
    str | None,
    option("LEVEL", "read (change nothing), workspace (its folder) or full (all it can).", "--permissions"),
]
SandboxOption = Annotated[
    str | None, option("WORD", "auto, required (or no turn at all) or off.", "--sandbox")
]
ForceOption = Annotated[bool, flag("Also in a folder of the system, like /etc.", "--force")]
Model = Annotated[str | None, option("NAME", "The model; short names are known.", "--model")]


@command(
    app,
    "list",
    store=False,
    aliases=["ls"],
    examples=["postroom agent list", "postroom agent list --json"],
)
async def list_agents(at: CommandContext) -> None:
    """List all agents."""
    from postroom.services.office_documents import agent_document

    async with at.office() as office:
        found = await office.agents.list_all(at.caller)
        hosts = await office.agents.list_hosts(at.caller)
    rows = [
        (key, one.name, one.provider, one.model, *_host(hosts, key), one.working_directory)
        for key, one in found.items()
    ]
    columns = ["id", "name", "provider", "model", *(["host"] if hosts else []), Column("folder", free=True)]
    documents = {
        key: {**agent_document(one), **({"host": hosts[key].host} if key in hosts else {})}
        for key, one in found.items()
    }
    at.out.show(documents, table(columns, rows))


def _host(hosts: "dict[str, AgentHost]", agent: str) -> tuple[str, ...]:
    """A column, where there are hosts."""
    if not hosts:
        return ()
    found = hosts.get(agent)
    return ("" if found is None else f"{found.host}, not there" if found.is_gone else found.host,)


@command(app, "show", store=False, examples=["postroom agent show coder"])
async def show(at: CommandContext, agent: AgentId) -> None:
    """Show one agent."""
    from postroom.services.office_documents import agent_document

    async with at.office() as office:
        document = agent_document(await office.agents.get(at.caller, agent))
    at.out.show(document, facts(document.items()))


@command(
    app,
    "add",
    store=False,
    examples=["postroom agent add coder --name Coder --provider anthropic --model sonnet"],
)
async def add(
    at: CommandContext,
    agent: Annotated[str | None, argument("AGENT", "Its id; without it, you are asked.")] = None,
    name: Annotated[str | None, option("TEXT", "As people call it. Default its id.", "--name")] = None,
    provider: Provider = None,
    model: Model = None,
    prompt: Annotated[
        str | None, option("TEXT", "What it is told; goes into its AGENTS.md.", "--prompt")
    ] = None,
    folder: Annotated[str | None, option("PATH", "Where it works.", "--folder")] = None,
    permissions: PermissionsOption = None,
    sandbox: SandboxOption = None,
    force: ForceOption = False,
) -> None:
    """Add an agent, with a folder of its own."""
    from postroom.services.office_documents import agent_document

    async with at.office() as office:
        if agent is None:
            known = await office.agents.list_all(at.caller)
            usual = next((one.provider for one in known.values()), "anthropic")
            agent = prompts.text("Its id, as people will write it after the @")
            name = name or prompts.text("Its name", agent)
            provider = provider or prompts.text("Provider", usual, PROVIDERS)
            model = model or prompts.text("Model", "default")
            prompt = prompt or prompts.text("What it is told (empty: nothing special)", "") or None
        fields = _given(
            name=name,
            provider=provider,
            model=model,
            working_directory=folder,
            permissions=permissions,
            sandbox=sandbox,
        )
        made = await office.agents.add(at.caller, agent, fields, system_prompt=prompt, force=force)
        program = PROGRAMS.get(made.provider)
        if program is not None and (await office.providers.find_programs(at.caller))[program] is None:
            at.out.note(f"{program} is not on this machine; postroom doctor says how to get it")
    at.out.show(agent_document(made), f"@{agent} works in {made.working_directory}.")


def _given(**fields: str | None) -> dict[str, Any]:
    return {field: value for field, value in fields.items() if value is not None}


@command(
    app,
    "set",
    store=False,
    examples=["postroom agent set coder --permissions full", "postroom agent set coder --model opus"],
)
async def change(
    at: CommandContext,
    agent: AgentId,
    name: Annotated[str | None, option("TEXT", "As people call it.", "--name")] = None,
    provider: Provider = None,
    model: Model = None,
    folder: Annotated[str | None, option("PATH", "Where it works; nothing is moved.", "--folder")] = None,
    permissions: PermissionsOption = None,
    sandbox: SandboxOption = None,
    force: ForceOption = False,
) -> None:
    """Change an agent. What is not named stays."""
    from postroom.services.office_documents import agent_document

    changes = _given(
        name=name,
        provider=provider,
        model=model,
        working_directory=folder,
        permissions=permissions,
        sandbox=sandbox,
    )
    if not changes:
        raise Unclear("nothing to change is named; see postroom agent set --help")
    if provider and not model:
        changes["model"] = "default"
    async with at.office() as office:
        changed = agent_document(await office.agents.change(at.caller, agent, changes, force=force))
    at.out.show(changed, facts(changed.items()))


@command(app, "remove", store=False, aliases=["rm"], examples=["postroom agent remove coder --yes"])
async def remove(at: CommandContext, agent: AgentId, yes: Yes = False) -> None:
    """Remove an agent. Its folder goes into a backup."""
    async with at.office() as office:
        if not yes:
            await office.agents.get(at.caller, agent)
            confirm(f"Remove @{agent}? Its folder and settings go into a backup.")
        removed = await office.agents.remove(at.caller, agent)
    done = {"ok": True, "backup": removed.backup, "workspace": removed.workspace}
    at.out.show(done, f"@{agent} is removed. To bring it back: postroom agent restore {removed.backup}")


@command(
    app,
    "move",
    store=False,
    examples=["postroom agent move coder", "postroom agent move coder --host beta"],
)
async def move(
    at: CommandContext,
    agent: AgentId,
    host: Annotated[str | None, option("NAME", "Which one; without it, this host.", "--host")] = None,
) -> None:
    """Have an agent work on another host of an office on a database server.

    Its folder is not moved. To keep what it has, copy the folder there first."""
    async with at.office() as office:
        moved = await office.agents.move(at.caller, agent, host)
    told = f"@{moved.agent} works on {moved.host} from now on."
    if moved.folder is not None:
        what = "as it was found there" if moved.has_folder else "which is new"
        told += f" Its folder is {moved.folder}, {what}."
    at.out.show(msgspec.structs.asdict(moved), told)


@command(app, "backups", store=False, examples=["postroom agent backups"])
async def backups(at: CommandContext) -> None:
    """List agents that were removed, and can come back."""
    from postroom.services.office_documents import backup_document

    async with at.office() as office:
        found = await office.agents.backups(at.caller)
    rows = [
        (one.name, one.agent, ", ".join(one.teams), "yes" if one.has_workspace else "no") for one in found
    ]
    columns = ["backup", "agent", "teams", "with folder"]
    documents = [backup_document(one) for one in found]
    at.out.show(documents, table(columns, rows) if rows else "No agent was removed.")


@command(
    app,
    "restore",
    store=False,
    examples=["postroom agent restore coder", "postroom agent restore coder.20261116T091500Z"],
)
async def restore(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "A backup, or the agent's id: then its newest.")],
) -> None:
    """Bring back an agent that was removed, with its folder and teams. The backup stays."""
    from postroom.services.office_documents import agent_document

    async with at.office() as office:
        made = await office.agents.restore(at.caller, name)
    at.out.show(agent_document(made), f"{made.name} is back and works in {made.working_directory}.")


@command(app, "reset", store=False, examples=["postroom agent reset coder reviewer"])
async def reset(at: CommandContext, agents: Annotated[list[str], argument("AGENT…", "Their ids.")]) -> None:
    """Begin new sessions: what was said before is forgotten."""
    async with at.office() as office:
        await office.agents.reset(at.caller, *agents)
    at.out.show({"reset": agents}, *(f"Reset @{agent}." for agent in agents))


@command(app, "provider", store=False, examples=["postroom agent provider coder openai --model gpt-5.2"])
async def provider(
    at: CommandContext,
    agent: AgentId,
    name: Annotated[str | None, argument("PROVIDER", "The new one; without it, show.")] = None,
    model: Model = None,
) -> None:
    """Show or change what an agent works with."""
    from postroom.services.office_documents import agent_document

    async with at.office() as office:
        if name or model:
            changes: dict[str, Any] = {"model": model or "default", **({"provider": name} if name else {})}
            found = await office.agents.change(at.caller, agent, changes)
        else:
            found = await office.agents.get(at.caller, agent)
    at.out.show(agent_document(found), f"@{agent}: {found.provider} {found.model}")
