"""What `postroom top` shows, read from the services of a server: agents, queues, needs, housekeepers."""

from typing import TYPE_CHECKING

import msgspec

from postroom.clock import SECOND
from postroom.services.callers import Caller
from postroom.services.need_answers import list_answers
from postroom.services.needs_you import PersonNeed
from postroom.terminal.cli.output import clean

if TYPE_CHECKING:
    from postroom.services.server import ServerServices

SHORT = 60


class AgentRow(msgspec.Struct, frozen=True):
    agent: str
    state: str
    """A sign and a word, so that nobody needs the colour."""
    work: str
    elapsed_s: float | None
    waiting: int
    spent_usd: float | None


class QueueRow(msgspec.Struct, frozen=True):
    queue: str
    waiting: int
    claimed: int
    dead: int
    completed: int


class KeeperRow(msgspec.Struct, frozen=True):
    name: str
    status: str
    took_ms: float


class TopSnapshot(msgspec.Struct, frozen=True):
    agents: tuple[AgentRow, ...]
    queues: tuple[QueueRow, ...]
    needs: tuple[PersonNeed, ...]
    keepers: tuple[KeeperRow, ...]
    waiting: int
    processing: int
    dead: int


async def read_top(services: "ServerServices", caller: Caller, now: int) -> TopSnapshot:
    """One look at everything; `now` in microseconds."""
    counts = await services.workload.counts(caller)
    in_hand = {each.agent: each for each in await services.workload.in_hand(caller) if each.active}
    load = {each.agent: each for each in await services.workload.by_agent(caller)}
    spent = {
        each.account.rpartition("/")[2]: each.spent / 1e6
        for each in (await services.budgets.overview(caller)).budgets
        if each.spent
    }
    agents = []
    for name in await services.agents.list_all(caller):
        work, waits = in_hand.get(name), load.get(name)
        body = work.message.body if work is not None else None
        text = str(body.get("text", "")) if isinstance(body, dict) else ""
        agents.append(
            AgentRow(
                name,
                "● works" if work is not None else "○ idle",
                clean(" ".join(text.split())[:SHORT]),
                (now - work.started_at) / SECOND if work is not None else None,
                0 if waits is None else waits.pending + waits.queued,
                spent.get(name),
            )
        )
    queues = [
        QueueRow(
            each.queue.path, each.counts.waiting, each.counts.claimed, each.counts.dead, each.counts.completed
        )
        for each in await services.queues.list_all(caller)
        if not each.queue.system or each.counts.dead
    ]
    queues.sort(key=lambda row: (-(row.waiting + row.claimed + row.dead), row.queue))
    keepers = [
        KeeperRow(each.name, each.last_status, each.last_duration_ms)
        for each in await services.housekeepers.list_all(caller)
    ]
    return TopSnapshot(
        tuple(agents),
        tuple(queues),
        tuple(await services.needs_you.list_all(caller)),
        tuple(keepers),
        counts.incoming + counts.queued,
        counts.processing,
        sum(row.dead for row in queues),
    )


def tell_answers(need: PersonNeed) -> str:
    """The keys of its answers."""
    answers = list_answers(need)
    if not answers:
        return "in the portal"
    return "  ".join(f"{number} {answer.says}" for number, answer in enumerate(answers, 1))


def tell_elapsed(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tell_plain(found: TopSnapshot) -> list[str]:
    """The same as lines, for pipes."""
    lines = [f"waiting {found.waiting}, in hand {found.processing}, dead {found.dead}"]
    lines += [f"needs you: {need.title} ({tell_answers(need)})" for need in found.needs]
    lines += [
        f"agent {row.agent}: {row.state[2:]}, {row.waiting} waiting"
        + (f", for {tell_elapsed(row.elapsed_s)}: {row.work}" if row.elapsed_s is not None else "")
        for row in found.agents
    ]
    lines += [
        f"queue {row.queue}: {row.waiting} waiting, {row.claimed} claimed, {row.dead} dead"
        for row in found.queues
    ]
    return lines
