"""Tasks, projects and comments: kept, numbered, ordered, moved and removed, by many at once."""

import asyncio
from typing import Any

import pytest
from tests.office.schedules.desk import DIRECTORY

from postroom import Room
from postroom.clock import ManualClock, iso
from postroom.errors import InvalidField
from postroom.office.intake.routing import route
from postroom.office.tasks import Board, Status
from postroom.office.tasks.errors import CommentNotFound, PrefixTaken, ProjectNotFound, TaskNotFound
from postroom.office.tasks.model import COLOURS, prefix_from


@pytest.fixture
def board(room: Room) -> Board:
    return Board(room, lambda: DIRECTORY)


async def test_a_task_is_shown_in_the_shape_clients_know(board: Board, clock: ManualClock) -> None:
    alpha = await board.projects.add("Alpha", description="first")
    now = clock.now() // 1000
    assert alpha.document() == {
        "id": alpha.id,
        "name": "Alpha",
        "description": "first",
        "prefix": "ALP",
        "color": "#6366f1",
        "status": "active",
        "createdAt": now,
        "updatedAt": now,
        "created_at": iso(clock.now()),
        "updated_at": iso(clock.now()),
    }
    task = await board.add(
        "T1", description="d", status="todo", assignee="coder", assignee_type="agent", project=alpha.id
    )
    assert list(task.document().items()) == [
        ("id", task.id),
        ("number", 1),
        ("title", "T1"),
        ("description", "d"),
        ("status", "todo"),
        ("assignee", "coder"),
        ("assigneeType", "agent"),
        ("projectId", alpha.id),
        ("sortOrder", 0),
        ("createdAt", now),
        ("updatedAt", now),
        ("identifier", "ALP-1"),
        ("created_at", iso(clock.now())),
        ("updated_at", iso(clock.now())),
    ]
    plain = await board.add("T2")
    assert "projectId" not in plain.document()
    assert (plain.identifier, plain.status, plain.assignee_type) == ("T-1", Status.BACKLOG, "")


async def test_tasks_are_numbered_in_their_project(board: Board) -> None:
    one, other = await board.projects.add("One"), await board.projects.add("Other Things Here")
    names = [
        (await board.add("x", project=project)).identifier
        for project in (one.id, one.id, other.id, None, one.id)
    ]
    assert names == ["ONE-1", "ONE-2", "OTH-1", "T-1", "ONE-3"]


async def test_a_number_is_never_given_twice(board: Board) -> None:
    first = await board.add("x")
    await board.remove(first.id)
    assert (await board.add("y")).number == 2
    made = await asyncio.gather(*(board.add(str(n)) for n in range(10)))
    assert sorted(task.number for task in made) == list(range(3, 13))


async def test_a_task_that_moves_gets_a_number_there(board: Board) -> None:
    one, other = await board.projects.add("One"), await board.projects.add("Two")
    task = await board.add("x", project=one.id)
    await board.add("y", project=other.id)
    moved = await board.change(task.id, project=other.id)
    assert moved.identifier == "TWO-2"
    assert (await board.change(task.id, project="")).identifier == "T-1"
    assert (await board.change(task.id, title="z")).identifier == "T-1"


async def test_tasks_are_listed_in_order_and_by_what_is_wanted(board: Board, clock: ManualClock) -> None:
    project = await board.projects.add("One")
    for number, fields in enumerate(
        (
            {"status": "todo"},
            {"assignee": "coder"},
            {"project": project.id},
            {"status": "todo", "assignee": "dev"},
        )
    ):
        await board.add(str(number), **fields)
        clock.advance(1)
    assert [task.title for task in await board.all()] == ["0", "1", "2", "3"]
    assert [task.title for task in await board.all(status="todo")] == ["0", "3"]
    assert [task.title for task in await board.all(assignee="dev")] == ["3"]
    assert [task.title for task in await board.all(project=project.id)] == ["2"]
    assert (await board.all(assignee="dev"))[0].assignee_type == "team"


async def test_new_tasks_come_last_in_their_column(board: Board) -> None:
    orders = [(await board.add("x", status=status)).sort_order for status in ("todo", "todo", "done", "todo")]
    assert orders == [0, 1, 0, 2]


async def test_the_board_is_put_in_order_at_once(board: Board) -> None:
    tasks = [await board.add(str(n)) for n in range(4)]
    ids = [task.id for task in tasks]
    await board.reorder({"done": [ids[2], ids[0]], "in_progress": [ids[3], "task_gone"]})
    assert [(t.title, t.sort_order) for t in await board.all(status="done")] == [("2", 0), ("0", 1)]
    assert [t.title for t in await board.all(status="in_progress")] == ["3"]
    assert [t.title for t in await board.all(status="backlog")] == ["1"]
    wrong: list[Any] = [None, [], {"soon": []}, {"done": "x"}, {"done": [ids[0], ids[0]]}, {"done": [5]}]
    for columns in wrong:
        with pytest.raises(InvalidField):
            await board.reorder(columns)


async def test_changes_at_once_are_all_kept(board: Board) -> None:
    task = await board.add("x")
    await asyncio.gather(
        board.change(task.id, title="y"),
        board.change(task.id, description="d"),
        board.change(task.id, assignee="coder"),
        board.reorder({"review": [task.id]}),
    )
    after = await board.show(task.id)
    assert (after.title, after.description, after.assignee, after.status) == (
        "y",
        "d",
        "coder",
        Status.REVIEW,
    )


WRONG: list[dict[str, Any]] = [
    {"title": ""},
    {"title": "  "},
    {"title": "x" * 501},
    {"title": 5},
    {"title": "half a \ud83d smile"},
    {"description": "x" * 40_001},
    {"status": "someday"},
    {"assignee": "ghost"},
    {"assignee": "dev", "assignee_type": "agent"},
    {"assignee": "coder", "assignee_type": "boss"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
async def test_what_is_wrong_is_refused(board: Board, wrong: dict[str, Any]) -> None:
    fields = {"title": "x", **wrong}
    with pytest.raises(InvalidField):
        await board.add(fields.pop("title"), **fields)
    task = await board.add("x")
    with pytest.raises(InvalidField):
        await board.change(task.id, **wrong)
    assert await board.all() == [task]


async def test_what_is_not_there_is_told(board: Board) -> None:
    task = await board.add("x")
    for step in (
        lambda: board.show("task_zz"),
        lambda: board.change("task_zz", title="x"),
        lambda: board.remove("task_zz"),
        lambda: board.comments.of("task_zz"),
        lambda: board.comments.add("task_zz", "x"),
        lambda: board.build_message("task_zz"),
        lambda: board.show(""),
    ):
        with pytest.raises(TaskNotFound):
            await step()
    for step in (
        lambda: board.add("x", project="proj_zz"),
        lambda: board.change(task.id, project="proj_zz"),
        lambda: board.projects.show("proj_zz"),
        lambda: board.projects.change("proj_zz", name="x"),
        lambda: board.remove_project("proj_zz"),
    ):
        with pytest.raises(ProjectNotFound):
            await step()
    with pytest.raises(CommentNotFound):
        await board.comments.remove("cmt_zz")
    for field in ("id", "number", "identifier"):
        with pytest.raises(InvalidField, match=field):
            await board.change(task.id, **{field: "x"})
    for order in (-1, "1", True, 2**31):
        with pytest.raises(InvalidField, match="sort_order"):
            await board.change(task.id, sort_order=order)


async def test_comments_are_kept_in_order_and_go_with_their_task(
    board: Board, room: Room, clock: ManualClock
) -> None:
    task, other = await board.add("x"), await board.add("y")
    first = await board.comments.add(task.id, "nice", author="Ann")
    clock.advance(1)
    second = await board.comments.add(task.id, "done", author="coder", author_type="agent")
    await board.comments.add(other.id, "elsewhere")
    assert await board.comments.of(task.id) == [first, second]
    assert await board.comments.count(task.id) == 2
    assert second.document() == {
        "id": second.id,
        "taskId": task.id,
        "author": "coder",
        "authorType": "agent",
        "content": "done",
        "createdAt": clock.now() // 1000,
        "created_at": iso(clock.now()),
    }
    await board.comments.remove(first.id)
    with pytest.raises(CommentNotFound):
        await board.comments.remove(first.id)
    await board.remove(task.id)
    with pytest.raises(CommentNotFound):
        await board.comments.remove(second.id)
    assert len(await room.documents("comment")) == 1
    for wrong in ({"content": ""}, {"content": "x", "author_type": "boss"}, {"content": "x", "author": ""}):
        with pytest.raises(InvalidField):
            await board.comments.add(other.id, **wrong)


async def test_a_comment_does_not_outlive_a_task_that_goes_at_the_same_moment(
    board: Board, room: Room
) -> None:
    for _ in range(5):
        task = await board.add("x")
        await asyncio.gather(
            *(board.comments.add(task.id, str(n)) for n in range(5)),
            board.remove(task.id),
            return_exceptions=True,
        )
    assert await room.documents("comment") == []
    assert await room.documents("comment.place") == []


async def test_projects_have_colours_and_prefixes_of_their_own(board: Board) -> None:
    made = [await board.projects.add("Alpha") for _ in range(13)]
    assert [project.prefix for project in made][:3] == ["ALP", "ALP2", "ALP3"]
    assert made[0].color == made[12].color == COLOURS[0]
    assert made[1].color == COLOURS[1]
    at_once = await asyncio.gather(*(board.projects.add("Beta") for _ in range(5)))
    assert len({project.prefix for project in at_once}) == 5


def test_prefixes_come_from_names() -> None:
    names = {"Alpha": "ALP", "My big new plan": "MBN", "x": "X", "ab cd": "AC", "---": "P", "Überflug": "ÜBE"}
    assert {name: prefix_from(name) for name in names} == names


async def test_projects_are_changed_archived_and_listed_newest_first(
    board: Board, clock: ManualClock
) -> None:
    one = await board.projects.add("One")
    clock.advance(1)
    two = await board.projects.add("Two")
    assert [project.id for project in await board.projects.all()] == [two.id, one.id]
    changed = await board.projects.change(
        one.id, status="archived", description="d", prefix="old", color="#000000"
    )
    assert (changed.status, changed.prefix, changed.name) == ("archived", "OLD", "One")
    assert [project.id for project in await board.projects.all("archived")] == [one.id]
    task = await board.add("x", project=one.id)
    assert task.identifier == "OLD-1"
    with pytest.raises(PrefixTaken, match="OLD"):
        await board.projects.change(two.id, prefix="old")
    assert (await board.projects.show(two.id)).prefix == "TWO"
    wrong: list[dict[str, Any]] = [
        {"name": ""},
        {"prefix": "T"},
        {"prefix": "a b"},
        {"prefix": ""},
        {"color": "red"},
        {"status": "gone"},
        {"id": "x"},
    ]
    for fields in wrong:
        with pytest.raises(InvalidField):
            await board.projects.change(two.id, **fields)


async def test_a_removed_project_leaves_its_tasks(board: Board) -> None:
    project = await board.projects.add("One")
    plain = await board.add("plain")
    tasks = [await board.add(str(n), project=project.id) for n in range(3)]
    await board.remove_project(project.id)
    after = [await board.show(task.id) for task in tasks]
    assert all(task.project is None for task in after)
    assert len({task.identifier for task in [*after, plain]}) == 4, "no two have the same name"
    assert await board.projects.all() == []
    assert (await board.projects.add("One")).prefix == "ONE", "its prefix is free again"


async def test_a_task_is_sent_to_whoever_has_it(board: Board) -> None:
    task = await board.add("Fix it", description="soon", assignee="dev")
    letter = await board.build_message(task.id)
    assert letter.text == f"@dev Fix it\n\nsoon\n\n[task:{task.id}]"
    routed = route(letter.text, DIRECTORY)
    assert [(each.agent, each.team) for each in routed.messages] == [("lead", "dev")]
    again = await board.build_message(task.id)
    assert again.platform_id == letter.platform_id, "a second click is the same message"
    await board.change(task.id, status="in_progress")
    assert (await board.build_message(task.id)).platform_id != letter.platform_id
    alone = await board.add("x")
    with pytest.raises(InvalidField, match="assignee"):
        await board.build_message(alone.id)


async def test_the_history_of_a_task_is_kept(board: Board, room: Room) -> None:
    task = await board.add("x")
    await board.change(task.id, title="y")
    await board.remove(task.id)
    assert [record.data["title"] for record in await room.records("task", task.id)] == ["x", "y"]
