"""`postroom team`: agents that work together, with one who leads."""

from typing import Annotated, Any

from postroom.settings.names import check_id
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.connection import OfficeClient
from postroom.terminal.cli.errors import FileTakenByOther, Unclear
from postroom.terminal.cli.live_views import visualize
from postroom.terminal.cli.office import ask, part
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import facts, table
from postroom.terminal.cli.store_access import CommandContext

app = group("team", "Teams: agents that work together, with one who leads.")

TeamId = Annotated[str, argument("TEAM", "The team's id.")]
Member = Annotated[str, argument("AGENT", "The agent's id.")]
Leader = Annotated[str | None, option("NAME", "Who leads. Default the first.", "--leader")]


async def _one(office: OfficeClient, team: str) -> dict[str, Any]:
    found = await office.get("/api/teams")
    if team.lower() not in found:
        await office.get(f"/api/chatroom/{part(team)}")  # says in its own words that there is none
    return found[team.lower()]


async def _put(office: OfficeClient, team: str, entry: dict[str, Any]) -> dict[str, Any]:
    fields = {name: entry[name] for name in ("name", "agents", "leader_agent")}
    return (await office.put(f"/api/teams/{part(team)}", fields))["team"]


@command(app, "list", store=False, aliases=["ls"], examples=["postroom team list"])
def list_teams(at: CommandContext) -> None:
    """List all teams."""
    found = ask(lambda office: office.get("/api/teams"))
    rows = [(key, one["name"], one["leader_agent"], ", ".join(one["agents"])) for key, one in found.items()]
    at.out.show(found, table(["id", "name", "leader", "agents"], rows) if rows else "No teams.")


@command(app, "show", store=False, examples=["postroom team show dev"])
def show(at: CommandContext, team: TeamId) -> None:
    """Show one team."""
    found = ask(lambda office: _one(office, team))
    at.out.show(found, facts(found.items()))


@command(app, "add", store=False, examples=["postroom team add dev lead coder reviewer --leader lead"])
def add(
    at: CommandContext,
    team: TeamId,
    agents: Annotated[list[str], argument("AGENT…", "Who is in it.")],
    name: Annotated[str | None, option("TEXT", "As people call it. Default its id.", "--name")] = None,
    leader: Leader = None,
) -> None:
    """Make a team of agents that are there."""
    check_id("id", team.lower())

    async def question(office: OfficeClient) -> dict[str, Any]:
        if team.lower() in await office.get("/api/teams"):
            raise FileTakenByOther(what="a team", name=team, fix="postroom team add-agent")
        return await _put(
            office, team, {"name": name or team, "agents": agents, "leader_agent": leader or agents[0]}
        )

    made = ask(question)
    at.out.show(made, f"#{team}: {', '.join(made['agents'])}; @{made['leader_agent']} leads.")


@command(app, "remove", store=False, aliases=["rm"], examples=["postroom team remove dev --yes"])
def remove(at: CommandContext, team: TeamId, yes: Yes = False) -> None:
    """Remove a team. Its agents stay, and what was said in its room is kept."""
    found = ask(lambda office: _one(office, team))
    if not yes:
        confirm(f"Remove #{team} ({', '.join(found['agents'])})? Its agents stay.")
    done = ask(lambda office: office.delete(f"/api/teams/{part(team)}"))
    at.out.show(done, f"#{team} is removed.")


@command(
    app,
    "add-agent",
    store=False,
    aliases=["agent-add", "member-add"],
    examples=["postroom team add-agent dev tester"],
)
def add_agent(at: CommandContext, team: TeamId, agent: Member) -> None:
    """Take an agent into a team."""

    async def question(office: OfficeClient) -> dict[str, Any]:
        found = await _one(office, team)
        return await _put(office, team, {**found, "agents": list(dict.fromkeys([*found["agents"], agent]))})

    made = ask(question)
    at.out.show(made, f"#{team}: {', '.join(made['agents'])}.")


@command(
    app,
    "remove-agent",
    store=False,
    aliases=["agent-remove", "member-remove"],
    examples=["postroom team remove-agent dev lead --leader coder"],
)
def remove_agent(at: CommandContext, team: TeamId, agent: Member, leader: Leader = None) -> None:
    """Take an agent out of a team."""

    async def question(office: OfficeClient) -> dict[str, Any]:
        found = await _one(office, team)
        left = [member for member in found["agents"] if member != agent.lower()]
        if len(left) == len(found["agents"]):
            raise Unclear(f"@{agent} is not in #{team}")
        leads = leader or found["leader_agent"]
        if leads == agent.lower():
            raise Unclear(f"@{agent} leads #{team}; say who leads then: --leader NAME")
        return await _put(office, team, {**found, "agents": left, "leader_agent": leads})

    made = ask(question)
    at.out.show(made, f"#{team}: {', '.join(made['agents'])}.")


command(
    app,
    "visualize",
    store=False,
    aliases=["viz"],
    examples=["postroom team visualize", "postroom team visualize dev"],
)(visualize)
