"""The room of a team: what is said in it, and saying something to all its members."""

from typing import Any

import msgspec

from postroom.errors import Invalid
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.office import queues
from postroom.office.agents import TeamNotFound
from postroom.office.intake.routing import TeamRef, post
from postroom.office.lanes.batches import text_of
from postroom.services.callers import Caller
from postroom.services.conversations import check_size
from postroom.services.office_context import OfficeControl, OfficeService, require_member, require_viewer

USER = "user"


class PostEmpty(Invalid):
    """message is required"""

    http_status = 400


class RoomEntry(msgspec.Struct, frozen=True):
    """`number` is what a listing goes on from; `created_at` in milliseconds, as clients know it."""

    number: int
    team: str
    author: str
    text: str
    created_at: int


class RoomService(OfficeService):
    async def read(
        self, caller: Caller, team: str, *, limit: int = 100, since: int = 0, before: int = 0
    ) -> list[RoomEntry]:
        """The newest first, with `before` of what came before that number; with `since`, what came after that
        number, the oldest first."""
        require_viewer(caller)
        control, room = await self._context.control(), await self._context.room()
        wanted: dict[str, Any] = (
            {"after": since} if since else {"newest_first": True, "after": before or None}
        )
        places = [queues.room_of(require_team(control, team).id)]
        # What was posted before, in an office that this one took over.
        if queues.past_of(team).removeprefix(f"{queues.SCOPE}/") in await room.scope_counts(queues.SCOPE):
            places.append(queues.past_of(team))
        posts: list[RoomEntry] = []
        for queue in places:
            found = await room.numbered(queue=queue, limit=limit, **wanted)
            posts += [_post(number, message, team) for number, message in found]
        if len(places) > 1:
            posts.sort(
                key=lambda each: each.number if since else (each.created_at, each.number), reverse=not since
            )
        return posts[:limit]

    async def write(self, caller: Caller, team: str, text: str) -> int:
        """Say something to a whole team; the number of the post."""
        require_member(caller)
        control, room = await self._context.control(), await self._context.room()
        require_team(control, team)
        text = text.strip()
        if not text:
            raise PostEmpty
        check_size(text, control.settings.limits.message_bytes)
        routed = post(text, team, USER, control.office.directory)
        message = NewMessage(
            body={"text": routed.text, "team": team, "post": routed.body},
            message_type="office.post",
            channel="chatroom",
            sender=USER,
            source_type="user",
            source_id=USER,
        )
        [receipt] = await room.run(
            c.Publish(queue=queues.room_of(team), messages=[message], actor=room.actor)
        )
        found = await room.numbered(queue=queues.room_of(team), newest_first=True, limit=50)
        return next((number for number, each in found if each.id == receipt.id), 0)


def require_team(control: OfficeControl, team: str) -> TeamRef:
    found = control.office.directory.teams.get(team)
    if found is None:
        raise TeamNotFound(team=team)
    return found


def _post(number: int, message: Message, team: str) -> RoomEntry:
    body = message.body if isinstance(message.body, dict) else {}
    return RoomEntry(
        number,
        team,
        message.from_agent or USER,
        body.get("post") or text_of(message),
        body.get("created_at") or message.created_at // 1000,
    )
