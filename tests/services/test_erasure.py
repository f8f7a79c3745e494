"""Erasure: what is asked for is done once, in the lake too, and never beyond the reach of who asks."""

from dataclasses import dataclass, field

import pytest

from postroom.errors import NotFound
from postroom.kernel.access.permissions import Permission
from postroom.kernel.erasure.subject import Subject
from postroom.kernel.model import NewMessage
from postroom.services.container import Services
from postroom.services.erasure import JobDone
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue

ANN = Subject(field="sender_id", value="ann")


@dataclass
class SmallLake:
    """Rows that were pruned from the store, each with its queue; the real lake is tried with the pipeline."""

    rows: dict[str, str]
    erased: list[str] = field(default_factory=list)

    async def search(self, tenant: str, scope: str, subject: Subject, queues: list[str] | None) -> list[str]:
        return [each for each, queue in self.rows.items() if queues is None or queue in queues]

    async def preview(self, tenant: str, message_ids: list[str]) -> int:
        return len(set(message_ids) & set(self.rows))

    async def erase(self, tenant: str, message_ids: list[str]) -> int:
        self.erased += message_ids
        return len(set(message_ids) & set(self.rows))


async def write(served: ServedRoom, queue: str) -> str:
    message = NewMessage(body="of ann", sender_id="ann")
    [made] = await served.services.messages.publish(served.owner, "work", queue, [message])
    return made.found.message.id


async def test_a_job_is_counted_carried_out_once_and_proved(served: ServedRoom) -> None:
    erasures, owner = served.services.erasures, served.owner
    message = await write(served, "jobs")
    job = await erasures.create(owner, "work", ANN)
    assert (job.found, job.status) == (1, "pending")
    assert (await erasures.count(owner, "work", ANN)).found == 1
    await write(served, "open")
    assert (await erasures.preview(owner, "work", job.id)).found == 2
    done = await erasures.execute(owner, "work", job.id)
    assert (done.status, done.erased, done.subject) == ("completed", 2, None)
    assert done.proof is not None
    assert (await served.room.get(message)).body != "of ann"
    for again in (erasures.execute, erasures.preview):
        with pytest.raises(JobDone):
            await again(owner, "work", job.id)
    assert [each.status for each in await erasures.list_all(owner, "work")] == ["completed"]


async def test_a_dry_run_erases_nothing(served: ServedRoom) -> None:
    erasures, owner = served.services.erasures, served.owner
    message = await write(served, "jobs")
    job = await erasures.create(owner, "work", ANN, dry_run=True)
    with pytest.raises(JobDone, match="dry run"):
        await erasures.execute(owner, "work", job.id)
    assert (await served.room.get(message)).body == "of ann"


async def test_nothing_to_erase_is_proved_too(served: ServedRoom) -> None:
    done = await served.services.erasures.erase(served.owner, "work", ANN)
    assert (done.status, done.erased) == ("completed", 0)


async def test_what_is_claimed_waits_for_the_next_time(served: ServedRoom) -> None:
    erasures, owner = served.services.erasures, served.owner
    message = await write(served, "jobs")
    [claimed] = await served.room.claim("work/jobs")
    job = await erasures.create(owner, "work", ANN)
    waiting = await erasures.execute(owner, "work", job.id)
    assert (waiting.status, waiting.waiting) == ("waiting", 1)
    await served.room.complete(claimed)
    assert (await erasures.execute(owner, "work", job.id)).status == "completed"
    assert (await served.room.get(message)).body != "of ann"


async def test_in_the_lake_too_nobody_reaches_beyond_their_queues(served: ServedRoom) -> None:
    mine, other = await write(served, "open"), await write(served, "jobs")
    await close_queue(served, "work/jobs", ("user", "bob"), *Permission)
    manager = await served.key("manage", "view")
    lake = SmallLake({"old-open": "open", "old-jobs": "jobs"})
    erasures = Services(served.room, lake=lake).erasures
    job = await erasures.create(manager, "work", ANN)
    assert (job.found, job.in_lake) == (2, 1)
    done = await erasures.execute(manager, "work", job.id)
    assert (done.erased, sorted(lake.erased)) == (2, sorted([mine, "old-open"]))
    assert (await served.room.get(other)).body == "of ann"
    everything = await erasures.erase(served.owner, "work", ANN)
    assert (everything.in_lake, "old-jobs" in lake.erased) == (2, True)
    bound = await served.key("manage", "view", user_id="carl")
    whole = await erasures.create(served.owner, "work", ANN)
    with pytest.raises(NotFound):
        await erasures.read(bound, "work", whole.id)
