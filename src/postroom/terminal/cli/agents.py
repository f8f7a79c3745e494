"""`postroom agent`: who works here."""

from typing import Annotated, Any

from postroom.errors import InvalidField
from postroom.settings.names import check_id
from postroom.terminal.cli import prompts
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.connection import OfficeClient
from postroom.terminal.cli.errors import FileTakenByOther, Unclear
from postroom.terminal.cli.office import ask, part
from postroom.terminal.cli.office_settings import check_provider
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, facts, table
from postroom.terminal.cli.store_access import CommandContext

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
LEVELS = ("read", "workspace", "full")
SANDBOXES = ("auto", "required", "off")
Model = Annotated[str | None, option("NAME", "The model; short names are known.", "--model")]


async def _one(office: OfficeClient, agent: str) -> dict[str, Any]:
    found = await office.get("/api/agents")
    if agent.lower() not in found:
        await office.get(
            f"/api/agents/{part(agent)}/system-prompt"
        )  # says in its own words that there is none
    return found[agent.lower()]


@command(
    app,
    "list",
    store=False,
    aliases=["ls"],
    examples=["postroom agent list", "postroom agent list --json"],
)
def list_agents(at: CommandContext) -> None:
    """List all agents."""
    found = ask(lambda office: office.get("/api/agents"))
    rows = [
        (key, one["name"], one["provider"], one["model"], one["working_directory"])
        for key, one in found.items()
    ]
    at.out.show(found, table(["id", "name", "provider", "model", Column("folder", free=True)], rows))


@command(app, "show", store=False, examples=["postroom agent show coder"])
def show(at: CommandContext, agent: AgentId) -> None:
    """Show one agent."""
    found = ask(lambda office: _one(office, agent))
    at.out.show(found, facts(found.items()))


@command(
    app,
    "add",
    store=False,
    examples=["postroom agent add coder --name Coder --provider anthropic --model sonnet"],
)
def add(
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
) -> None:
    """Add an agent, with a folder of its own."""
    known = ask(lambda office: office.get("/api/agents"))
    first = next(iter(known.values()), {})
    if agent is None:
        agent = prompts.text("Its id, as people will write it after the @")
        name = name or prompts.text("Its name", agent)
        provider = provider or prompts.text("Provider", first.get("provider") or "anthropic", PROVIDERS)
        model = model or prompts.text("Model", "default")
        prompt = prompt or prompts.text("What it is told (empty: nothing special)", "") or None
    check_id("id", agent.lower())
    if provider:
        check_provider(provider)
    check_word("permissions", permissions, LEVELS)
    check_word("sandbox", sandbox, SANDBOXES)
    if agent.lower() in known:
        fix = f"postroom agent set {agent}, or postroom settings set agents.{agent.lower()}.NAME VALUE"
        raise FileTakenByOther(what="an agent", name=agent, fix=fix)
    body: dict[str, Any] = {
        "name": name or agent,
        "provider": provider or first.get("provider") or "script",
        "model": model or (first.get("model") if not provider else "") or "default",
    }
    if prompt is not None:
        body["system_prompt"] = prompt
    if folder is not None:
        body["working_directory"] = folder
    if permissions is not None:
        body["permissions"] = permissions
    if sandbox is not None:
        body["sandbox"] = sandbox
    made = ask(lambda office: office.put(f"/api/agents/{part(agent)}", body))["agent"]
    at.out.show(made, f"@{agent} works in {made['working_directory']}.")


def check_word(field: str, word: str | None, known: tuple[str, ...]) -> None:
    if word is not None and word not in known:
        raise InvalidField(field, f'"{word}" is not known; there are {", ".join(known)}')


@command(
    app,
    "set",
    store=False,
    examples=["postroom agent set coder --permissions full", "postroom agent set coder --model opus"],
)
def change(
    at: CommandContext,
    agent: AgentId,
    name: Annotated[str | None, option("TEXT", "As people call it.", "--name")] = None,
    provider: Provider = None,
    model: Model = None,
    folder: Annotated[str | None, option("PATH", "Where it works; nothing is moved.", "--folder")] = None,
    permissions: PermissionsOption = None,
    sandbox: SandboxOption = None,
) -> None:
    """Change an agent. What is not named stays."""
    if provider:
        check_provider(provider)
    check_word("permissions", permissions, LEVELS)
    check_word("sandbox", sandbox, SANDBOXES)
    given = {"name": name, "provider": provider, "model": model, "working_directory": folder}
    given |= {"permissions": permissions, "sandbox": sandbox}
    changes = {field: value for field, value in given.items() if value is not None}
    if not changes:
        raise Unclear("nothing to change is named; see postroom agent set --help")

    async def question(office: OfficeClient) -> dict[str, Any]:
        found = await _one(office, agent)
        kept = {"name": found["name"], "provider": found["provider"], "model": found["model"] or "default"}
        if provider and not model:
            kept["model"] = "default"
        return (await office.put(f"/api/agents/{part(agent)}", {**kept, **changes}))["agent"]

    changed = ask(question)
    at.out.show(changed, facts(changed.items()))


@command(app, "remove", store=False, aliases=["rm"], examples=["postroom agent remove coder --yes"])
def remove(at: CommandContext, agent: AgentId, yes: Yes = False) -> None:
    """Remove an agent. Its folder goes into a backup."""
    if not yes:
        ask(lambda office: _one(office, agent))
        confirm(f"Remove @{agent}? Its folder and settings go into a backup.")
    done = ask(lambda office: office.delete(f"/api/agents/{part(agent)}"))
    at.out.show(done, f"@{agent} is removed. To bring it back: postroom agent restore {done['backup']}")


@command(app, "backups", store=False, examples=["postroom agent backups"])
def backups(at: CommandContext) -> None:
    """List agents that were removed, and can come back."""
    found = ask(lambda office: office.get("/api/agent-backups"))
    rows = [
        (one["name"], one["agent"], ", ".join(one["teams"]), "yes" if one["has_workspace"] else "no")
        for one in found
    ]
    columns = ["backup", "agent", "teams", "with folder"]
    at.out.show(found, table(columns, rows) if rows else "No agent was removed.")


@command(
    app,
    "restore",
    store=False,
    examples=["postroom agent restore coder", "postroom agent restore coder.20261116T091500Z"],
)
def restore(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "A backup, or the agent's id: then its newest.")],
) -> None:
    """Bring back an agent that was removed, with its folder and teams. The backup stays."""
    made = ask(lambda office: office.post(f"/api/agent-backups/{part(name)}/restore"))["agent"]
    at.out.show(made, f"{made['name']} is back and works in {made['working_directory']}.")


@command(app, "reset", store=False, examples=["postroom agent reset coder reviewer"])
def reset(at: CommandContext, agents: Annotated[list[str], argument("AGENT…", "Their ids.")]) -> None:
    """Begin new sessions: what was said before is forgotten."""

    async def question(office: OfficeClient) -> None:
        for agent in agents:
            await _one(office, agent)
        for agent in agents:
            await office.post(f"/api/agents/{part(agent)}/reset")

    ask(question)
    at.out.show({"reset": agents}, *(f"Reset @{agent}." for agent in agents))


@command(app, "provider", store=False, examples=["postroom agent provider coder openai --model gpt-5.2"])
def provider(
    at: CommandContext,
    agent: AgentId,
    name: Annotated[str | None, argument("PROVIDER", "The new one; without it, show.")] = None,
    model: Model = None,
) -> None:
    """Show or change what an agent works with."""
    if name:
        check_provider(name)

    async def question(office: OfficeClient) -> dict[str, Any]:
        found = await _one(office, agent)
        if name or model:
            body = {"name": found["name"], "provider": name or found["provider"], "model": model or "default"}
            if not model and not name:
                body["model"] = found["model"]
            return (await office.put(f"/api/agents/{part(agent)}", body))["agent"]
        return found

    found = ask(question)
    at.out.show(found, f"@{agent}: {found['provider']} {found['model']}")
