"""Tasks on a board of five columns, moved by mouse or by keys, and one task with its comments."""

from urllib.parse import quote

from htpy import Renderable, a, button, dialog, div, form, h2, input, p, span

from postroom.office.tasks.model import Status, Task
from postroom.portal.markdown import render_markdown
from postroom.portal.parts import act_button, area_field, choice_field, show_face, show_section, text_field
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import show_ago
from postroom.services.conversations import Draft

COLUMNS = {
    Status.BACKLOG: "Backlog",
    Status.TODO: "To do",
    Status.IN_PROGRESS: "In progress",
    Status.REVIEW: "Review",
    Status.DONE: "Done",
}
ORDER = list(COLUMNS)


async def show_board(visit: PortalVisit) -> PageView:
    project = visit.query("project")
    tasks = await visit.services.tasks.list_all(visit.caller, project=project or None)
    projects = await visit.services.projects.list_all(visit.caller)
    people = await _people(visit)

    def column(status: Status) -> Renderable:
        cards = sorted((each for each in tasks if each.status is status), key=lambda task: task.sort_order)
        return div(".column", data_status=status.value)[
            h2[COLUMNS[status], span(".quiet")[str(len(cards))]], [_card(each) for each in cards]
        ]

    return PageView(
        title="Tasks",
        way="/tasks",
        wide=True,
        actions=[
            form(method="get", action="/tasks")[
                choice_field(
                    "project",
                    "",
                    [("", "all projects"), *((each.id, each.name) for each in projects)],
                    project,
                    data_submit=True,
                    aria_label="Project",
                )
            ],
            button(data_do="dialog", data_opens="new-project")["New project"],
            button(".primary", data_do="dialog", data_opens="new-task")["New task"],
        ],
        body=[
            div(".board", id="board", data_live=True)[[column(status) for status in ORDER]],
            dialog("#new-task", aria_label="New task")[
                form(".inside", method="post", action="/tasks/new")[
                    h2["New task"],
                    text_field("title", "Title", required=True),
                    area_field("description", "Description", rows="4"),
                    choice_field("assignee", "For", people),
                    input(type="hidden", name="project", value=project),
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"], button(".primary")["Create task"]
                    ],
                ]
            ],
            dialog("#new-project", aria_label="New project")[
                form(".inside", method="post", action="/tasks/project")[
                    h2["New project"],
                    text_field("name", "Name", required=True),
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"], button(".primary")["Create project"]
                    ],
                ]
            ],
        ],
    )


async def _people(visit: PortalVisit) -> list[tuple[str, str]]:
    agents = await visit.services.agents.directory(visit.caller)
    teams = await visit.services.teams.list_all(visit.caller)
    return [
        ("", "nobody yet"),
        *((f"agent:{each.id}", f"@{each.id}") for each in agents),
        *((f"team:{each}", f"# {each}") for each in teams),
    ]


def _card(task: Task) -> Renderable:
    at = ORDER.index(task.status)
    base = f"/tasks/{quote(task.id)}"

    def move(to: int, key: str, word: str) -> Renderable | None:
        if not 0 <= to < len(ORDER):
            return None
        told = f"{word}: {COLUMNS[ORDER[to]]}"
        return button(".plain", name="to", value=ORDER[to].value, data_key=key, aria_label=told, title=told)[
            "←" if key == "h" else "→"
        ]

    return div(".card", id=f"task-{task.id}", draggable="true", data_row=True, tabindex="-1")[
        a(href=base)[task.title],
        div(".meta")[
            span(".mono")[task.identifier],
            task.assignee and span[f"@{task.assignee}"],
            form(".move.right", method="post", action=f"{base}/move")[
                input(type="hidden", name="status", value=""),
                move(at - 1, "h", "Back"),
                move(at + 1, "l", "On"),
            ],
        ],
    ]


async def show_task(visit: PortalVisit) -> PageView:
    task = await visit.services.tasks.get(visit.caller, visit.path("task"))
    comments = await visit.services.tasks.comments(visit.caller, task.id)
    base = f"/tasks/{quote(task.id)}"
    chosen = f"{task.assignee_type or 'agent'}:{task.assignee}" if task.assignee else ""
    return PageView(
        title=task.title,
        way="/tasks",
        crumb=("/tasks", "Tasks"),
        lead=task.identifier,
        actions=[
            act_button("Send to " + task.assignee, f"{base}/send", kind="primary") if task.assignee else None,
            act_button(
                "Delete", f"{base}/remove", kind="danger", confirm="Delete this task with its comments?"
            ),
        ],
        body=div(".stack-l")[
            form(".fields", method="post", action=f"{base}/change")[
                text_field("title", "Title", task.title, required=True),
                area_field("description", "Description", task.description, rows="6"),
                choice_field(
                    "status",
                    "Column",
                    [(each.value, word) for each, word in COLUMNS.items()],
                    task.status.value,
                ),
                choice_field("assignee", "For", await _people(visit), chosen),
                div[button(".primary")["Save"]],
            ],
            show_section(
                "Comments",
                div(".stack")[
                    [
                        div(".said")[
                            show_face(each.author),
                            div(".meta")[span[each.author], show_ago(each.created_at, visit.now)],
                            div(".prose")[render_markdown(each.content)],
                        ]
                        for each in comments
                    ]
                    or p(".quiet")["Nobody has said anything yet."]
                ],
                count=len(comments),
                part_id="comments",
            ),
            form(".fields", method="post", action=f"{base}/comment", data_reset=True)[
                area_field("content", "Comment", rows="3", required=True), div[button["Comment"]]
            ],
        ],
    )


def _assignee(form: SentForm) -> dict[str, str]:
    kind, _, name = form.word("assignee").partition(":")
    return {"assignee": name, "assignee_type": kind}


async def add(visit: PortalVisit, form: SentForm) -> ActResult:
    project = form.word("project") or None
    await visit.services.tasks.add(
        visit.acting,
        form.word("title"),
        description=form.text("description"),
        status=Status.TODO.value,
        project=project,
        **_assignee(form),
    )
    return ActResult(to=f"/tasks?project={quote(project)}" if project else "/tasks")


async def add_project(visit: PortalVisit, form: SentForm) -> ActResult:
    made = await visit.services.projects.add(visit.acting, form.word("name"))
    return ActResult(to=f"/tasks?project={quote(made.id)}")


async def move(visit: PortalVisit, form: SentForm) -> ActResult:
    status = form.word("status") or form.word("to")
    task = await visit.services.tasks.change(visit.acting, visit.path("task"), status=status)
    return ActResult(said=f"{task.identifier} is in {COLUMNS[task.status]}.")


async def change(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.tasks.change(
        visit.acting,
        visit.path("task"),
        title=form.word("title"),
        description=form.text("description"),
        status=form.word("status"),
        **_assignee(form),
    )
    return ActResult(said="Saved.")


async def send(visit: PortalVisit, form: SentForm) -> ActResult:
    """As a message to whom it is for, with the mark by which answers find it."""
    task = await visit.services.tasks.get(visit.caller, visit.path("task"))
    parts = [f"@{task.assignee} {task.title}", task.description, f"[task:{task.id}]"]
    text = "\n\n".join(part for part in parts if part)
    await visit.services.conversations.send(
        visit.acting, Draft(text=text, channel="web", sender="Web", sender_id="web")
    )
    await visit.services.tasks.change(visit.acting, task.id, status=Status.IN_PROGRESS.value)
    return ActResult(said=f"Sent to @{task.assignee}.", to=f"/tasks/{quote(task.id)}")


async def comment(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.tasks.comment(visit.acting, visit.path("task"), form.text("content"), author="owner")
    return ActResult()


async def remove(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.tasks.remove(visit.acting, visit.path("task"))
    return ActResult(to="/tasks")


PART = PortalPart(
    {"/tasks": show_board, "/tasks/{task}": show_task},
    {
        "/tasks/new": add,
        "/tasks/project": add_project,
        "/tasks/{task}/move": move,
        "/tasks/{task}/change": change,
        "/tasks/{task}/send": send,
        "/tasks/{task}/comment": comment,
        "/tasks/{task}/remove": remove,
    },
)
