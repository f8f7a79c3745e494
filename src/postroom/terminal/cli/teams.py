"""`postroom team`: agents that work together, with one who leads."""

from typing import Annotated

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.live_views import visualize
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import facts, table
from postroom.terminal.cli.store_access import CommandContext

app = group("team", "Teams: agents that work together, with one who leads.")

TeamId = Annotated[str, argument("TEAM", "The team's id.")]
Member = Annotated[str, argument("AGENT", "The agent's id.")]
Leader = Annotated[str | None, option("NAME", "Who leads. Default the first.", "--leader")]


@command(app, "list", store=False, aliases=["ls"], examples=["postroom team list"])
async def list_teams(at: CommandContext) -> None:
    """List all teams."""
    from postroom.services.office_documents import team_document

    async with at.office() as office:
        found = await office.teams.list_all(at.caller)
    rows = [(key, one.name, one.leader_agent, ", ".join(one.agents)) for key, one in found.items()]
    at.out.show(
        {key: team_document(one) for key, one in found.items()},
        table(["id", "name", "leader", "agents"], rows) if rows else "No teams.",
    )


@command(app, "show", store=False, examples=["postroom team show dev"])
async def show(at: CommandContext, team: TeamId) -> None:
    """Show one team."""
    from postroom.services.office_documents import team_document

    async with at.office() as office:
        document = team_document(await office.teams.get(at.caller, team))
    at.out.show(document, facts(document.items()))


@command(app, "add", store=False, examples=["postroom team add dev lead coder reviewer --leader lead"])
async def add(
    at: CommandContext,
    team: TeamId,
    agents: Annotated[list[str], argument("AGENT…", "Who is in it.")],
    name: Annotated[str | None, option("TEXT", "As people call it. Default its id.", "--name")] = None,
    leader: Leader = None,
) -> None:
    """Make a team of agents that are there."""
    from postroom.services.office_documents import team_document

    async with at.office() as office:
        made = await office.teams.add(at.caller, team, agents, name=name or "", leader=leader or "")
    told = f"#{team}: {', '.join(made.agents)}; @{made.leader_agent} leads."
    at.out.show(team_document(made), told)


@command(app, "remove", store=False, aliases=["rm"], examples=["postroom team remove dev --yes"])
async def remove(at: CommandContext, team: TeamId, yes: Yes = False) -> None:
    """Remove a team. Its agents stay, and what was said in its room is kept."""
    async with at.office() as office:
        found = await office.teams.get(at.caller, team)
        if not yes:
            confirm(f"Remove #{team} ({', '.join(found.agents)})? Its agents stay.")
        await office.teams.remove(at.caller, team)
    at.out.show({"ok": True}, f"#{team} is removed.")


@command(
    app,
    "add-agent",
    store=False,
    aliases=["agent-add", "member-add"],
    examples=["postroom team add-agent dev tester"],
)
async def add_agent(at: CommandContext, team: TeamId, agent: Member) -> None:
    """Take an agent into a team."""
    from postroom.services.office_documents import team_document

    async with at.office() as office:
        made = await office.teams.add_member(at.caller, team, agent)
    at.out.show(team_document(made), f"#{team}: {', '.join(made.agents)}.")


@command(
    app,
    "remove-agent",
    store=False,
    aliases=["agent-remove", "member-remove"],
    examples=["postroom team remove-agent dev lead --leader coder"],
)
async def remove_agent(at: CommandContext, team: TeamId, agent: Member, leader: Leader = None) -> None:
    """Take an agent out of a team."""
    from postroom.services.office_documents import team_document

    async with at.office() as office:
        made = await office.teams.remove_member(at.caller, team, agent, leader=leader or "")
    at.out.show(team_document(made), f"#{team}: {', '.join(made.agents)}.")


command(
    app,
    "visualize",
    store=False,
    aliases=["viz"],
    examples=["postroom team visualize", "postroom team visualize dev"],
)(visualize)
