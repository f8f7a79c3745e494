"""`postroom top`: what waits for you, who works, and how full the queues are, live; answered with keys.

It speaks to a server only through its services and its stream of events: one elsewhere looks the same.
"""

import time
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Label

from postroom.errors import PostroomError
from postroom.services.need_answers import NeedAnswer, list_answers
from postroom.services.needs_you import PersonNeed
from postroom.terminal.cli.output import clean
from postroom.terminal.tui.live_screen import CALM_S, Events, LiveScreen
from postroom.terminal.tui.top_snapshot import TopSnapshot, tell_answers, tell_elapsed

Look = Callable[[], Awaitable[TopSnapshot]]
Answer = Callable[[PersonNeed, str], Awaitable[None]]


class TopScreen(LiveScreen):
    CSS = """
    Screen { layout: vertical; }
    #status { height: 1; width: 100%; background: $primary; color: $text; padding: 0 1; }
    .title { height: 1; text-style: bold; padding: 0 1; }
    #needs { height: 1fr; min-height: 4; }
    #agents { height: 1fr; min-height: 4; }
    #queues { height: 1fr; min-height: 4; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("r", "look", "look again"),
        Binding("tab", "app.focus_next", "next part", show=False),
        *(Binding(str(number), f"answer({number})", "answer", show=number == 1) for number in range(1, 10)),
    ]

    def __init__(self, place: str, look: Look, answer: Answer, events: Events) -> None:
        super().__init__(events)
        self._place = place
        self._look = look
        self._answer = answer
        self._needs: tuple[PersonNeed, ...] = ()
        self._asked: tuple[str, NeedAnswer] | None = None
        self._before: tuple[float, int] | None = None

    def compose(self) -> ComposeResult:
        yield Label("…", id="status", markup=False)
        for name, title in (("needs", "Needs you"), ("agents", "Agents"), ("queues", "Queues")):
            yield Label(title, classes="title", id=f"{name}-title", markup=False)
            yield DataTable(id=name, cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        self._table("needs").add_columns("what", "answers")
        self._table("agents").add_columns("agent", "state", "for", "waiting", "spent", "work")
        self._table("queues").add_columns("queue", "waiting", "claimed", "dead", "done")
        self._table("needs").focus()
        self.begin_looking()

    def _table(self, name: str) -> "DataTable[str]":
        return self.query_one(f"#{name}", DataTable)

    async def look(self) -> None:
        self.show(await self._look())

    def tell_problem(self, problem: str) -> None:
        self.query_one("#status", Label).update(f"✗ {self._place}: {problem}")

    def show(self, found: TopSnapshot) -> None:
        self._needs = found.needs
        blocking = sum(need.is_blocking for need in found.needs)
        failing = [keeper.name for keeper in found.keepers if keeper.status == "failed"]
        rate = self._rate(sum(row.completed for row in found.queues))
        parts = [
            f"● {self._place.removeprefix('http://')}",
            f"{found.waiting} waiting",
            f"{found.processing} in hand",
            f"{found.dead} dead",
            rate,
            f"{', '.join(failing)} failed" if failing else "keepers ok",
        ]
        self.query_one("#status", Label).update(" · ".join(part for part in parts if part))
        self.query_one("#needs-title", Label).update(
            f"Needs you: {blocking} blocking, {len(found.needs)} in all"
        )
        self._fill(
            "needs",
            [
                (
                    need.kind,
                    need.id,
                    f"{'!' if need.is_blocking else ' '} {clean(need.title)}",
                    tell_answers(need),
                )
                for need in found.needs
            ],
        )
        self._fill(
            "agents",
            [
                (
                    "agent",
                    row.agent,
                    row.agent,
                    row.state,
                    tell_elapsed(row.elapsed_s),
                    str(row.waiting),
                    "" if row.spent_usd is None else f"${row.spent_usd:,.2f}",
                    row.work,
                )
                for row in found.agents
            ],
        )
        self._fill(
            "queues",
            [
                (
                    "queue",
                    row.queue,
                    row.queue,
                    str(row.waiting),
                    str(row.claimed),
                    str(row.dead),
                    str(row.completed),
                )
                for row in found.queues
            ],
        )

    def _rate(self, completed: int) -> str:
        """Of what ended since the last look; what is archived in between takes away from it."""
        now, before = time.monotonic(), self._before
        self._before = (now, completed)
        if before is None or now - before[0] < CALM_S:
            return ""
        return f"{max(0, completed - before[1]) / (now - before[0]):.1f} done/s"

    def _fill(self, name: str, rows: list[tuple[str, ...]]) -> None:
        """Rows keep their place and the cursor: only what differs is drawn."""
        table = self._table(name)
        keys = [f"{kind}/{key}" for kind, key, *_ in rows]
        if keys != [str(row.value) for row in table.rows]:
            at = table.cursor_row
            chosen = next((str(key.value) for n, key in enumerate(table.rows) if n == at), None)
            table.clear()
            for key, (_, _, *cells) in zip(keys, rows, strict=True):
                table.add_row(*cells, key=key)
            if chosen in keys:
                table.move_cursor(row=keys.index(chosen))
            return
        for number, (_, _, *cells) in enumerate(rows):
            for column, cell in enumerate(cells):
                if table.get_cell_at((number, column)) != cell:  # type: ignore[arg-type]
                    table.update_cell_at((number, column), cell)  # type: ignore[arg-type]

    def action_look(self) -> None:
        self.news.set()

    @work(group="answer")
    async def action_answer(self, number: int) -> None:
        """What cannot be taken back is asked for twice."""
        row = self._table("needs").cursor_row
        if not 0 <= row < len(self._needs):
            return
        need = self._needs[row]
        answers = list_answers(need)
        if not 0 < number <= len(answers):
            self.notify("It has no such answer; the portal may have more.", severity="warning")
            return
        answer = answers[number - 1]
        if answer.is_final and self._asked != (need.id, answer):
            self._asked = (need.id, answer)
            self.notify(f"Press {number} again to {answer.says}: {clean(need.title)}", severity="warning")
            return
        self._asked = None
        try:
            await self._answer(need, answer.word)
        except PostroomError as error:
            self.notify(str(error), severity="error")
        else:
            self.notify(f"{answer.says}: {clean(need.title)}")
        self.news.set()
