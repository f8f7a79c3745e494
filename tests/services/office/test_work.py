"""How the mail stands, what guards have stopped, rooms, tasks and schedules."""

import pytest

from postroom.errors import InvalidField, NotFound, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.kernel.states import State
from postroom.office import queues
from postroom.office.agents import TeamNotFound
from postroom.office.guards import budgets as accounts
from postroom.services.budgets import ConversationNotFound
from postroom.services.conversations import Draft, Outgoing
from postroom.services.rooms import PostEmpty
from postroom.services.schedules import NoDate, moment
from postroom.services.workload import DeadNotFound, ProcessingNotFound
from tests.services.office.conftest import ServedOffice


async def send(office: ServedOffice, to: str, message_id: str) -> None:
    await office.services.conversations.send(office.owner, Draft(text=f"@{to} hello", message_id=message_id))


async def freeze(office: ServedOffice, message: Message, talk: str, reason: str = "messages") -> None:
    """As a guard would: the account is frozen and the message held, in one unit."""
    account = accounts.conversation(talk)
    assert message.claim_token is not None
    held = c.Hold(account=account, until=2**52, message_id=message.id, token=message.claim_token, actor="x")
    record = c.AddRecord(
        kind="guard",
        key=account,
        data={
            "event": "tripped",
            "guard": reason,
            "account": account,
            "talk": talk,
            "agent": "coder",
            "channel": "api",
            "person": "API",
            "allowance": 10,
        },
        correlation_id=talk,
        actor="x",
    )
    frozen = c.Freeze(account=account, reason=reason, correlation_id=talk, actor="x")
    await office.room.run(c.Unit(commands=(frozen, record, held), actor="x"))


async def test_counts_tell_what_waits_is_worked_on_and_is_over(office: ServedOffice) -> None:
    workload = office.services.workload
    for number in range(4):
        await send(office, "coder", f"m-{number}")
    first, second = await office.room.claim(queues.inbox("coder"), limit=2)
    await office.services.conversations.respond(
        office.owner, Outgoing(channel="web", sender="Ann", text="hello")
    )
    await office.room.claim(queues.outbox("web"))
    found = await workload.counts(office.owner)
    assert (found.incoming, found.queued, found.processing, found.outgoing) == (2, 1, 1, 1)
    [coder] = await workload.by_agent(office.owner)
    assert (coder.agent, coder.pending, coder.queued, coder.processing) == ("coder", 2, 1, 1)
    in_hand = await workload.in_hand(office.owner)
    assert [(each.message.id, each.active) for each in in_hand] == [(first.id, True), (second.id, False)]
    assert await workload.kill(office.owner, in_hand[0].number) == "coder"
    assert (await office.room.get(first.id)).state is State.CANCELLED
    with pytest.raises(ProcessingNotFound):
        await workload.kill(office.owner, in_hand[0].number)


async def test_dead_letters_go_back_or_away(office: ServedOffice) -> None:
    workload = office.services.workload
    for number in range(2):
        await send(office, "coder", f"m-{number}")
    for message in await office.room.claim(queues.inbox("coder"), limit=2):
        await office.room.fail(message, "broken", retry=False)
    newest, oldest = await workload.dead(office.owner)
    await workload.retry_dead(office.owner, oldest.number)
    await workload.discard_dead(office.owner, newest.number)
    assert (await office.room.get(oldest.message.id)).state is State.PENDING
    assert await workload.dead(office.owner) == []
    with pytest.raises(DeadNotFound):
        await workload.retry_dead(office.owner, newest.number)


async def test_a_paused_conversation_goes_on_further_or_ends(office: ServedOffice) -> None:
    guards = office.services.budgets
    for number in ("m-1", "m-2", "m-3"):
        await send(office, "coder", number)
    mail = await office.room.claim(queues.inbox("coder"), limit=3)
    for message in mail:
        await freeze(office, message, message.correlation_id or "")
    found = await guards.overview(office.owner)
    assert {each.conversation for each in found.conversations} == {"api:m-1", "api:m-2", "api:m-3"}
    assert await guards.resume(office.owner, "api:m-1") == 1
    assert await guards.raise_named(office.owner, "api:m-2", usd=5, messages=50) == 1
    assert await guards.stop(office.owner, "api:m-3") == 1
    states = [(await office.room.get(message.id)).state for message in mail]
    assert states == [State.PENDING, State.PENDING, State.CANCELLED]
    for act in (guards.resume, guards.stop, guards.raise_limits):
        with pytest.raises(ConversationNotFound):
            await act(office.owner, "api:unknown")


async def test_a_budget_is_raised_by_money_alone(office: ServedOffice) -> None:
    guards = office.services.budgets
    [account, *_] = [each.account for each in (await guards.overview(office.owner)).budgets]
    with pytest.raises(InvalidField):
        await guards.raise_named(office.owner, account, usd=5, hops=3)
    assert await guards.raise_named(office.owner, account, usd=500) == 0
    limits = {each.account: each.limit for each in (await guards.overview(office.owner)).budgets}
    assert limits[account] == 500_000_000


async def test_everybody_pauses_and_goes_on(office: ServedOffice) -> None:
    guards = office.services.budgets
    assert await guards.pause_all(office.owner)
    assert not await guards.pause_all(office.owner)
    assert (await guards.overview(office.owner)).paused
    assert await guards.resume_all(office.owner) == 0
    assert not (await guards.overview(office.owner)).paused


async def test_a_room_is_read_from_either_end(office: ServedOffice) -> None:
    rooms = office.services.rooms
    numbers = [await rooms.write(office.owner, "dev", text) for text in ("one", " two ", "three")]
    assert [each.text for each in await rooms.read(office.owner, "dev", limit=2)] == ["three", "two"]
    earlier = await rooms.read(office.owner, "dev", before=numbers[2])
    assert [each.text for each in earlier] == ["two", "one"]
    later = await rooms.read(office.owner, "dev", since=numbers[0])
    assert [(each.number, each.text, each.author) for each in later] == [
        (numbers[1], "two", "user"),
        (numbers[2], "three", "user"),
    ]
    with pytest.raises(PostEmpty):
        await rooms.write(office.owner, "dev", "  ")
    for act in (rooms.read(office.owner, "ops"), rooms.write(office.owner, "ops", "hello")):
        with pytest.raises(TeamNotFound):
            await act


async def test_a_room_shows_what_was_posted_before_it_was_taken_over(office: ServedOffice) -> None:
    rooms = office.services.rooms
    past = queues.past_of("dev")
    await office.room.create_queue(past)
    await office.room.publish(past, {"text": "long ago", "created_at": 1000})
    await rooms.write(office.owner, "dev", "today")
    assert [each.text for each in await rooms.read(office.owner, "dev")] == ["today", "long ago"]
    [old] = [each for each in await rooms.read(office.owner, "dev") if each.text == "long ago"]
    assert [each.text for each in await rooms.read(office.owner, "dev", since=old.number)] == ["today"]


async def test_tasks_belong_to_projects_and_are_talked_about(office: ServedOffice) -> None:
    tasks, projects, coder = office.services.tasks, office.services.projects, office.agent("coder")
    project = await projects.add(office.owner, "Website")
    task = await tasks.add(coder, "Fix the form", project=project.id)
    assert [each.id for each in await tasks.list_all(coder, project=project.id)] == [task.id]
    changed = await tasks.change(coder, task.id, description="It loses words.")
    assert (await tasks.get(office.owner, task.id)).description == changed.description == "It loses words."
    said = await tasks.comment(coder, task.id, "Done?", author="somebody else", author_type="user")
    assert (said.author, said.author_type) == ("coder", "agent"), "an agent speaks in its own name"
    own = await tasks.comment(office.owner, task.id, "Not yet.")
    assert (own.author, own.author_type) == ("User", "user")
    brought = await tasks.comment(office.owner, task.id, "Hm.", author="Ann", author_type="user")
    assert brought.author == "Ann"
    assert await tasks.count_comments(coder, task.id) == len(await tasks.comments(coder, task.id)) == 3
    await tasks.remove_comment(office.owner, own.id)
    assert await tasks.count_comments(office.owner, task.id) == 2
    await tasks.reorder(office.owner, {task.status: [task.id]})
    assert (await projects.change(office.owner, project.id, name="Site")).name == "Site"
    assert [each.name for each in await projects.list_all(office.owner)] == ["Site"]
    await projects.remove(office.owner, project.id)
    assert (await tasks.get(office.owner, task.id)).project is None
    with pytest.raises(NotFound):
        await projects.get(office.owner, project.id)
    await tasks.remove(office.owner, task.id)
    with pytest.raises(NotFound):
        await tasks.get(office.owner, task.id)


async def test_schedules_are_kept_by_id_or_label(office: ServedOffice) -> None:
    schedules = office.services.schedules
    made = await schedules.add(office.owner, "coder", "Good morning", cron="0 9 * * *", label="morning")
    assert [each.id for each in await schedules.list_all(office.owner, "coder")] == [made.id]
    assert await schedules.list_all(office.owner, "lead") == []
    assert (await schedules.get(office.owner, "morning")).id == made.id
    assert len(await schedules.preview(office.owner, made.id, 3)) == 3
    changed = await schedules.change(office.owner, "morning", text="Good evening")
    assert changed.id == made.id
    sent = await office.room.get(await schedules.run(office.owner, "morning"))
    assert sent.queue == "inbox/coder"
    await schedules.remove(office.owner, made.id)
    with pytest.raises(PostroomError):
        await schedules.get(office.owner, "morning")


def test_a_moment_without_a_zone_is_utc() -> None:
    assert moment("2030-01-01T00:00:00") == moment("2030-01-01T01:00:00+01:00")
    for text in ("tomorrow", "2030-13-01"):
        with pytest.raises(NoDate):
            moment(text)
