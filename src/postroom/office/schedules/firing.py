"""What is sent when a time has come, as commands that commit together with how far the schedule has come."""

from typing import Any

import msgspec

from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.office import queues
from postroom.office.intake.routing import Addressee, Via
from postroom.office.schedules.due import DueTimes
from postroom.office.schedules.model import (
    PROGRESS,
    SCHEDULE,
    Schedule,
    ScheduleProgress,
    StoredSchedule,
    slot_key,
)


def build_publish(schedule: Schedule, to: Addressee, key: str, actor: str) -> c.Publish:
    message = NewMessage(
        body={"text": schedule.text, "team": to.team, "via": Via.GIVEN.value},
        message_type="office.mail",
        channel=schedule.channel,
        sender=schedule.sender,
        sender_id=schedule.sender_id or f"tinyagi-schedule:{schedule.label}",
        agent=to.agent,
        metadata={"schedule": schedule.id, "label": schedule.label},
        idempotency_key=key,
        correlation_id=key,
        source_type="schedule",
        source_id=schedule.id,
    )
    return c.Publish(queue=queues.inbox(to.agent), messages=[message], actor=actor)


def ended(schedule: Schedule) -> Schedule:
    return msgspec.structs.replace(schedule, enabled=False)


def gone_on(
    filed: StoredSchedule, due: DueTimes, to: Addressee | None, problem: str = ""
) -> ScheduleProgress:
    """How far the schedule has come after these times."""
    before, slots = filed.progress, due.slots if to is not None else ()
    return msgspec.structs.replace(
        before,
        after=due.after,
        last_slot=slots[-1] if slots else before.last_slot,
        fired=before.fired + len(slots),
        problem=problem,
    )


def unit(
    filed: StoredSchedule, due: DueTimes, progress: ScheduleProgress, to: Addressee | None, actor: str
) -> c.Unit:
    """Nothing of it happens when the schedule was changed, or another process was quicker."""
    schedule = filed.schedule
    data = msgspec.to_builtins(progress)
    own: dict[str, Any] = {"kind": SCHEDULE, "key": schedule.id, "actor": actor}
    commands: list[c.Command] = [
        c.PutDocument(
            kind=PROGRESS,
            key=schedule.id,
            data=data,
            expect=filed.progress_version,
            actor=actor,
            history=False,
        )
    ]
    if schedule.at is None:
        commands.append(c.ExpectDocument(version=filed.version, **own))
    else:
        commands.append(c.PutDocument(data=ended(schedule).data(), expect=filed.version, **own))
    if to is not None:
        commands += [build_publish(schedule, to, slot_key(schedule.id, slot), actor) for slot in due.slots]
    return c.Unit(commands=tuple(commands), actor=actor)
