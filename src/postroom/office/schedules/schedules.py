"""The book of schedules: add, list, show, change, pause, remove, and send one now.

A label belongs to one schedule at a time, which holds also when two people choose it at once.
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any

import msgspec

from postroom.clock import Clock, iso
from postroom.errors import DocumentChanged, DocumentNotFound, InvalidField
from postroom.kernel import commands as c
from postroom.kernel.checks import is_text
from postroom.kernel.model import Document, Receipt
from postroom.kernel.schedules.cron import Cron, known_zone
from postroom.office.documents import everything, persistently
from postroom.office.intake.routing import Addressee, OfficeDirectory
from postroom.office.ports import RoomPort
from postroom.office.schedules import firing
from postroom.office.schedules.errors import (
    InvalidCron,
    LabelTaken,
    NoSuchTarget,
    NotInFuture,
    ScheduleNotFound,
)
from postroom.office.schedules.model import (
    CHANNEL,
    LABEL,
    PROGRESS,
    SCHEDULE,
    SENDER,
    Missed,
    Schedule,
    ScheduleProgress,
    StoredSchedule,
    filed,
    schedule_of,
)

TEXT_CHARS = 60_000
NAME_CHARS = 200

_LABEL = re.compile(r"[^\s/][^\x00-\x1f/]{0,198}")
_CHANNEL = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
CHANGEABLE = frozenset(
    {"label", "to", "text", "cron", "zone", "at", "channel", "sender", "sender_id", "missed", "enabled"}
)


class Schedules:
    def __init__(
        self,
        room: RoomPort,
        directory: Callable[[], OfficeDirectory],
        clock: Clock,
        *,
        zone: str = "UTC",
        missed: Missed = Missed.ONCE,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`zone` and `missed` are for schedules that name none; `changed` wakes whoever waits for times."""
        self._room = room
        self._directory = directory
        self._clock = clock
        self._zone = zone
        self._missed = missed
        self._changed = changed

    async def add(
        self,
        to: str,
        text: str,
        *,
        cron: str = "",
        at: int | None = None,
        label: str = "",
        zone: str | None = None,
        channel: str = CHANNEL,
        sender: str = SENDER,
        sender_id: str = "",
        missed: Missed | str | None = None,
        enabled: bool = True,
    ) -> Schedule:
        now = self._clock.now()
        key = f"{now // 1000}-{_letters(6)}"
        schedule = Schedule(
            id=key,
            label=label or f"sched-{now // 1000}-{_letters(4)}",
            to=to,
            text=text,
            cron=cron,
            zone=zone or self._zone,
            at=at,
            channel=channel,
            sender=sender,
            sender_id=sender_id,
            missed=self._missed if missed is None else _missed(missed),
            enabled=enabled,
            created_at=now,
            updated_at=now,
        )
        schedule = self._checked(schedule)
        if at is not None and at <= now:
            raise NotInFuture(at=iso(at))
        commands: list[c.Command] = [
            self._take(schedule),
            c.PutDocument(kind=SCHEDULE, key=key, data=schedule.data(), expect=0, actor=self._room.actor),
            self._going_on(key, ScheduleProgress(after=now), 0),
        ]
        await self._commit(commands, schedule.label)
        return await self.show(key)

    async def all(self, to: str | None = None) -> list[Schedule]:
        """In the order in which they were made."""
        found = [schedule_of(document) async for document in everything(self._room, SCHEDULE)]
        found.sort(key=lambda schedule: (schedule.created_at, schedule.id))
        return found if to is None else [schedule for schedule in found if schedule.to == to]

    async def show(self, name: str) -> Schedule:
        """By id or label."""
        return (await self.look(name)).schedule

    async def look(self, name: str) -> StoredSchedule:
        """A schedule with how far it has come."""
        document = await self._find(name)
        return filed(document, await self._room.document(PROGRESS, document.key))

    async def preview(self, name: str, count: int = 5) -> list[int]:
        """Its next times from now on, as it stands."""
        schedule, now = await self.show(name), self._clock.now()
        if schedule.at is not None:
            return [schedule.at] if schedule.enabled and schedule.at > now else []
        return upcoming(schedule.cron, schedule.zone, now, count) if schedule.enabled else []

    async def change(self, name: str, **fields: Any) -> Schedule:
        """Any of the fields; times that were passed over while it was otherwise are not made up."""
        for field in fields:
            if field not in CHANGEABLE:
                known = ", ".join(sorted(CHANGEABLE))
                raise InvalidField(field, f"is nothing to change about a schedule; known are {known}")
        if "missed" in fields:
            fields["missed"] = _missed(fields["missed"])
        return await persistently(lambda: self._change(name, fields))

    async def _change(self, name: str, fields: dict[str, Any]) -> Schedule:
        before = await self.look(name)
        after = self._checked(_changed(before.schedule, fields))
        now = self._clock.now()
        again = after.enabled and not before.schedule.enabled
        if after.at is not None and after.at <= now and (after.at != before.schedule.at or again):
            raise NotInFuture(at=iso(after.at))
        commands: list[c.Command] = []
        if after.label != before.schedule.label:
            commands += [self._give_up(before.schedule), self._take(after)]
        commands.append(self._written(after, before.version))
        if again or _times(after) != _times(before.schedule):
            progress = msgspec.structs.replace(before.progress, after=now, problem="")
            commands.append(self._going_on(after.id, progress, before.progress_version))
        await self._commit(commands, after.label)
        return await self.show(after.id)

    async def pause(self, name: str) -> Schedule:
        return await self.change(name, enabled=False)

    async def resume(self, name: str) -> Schedule:
        return await self.change(name, enabled=True)

    async def remove(self, name: str) -> Schedule:
        async def step() -> Schedule:
            before = await self.look(name)
            key, actor = before.schedule.id, self._room.actor
            commands: list[c.Command] = [
                self._give_up(before.schedule),
                c.DropDocument(kind=SCHEDULE, key=key, expect=before.version, actor=actor),
            ]
            if before.progress_version:
                commands.append(c.DropDocument(kind=PROGRESS, key=key, actor=actor))
            await self._commit(commands, before.schedule.label)
            return before.schedule

        return await persistently(step)

    async def run_now(self, name: str) -> Receipt:
        """Send it once more, besides its times; also when it is paused."""
        schedule = await self.show(name)
        to = self._target(schedule.to)
        key = f"schedule/{schedule.id}/now/{self._clock.now()}-{_letters(6)}"
        command = firing.build_publish(schedule, to, key, self._room.actor)
        receipts: list[Receipt] = await self._room.run(command)
        return receipts[0]

    async def _find(self, name: str) -> Document:
        found = await self._room.document(SCHEDULE, name) if is_text(name) and name else None
        if found is None and is_text(name) and name:
            label = await self._room.document(LABEL, name)
            found = await self._room.document(SCHEDULE, label.data["id"]) if label else None
        if found is None:
            raise ScheduleNotFound(schedule=name)
        return found

    def _target(self, name: str) -> Addressee:
        found = self._directory().find(name) if isinstance(name, str) else None
        if found is None:
            raise NoSuchTarget(target=name)
        return found

    def _checked(self, schedule: Schedule) -> Schedule:
        to = self._target(schedule.to)
        if (
            not isinstance(schedule.label, str)
            or not is_text(schedule.label)
            or not _LABEL.fullmatch(schedule.label)
        ):
            raise InvalidField("label", f"must be 1 to {NAME_CHARS - 1} characters without / and line breaks")
        if not is_text(schedule.text) or not 0 < len(schedule.text.strip()) <= TEXT_CHARS:
            raise InvalidField("text", f"must be a text of 1 to {TEXT_CHARS} characters")
        if not isinstance(schedule.channel, str) or not _CHANNEL.fullmatch(schedule.channel):
            raise InvalidField("channel", f"{schedule.channel!r} is not the name of a channel")
        for field in ("sender", "sender_id"):
            value = getattr(schedule, field)
            if not is_text(value) or len(value) > NAME_CHARS:
                raise InvalidField(field, f"must be a text of at most {NAME_CHARS} characters")
        if not isinstance(schedule.enabled, bool):
            raise InvalidField("enabled", "must be true or false")
        _check_times(schedule, self._clock.now())
        return msgspec.structs.replace(schedule, to=to.team or to.agent)

    def _written(self, schedule: Schedule, version: int) -> c.Command:
        return c.PutDocument(
            kind=SCHEDULE, key=schedule.id, data=schedule.data(), expect=version, actor=self._room.actor
        )

    def _take(self, schedule: Schedule) -> c.Command:
        data = {"id": schedule.id}
        return c.PutDocument(kind=LABEL, key=schedule.label, data=data, expect=0, actor=self._room.actor)

    def _give_up(self, schedule: Schedule) -> c.Command:
        return c.DropDocument(kind=LABEL, key=schedule.label, actor=self._room.actor)

    def _going_on(self, key: str, progress: ScheduleProgress, version: int) -> c.Command:
        data = msgspec.to_builtins(progress)
        return c.PutDocument(
            kind=PROGRESS, key=key, data=data, expect=version, actor=self._room.actor, history=False
        )

    async def _commit(self, commands: list[c.Command], label: str) -> None:
        running: Awaitable[Any] = self._room.run(c.Unit(commands=tuple(commands), actor=self._room.actor))
        try:
            await running
        except DocumentChanged as error:
            if error.data["kind"] == LABEL and error.data["key"] == label:
                raise LabelTaken(label=label) from None
            raise
        except DocumentNotFound as gone:
            # Somebody removed or renamed it since it was read.
            raise DocumentChanged(**gone.data, expected=1, found=0) from None
        self._changed()


def upcoming(cron: str, zone: str, after: int, count: int = 5) -> list[int]:
    """The next times of an expression, for showing it before it is kept."""
    if not 1 <= count <= 100:
        raise InvalidField("count", "must be from 1 to 100")
    return list(islice(Cron(cron, zone).times(after), count))


def _check_times(schedule: Schedule, now: int) -> None:
    if bool(schedule.cron) == (schedule.at is not None):
        raise InvalidField("cron", "is needed, or a time `at` which to send once, but not both")
    known_zone(schedule.zone)
    if schedule.at is not None:
        if not isinstance(schedule.at, int) or isinstance(schedule.at, bool) or not 0 < schedule.at < 2**56:
            raise InvalidField("at", "must be a time in microseconds since 1970")
    elif Cron(schedule.cron, schedule.zone).next(now) is None:
        raise InvalidCron(cron=schedule.cron, problem="it does not come in the next fifty years")


def _times(schedule: Schedule) -> tuple[Any, ...]:
    return schedule.cron, schedule.zone, schedule.at


def _changed(schedule: Schedule, fields: dict[str, Any]) -> Schedule:
    """One kind of time takes the place of the other."""
    fields = dict(fields)
    if fields.get("cron") and "at" not in fields:
        fields["at"] = None
    elif fields.get("at") is not None and "cron" not in fields:
        fields["cron"] = ""
    return msgspec.structs.replace(schedule, **fields)


def _missed(value: object) -> Missed:
    try:
        return Missed(str(value))
    except ValueError:
        raise InvalidField("missed", f"is {value!r}, must be one of {', '.join(Missed)}") from None


def _letters(count: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(count))
