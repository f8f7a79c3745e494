"""Rooms of the homeserver, and its stream: events in one order, by which every sync knows where it stands."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from postroom.testing.held_clock import HeldClock

# How many events a sync shows of a room unless its filter says otherwise; the rest must be fetched.
TIMELINE_LIMIT = 10


@dataclass
class MatrixRoom:
    id: str
    # Whether the bot is invited or has joined, and since which place of the stream.
    membership: str
    since: int
    members: list[str]
    # Each with its place in the stream.
    events: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def find(self, event_id: str) -> dict[str, Any] | None:
        return next((event for _, event in self.events if event["event_id"] == event_id), None)


class EventStream:
    def __init__(self, clock: HeldClock, bot: str) -> None:
        self._clock = clock
        self._bot = bot
        self._changed = asyncio.Event()
        self.rooms: dict[str, MatrixRoom] = {}
        self.position = 0

    def add_room(self, creator: str, *, joined: bool) -> MatrixRoom:
        self.position += 1
        room_id = f"!room{len(self.rooms) + 1}:fake"
        room = MatrixRoom(room_id, "join" if joined else "invite", self.position, [creator])
        self.rooms[room_id] = room
        self.add(room, creator, "m.room.create", {"creator": creator, "room_version": "11"}, state_key="")
        self.add(room, creator, "m.room.member", {"membership": "join"}, state_key=creator)
        if joined:
            self.add(room, self._bot, "m.room.member", {"membership": "join"}, state_key=self._bot)
        self._wake()
        return room

    def join(self, room: MatrixRoom) -> None:
        if room.membership != "join":
            room.membership = "join"
            self.add(room, self._bot, "m.room.member", {"membership": "join"}, state_key=self._bot)
            room.since = self.position

    def add(self, room: MatrixRoom, sender: str, kind: str, content: Any, **extra: Any) -> dict[str, Any]:
        self.position += 1
        event = {
            "type": kind,
            "sender": sender,
            "event_id": f"$event{self.position}",
            "origin_server_ts": self._clock.now() // 1000,
            "content": content,
            "unsigned": {},
            **extra,
        }
        room.events.append((self.position, event))
        self._wake()
        return event

    async def wait_beyond(self, position: int, deadline: int) -> None:
        """Until something happened after this place of the stream, or the held time is over."""
        timer = asyncio.create_task(self._clock.wait_until(deadline))
        try:
            while self.position <= position and not timer.done():
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({timer, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        finally:
            timer.cancel()

    def describe(self, since: int, limit: int, *, full_state: bool) -> dict[str, Any]:
        """What a sync shows of every room after this place."""
        joined: dict[str, Any] = {}
        invited: dict[str, Any] = {}
        for room in self.rooms.values():
            if room.membership == "invite":
                if room.since > since:
                    state = [event for _, event in room.events if "state_key" in event]
                    invite = {"type": "m.room.member", "state_key": self._bot, "sender": room.members[0]}
                    invite["content"] = {"membership": "invite"}  # pyright: ignore[reportArgumentType]
                    invited[room.id] = {"invite_state": {"events": [*state, invite]}}
                continue
            # Whoever has just joined is shown what happened before.
            start = 0 if room.since > since else since
            fresh = [entry for entry in room.events if entry[0] > start]
            if fresh or full_state:
                joined[room.id] = self._describe_room(room, fresh, limit, full_state)
        return {"join": joined, "invite": invited, "leave": {}}

    def _describe_room(
        self, room: MatrixRoom, fresh: list[tuple[int, dict[str, Any]]], limit: int, full_state: bool
    ) -> dict[str, Any]:
        shown = fresh[-limit:]
        earlier = fresh[: -limit or None] if len(fresh) > limit else []
        state = [event for _, event in (room.events if full_state else earlier) if "state_key" in event]
        first = shown[0][0] if shown else self.position
        return {
            "timeline": {
                "events": [event for _, event in shown],
                "limited": len(fresh) > limit,
                "prev_batch": f"s{first - 1}",
            },
            "state": {"events": state},
            "ephemeral": {"events": []},
            "account_data": {"events": []},
            "unread_notifications": {},
            "summary": {},
        }

    def page(
        self, room: MatrixRoom, start: int, direction: str, limit: int, end: int | None
    ) -> dict[str, Any]:
        """A page of a room's history, backwards or forwards from a place."""
        if direction == "b":
            events = [entry for entry in room.events if (end or 0) < entry[0] <= start][::-1]
        else:
            events = [entry for entry in room.events if start < entry[0] and (end is None or entry[0] <= end)]
        chunk = events[:limit]
        answer: dict[str, Any] = {"start": f"s{start}", "chunk": [event for _, event in chunk], "state": []}
        if len(events) > limit:
            last = chunk[-1][0]
            answer["end"] = f"s{last - 1 if direction == 'b' else last}"
        return answer

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
