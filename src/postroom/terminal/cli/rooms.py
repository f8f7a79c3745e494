"""`postroom room`: what was said in the rooms of teams, and saying something there."""

from typing import Annotated

from postroom.clock import iso
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import table
from postroom.terminal.cli.store_access import CommandContext

app = group("room", "Rooms: where all members of a team read what is said.")

TeamId = Annotated[str, argument("TEAM", "The team's id.")]


@command(app, "list", store=False, aliases=["ls"], examples=["postroom room list"])
async def list_rooms(at: CommandContext) -> None:
    """List the rooms: each team has one."""
    found: list[dict[str, object]] = []
    async with at.office() as office:
        for team, one in (await office.teams.list_all(at.caller)).items():
            posts = await office.rooms.read(at.caller, team, limit=1)
            said = iso(posts[0].created_at * 1000) if posts else None
            found.append({"team": team, "name": one.name, "members": list(one.agents), "lastPostAt": said})
    rows = [(each["team"], each["name"], each["lastPostAt"] or "nothing was said yet") for each in found]
    at.out.show(found, table(["team", "name", "last"], rows) if rows else "No teams, so no rooms.")


@command(
    app, "read", store=False, examples=["postroom room read dev", "postroom room read dev --since 120 --json"]
)
async def read(
    at: CommandContext,
    team: TeamId,
    limit: Annotated[int, option("N", "At most so many. Default 50.", "-n", "--limit")] = 50,
    since: Annotated[int, option("N", "Only what came after this number.", "--since")] = 0,
) -> None:
    """Show what was said in a room, the oldest first."""
    from postroom.services.office_documents import post_document
    from postroom.terminal.tui.conversation import tell_post

    async with at.office() as office:
        found = await office.rooms.read(at.caller, team.lower(), limit=limit, since=since)
    posts = found if since else found[::-1]
    documents = [{**post_document(each), "created_at": iso(each.created_at * 1000)} for each in posts]
    at.out.show(documents, *([tell_post(each) for each in posts] or [f"Nothing was said in #{team} yet."]))


@command(app, "post", store=False, examples=['postroom room post dev "Who takes the release notes?"'])
async def post(
    at: CommandContext, team: TeamId, text: Annotated[str, argument("TEXT", "What is to be said.")]
) -> None:
    """Say something to all members of a team."""
    async with at.office() as office:
        number = await office.rooms.write(at.caller, team.lower(), text)
    later = "" if at.server_runs else " Postroom does not run; agents read it when it starts."
    at.out.show({"id": number, "team_id": team.lower()}, f"Posted to #{team}.{later}")
