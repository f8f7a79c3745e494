"""`postroom team visualize`: agents as cards, what they hand on as it happens, and their dead letters.

What happened before comes from the store, by the same stream of events as what happens now: a thing has the
number of its event, and is shown once however often it is heard.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ClassVar

import httpx2
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Label, Static

from postroom.errors import PostroomError
from postroom.terminal.cli.output import clean
from postroom.terminal.tui.detail_screen import DetailScreen
from postroom.terminal.tui.floor import Activity, Floor
from postroom.terminal.tui.live_screen import Events, LiveEvent, LiveScreen
from postroom.terminal.tui.render import draw_cards, tell_time
from postroom.terminal.tui.team_work import DeadLetter, TeamWork

Earlier = Callable[[int], Awaitable[list[LiveEvent]]]
"""What happened up to the event of this number, the oldest first; none when there is nothing before it."""

DRAWN_S = 0.25
# So many cards stand beside each other.
BESIDE = 3
MOST_ROWS = 5000
MOST_DEAD_SHOWN = 5
# So many events of the ledger are looked through at once for what happened earlier.
PAST = 500


class FloorScreen(LiveScreen):
    CSS = """
    #status { height: 1; width: 100%; background: $primary; color: $text; padding: 0 1; }
    #cards { height: auto; max-height: 45%; }
    .title { height: 1; text-style: bold; padding: 0 1; }
    #cards { scrollbar-gutter: auto; scrollbar-size-vertical: 1; }
    #activity { height: 1fr; min-height: 4; overflow-x: hidden; scrollbar-size-vertical: 1; }
    #dead { overflow-x: hidden; scrollbar-size-vertical: 1; }
    .hidden { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "stop", "stop the turn"),
        Binding("r", "retry", "retry"),
        Binding("pageup", "earlier", "earlier", priority=True),
        Binding("tab", "app.focus_next", "next part", show=False),
    ]

    def __init__(
        self, floor: Floor, team_work: TeamWork, events: Events, earlier: Earlier, last_event: int
    ) -> None:
        super().__init__(events)
        self.last_heard = str(last_event)
        self._first_seq = last_event
        self._floor = floor
        floor.activity = deque()  # emptied whenever the screen is drawn
        self._work = team_work
        self._earlier = earlier
        self._activities: dict[str, Activity] = {}
        self._dead: dict[str, DeadLetter] = {}
        self._turns: dict[str, int] = {}
        self._asked: int | None = None
        self._is_loading = False

    def compose(self) -> ComposeResult:
        yield Label("…", id="status", markup=False)
        with VerticalScroll(id="cards"):
            yield Static("", id="card-grid")
        yield Label("Activity: Enter opens", classes="title", markup=False)
        yield DataTable(id="activity", cursor_type="row", show_header=False)
        yield Label("Dead letters: r retries", classes="title hidden", id="dead-title", markup=False)
        yield DataTable(id="dead", cursor_type="row", show_header=False, classes="hidden")
        yield Footer()

    def on_mount(self) -> None:
        self._table("activity").add_columns("when", "what")
        self._table("dead").add_columns("who", "why", "what")
        self._table("activity").focus()
        self.set_interval(DRAWN_S, self._draw)
        self._is_loading = True
        self._load_earlier()
        self.begin_looking()

    def _table(self, name: str) -> "DataTable[str]":
        return self.query_one(f"#{name}", DataTable)

    def hear(self, event: LiveEvent) -> None:
        name, data, number = event
        moment = float(data.get("timestamp") or time.time() * 1000) / 1000
        self._floor.see(name, data, moment, number or "")

    async def look(self) -> None:
        found = await self._work.look()
        if self._floor.count(found.counts) and found.dead:
            self._floor.failed(found.dead[0].agent, found.dead[0].reason, time.time())
        self._turns = found.turns
        self._floor.settle(found.turns)
        self._show_dead(found.dead)

    def tell_problem(self, problem: str) -> None:
        self._floor.online = False
        self.query_one("#status", Label).update(f"✗ {problem}")

    def _draw(self) -> None:
        """What was heard since the last time; however much it was, the screen is drawn once."""
        if not self.is_running:
            return  # it is being closed, and parts of it are gone
        floor = self._floor
        floor.pass_time(time.time())
        self._add([floor.activity.popleft() for _ in range(len(floor.activity))])
        self.query_one("#card-grid", Static).update(draw_cards(floor, self.size.width // BESIDE - 1))
        if floor.online:
            state = f"● {clean(floor.title)} · {floor.waiting} waiting · {floor.processed} answered"
            self.query_one("#status", Label).update(f"{state} · {floor.dead or 0} dead")

    def _add(self, heard: list[Activity]) -> None:
        table = self._table("activity")
        was_at_end = table.cursor_row >= table.row_count - 1
        for each in heard:
            key = each.number or f"{each.moment} {each.text}"
            if key not in self._activities:
                self._activities[key] = each
                table.add_row(tell_time(each.moment), clean(each.text), key=key)
        for key in list(self._activities)[: max(0, len(self._activities) - MOST_ROWS)]:
            del self._activities[key]
            table.remove_row(key)
        if heard and was_at_end:
            table.move_cursor(row=table.row_count - 1)

    def _show_dead(self, dead: tuple[DeadLetter, ...]) -> None:
        found = {str(each.number): each for each in dead}
        if found.keys() == self._dead.keys():
            return
        self._dead = found
        for name in ("#dead", "#dead-title"):
            self.query_one(name).set_class(not found, "hidden")
        table = self._table("dead")
        # Not `auto`: a table that was hidden when it was filled would stay as high as before.
        table.styles.height = min(len(found), MOST_DEAD_SHOWN)
        table.clear()
        for key, each in found.items():
            table.add_row(f"✗ @{each.agent}", clean(each.reason)[:40], clean(each.text), key=key)
        if not found:
            self._table("activity").focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        key = str(event.row_key.value)
        if event.data_table.id == "dead":
            dead = self._dead[key]
            text = f"{dead.text}\n\nfailed after {dead.attempts} attempts: {dead.reason}"
            self.push_screen(DetailScreen(f"Dead letter of @{dead.agent}", text))
        else:
            self._open(self._activities[key])

    @work(group="open")
    async def _open(self, activity: Activity) -> None:
        try:
            text = await self._work.describe(activity)
        except PostroomError as error:
            text = f"{activity.whole}\n\n✗ {error}"
        self.push_screen(DetailScreen(f"{tell_time(activity.moment)}  @{activity.agent}", text))

    @work(group="stop")
    async def action_stop(self) -> None:
        """Of the agent of the chosen line; when that one does nothing, of whoever works. Asked twice."""
        chosen = self._chosen("activity")
        agent = self._activities[chosen].agent if chosen else ""
        agent = agent if agent in self._turns else next(iter(self._turns), "")
        number = self._turns.get(agent)
        if number is None:
            self.notify("Nobody works on anything here.")
        elif self._asked != number:
            self._asked = number
            self.notify(f"Press s again to stop the turn of @{agent}.", severity="warning")
        else:
            self._asked = None
            try:
                await self._work.stop(number)
            except PostroomError as error:
                self.notify(str(error), severity="error")
            self.news.set()

    @work(group="retry")
    async def action_retry(self) -> None:
        chosen = self._chosen("dead")
        if chosen is None:
            self.notify("There are no dead letters here.")
            return
        try:
            await self._work.retry(self._dead[chosen].number)
            self.notify(f"@{self._dead[chosen].agent} tries it again.")
        except PostroomError as error:
            self.notify(str(error), severity="error")
        self.news.set()

    def _chosen(self, name: str) -> str | None:
        table = self._table(name)
        keys = list(table.rows)
        return str(keys[table.cursor_row].value) if 0 <= table.cursor_row < len(keys) else None

    def action_earlier(self) -> None:
        table = self._table("activity")
        if table.cursor_row > 0:
            table.action_page_up()
        elif not self._is_loading and self._first_seq > 0:
            self._is_loading = True
            self._load_earlier()

    @work(group="earlier")
    async def _load_earlier(self) -> None:
        """The table grows at its end only, so that it is filled anew; the cursor stays on its line. What
        happened changes no card."""
        table = self._table("activity")
        try:
            cards = {name: replace(card) for name, card in self._floor.cards.items()}
            past = replace(self._floor, cards=cards, activity=deque(), flow=deque())
            while not past.activity and self._first_seq > 0:
                for name, data, number in await self._earlier(self._first_seq):
                    past.see(name, data, float(data.get("timestamp") or 0) / 1000, number or "")
                self._first_seq = max(0, self._first_seq - PAST)
            found = {each.number: each for each in past.activity if each.number not in self._activities}
            self._activities = {**found, **self._activities}
            was_empty = table.row_count == 0
            table.clear()
            for key, each in self._activities.items():
                table.add_row(tell_time(each.moment), clean(each.text), key=key)
            table.move_cursor(row=table.row_count - 1 if was_empty else len(found))
        except (PostroomError, httpx2.HTTPError) as error:
            self.notify(str(error), severity="error")
        finally:
            self._is_loading = False
