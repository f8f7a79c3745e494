"""`postroom chat`: a conversation on a full screen. Words of a turn appear as they are written.

Entries are kept by their numbers, so none is shown twice however often the store is asked.
"""

import asyncio
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Input, Label, Static

from postroom.clock import iso
from postroom.errors import PostroomError
from postroom.terminal.cli.output import clean
from postroom.terminal.tui.conversation import Conversation, ConversationLine, TurnWords, tell_entry
from postroom.terminal.tui.detail_screen import DetailScreen
from postroom.terminal.tui.live_screen import Events, LiveScreen

FILE = "/file "


class ChatScreen(LiveScreen):
    CSS = """
    #title { height: 1; width: 100%; background: $primary; color: $text; padding: 0 1; }
    #lines { height: 1fr; padding: 0 1; }
    .own { color: $text-muted; }
    .chosen { background: $boost; border-left: thick $accent; }
    #live { height: auto; max-height: 8; padding: 0 1; color: $text-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", priority=True),
        Binding("escape", "stop", "stop the turn", priority=True),
        Binding("pageup", "earlier", "earlier", priority=True),
        Binding("up", "choose(-1)", "choose", priority=True, show=False),
        Binding("down", "choose(1)", "choose", priority=True, show=False),
        Binding("ctrl+o", "open", "open", priority=True),
        Binding("ctrl+r", "retry", "retry", priority=True),
    ]

    def __init__(
        self, conversation: Conversation, events: Events, *, leave_words: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(events)
        self._conversation = conversation
        self._leave_words = leave_words
        self._entries: dict[int, str] = {}
        self._lines: dict[int, ConversationLine] = {}
        self._chosen: int | None = None
        self._turns: list[TurnWords] = []
        self._files: tuple[str, ...] = ()
        # Two who add lines at once would each look for neighbours that the other is still adding.
        self._adding = asyncio.Lock()
        self._is_loading = False

    def compose(self) -> ComposeResult:
        yield Label(self._conversation.title, id="title", markup=False)
        yield VerticalScroll(id="lines")
        yield Static("", id="live", markup=False)
        yield Input(placeholder="Write and press Enter; /file PATH adds a file")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.begin_looking()

    async def look(self) -> None:
        entries = await self._read_since_last_look()
        self._turns = await self._conversation.working()
        async with self._adding:
            await self._show(entries)
        self._tell(
            "\n".join(f"@{turn.agent} writes: {clean(turn.text[-600:], lines=True)}▌" for turn in self._turns)
        )

    async def _read_since_last_look(self) -> list[ConversationLine]:
        """The newest page, and as many before it as reach back to what is shown: no gap in the middle."""
        newest_shown = max(self._entries, default=None)
        entries = await self._conversation.read()
        while newest_shown is not None and entries and entries[0].number > newest_shown:
            earlier = await self._conversation.read(entries[0].number)
            if not earlier:
                break
            entries = earlier + entries
        return entries

    def tell_problem(self, problem: str) -> None:
        self._tell(f"✗ {problem}")

    def _tell(self, text: str) -> None:
        self.query_one("#live", Static).update(text)

    async def _show(self, entries: list[ConversationLine]) -> None:
        """New ones go where their number belongs; of those that are there, only what changed is drawn."""
        lines = self.query_one("#lines", VerticalScroll)
        was_at_end = lines.scroll_y >= lines.max_scroll_y - 1
        for entry in entries:
            self._lines[entry.number] = entry
            text = tell_entry(entry)
            known = self._entries.get(entry.number)
            if known is None:
                later = next((number for number in sorted(self._entries) if number > entry.number), None)
                widget = Static(
                    text, id=f"entry-{entry.number}", classes="own" if entry.is_own else "", markup=False
                )
                self._entries[entry.number] = text
                await lines.mount(widget, before=None if later is None else f"#entry-{later}")
            elif known != text:
                self._entries[entry.number] = text
                self.query_one(f"#entry-{entry.number}", Static).update(text)
        if was_at_end:
            lines.scroll_end(animate=False)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        event.input.clear()
        if text.lower() in self._leave_words:
            self.exit()
        elif text.startswith(FILE):
            self._files += (text.removeprefix(FILE).strip(),)
            self.notify(f"{len(self._files)} with the next message")
        elif text:
            self._send(text)

    @work(group="send")
    async def _send(self, text: str) -> None:
        files, self._files = self._files, ()
        try:
            notice = await self._conversation.send(text, files)
        except PostroomError as error:
            self.notify(str(error), severity="error")
            self._files = files
            box = self.query_one(Input)
            box.value = box.value or text  # nothing that was written is lost
            return
        if notice:
            self.notify(notice)
        self.news.set()

    @work(group="stop")
    async def action_stop(self) -> None:
        """The oldest of the turns that go on."""
        if not self._turns:
            self.notify("Nobody works on anything here.")
            return
        try:
            await self._conversation.stop(self._turns[0].number)
        except PostroomError as error:
            self.notify(str(error), severity="error")
        self.news.set()

    def action_choose(self, step: int) -> None:
        """Up from the newest; below it none is chosen."""
        numbers = sorted(self._entries)
        at = numbers.index(self._chosen) if self._chosen in numbers else len(numbers)
        at = max(0, at + step)
        for each in self.query(".chosen"):
            each.remove_class("chosen")
        self._chosen = numbers[at] if at < len(numbers) else None
        if self._chosen is not None:
            line = self.query_one(f"#entry-{self._chosen}", Static)
            line.add_class("chosen")
            line.scroll_visible(animate=False)

    def _find_line(self) -> ConversationLine | None:
        """The chosen one, else the newest."""
        number = self._chosen if self._chosen is not None else max(self._lines, default=0)
        return self._lines.get(number)

    def action_open(self) -> None:
        if isinstance(self.screen, DetailScreen) or (line := self._find_line()) is None:
            return
        note = f"\n\n{line.note}" if line.note else ""
        self.push_screen(DetailScreen(f"{iso(line.created_at)}  {line.author}", f"{line.text}{note}"))

    @work(group="retry")
    async def action_retry(self) -> None:
        """Of the chosen line, else of the newest that nobody could answer."""
        dead = [number for number, line in self._lines.items() if line.note.startswith("✗")]
        number = self._chosen if self._chosen is not None else max(dead, default=None)
        if number not in dead:
            self.notify("Only what failed can be tried again.")
            return
        try:
            await self._conversation.retry(number)
        except PostroomError as error:
            self.notify(str(error), severity="error")
        self.news.set()

    def action_earlier(self) -> None:
        lines = self.query_one("#lines", VerticalScroll)
        if lines.scroll_y > 0 or not self._entries:
            lines.scroll_page_up(animate=False)
        elif not self._is_loading:
            self._is_loading = True
            self._load_earlier(min(self._entries))

    @work(group="earlier")
    async def _load_earlier(self, before: int) -> None:
        try:
            entries = await self._conversation.read(before)
            async with self._adding:
                await self._show(entries)
        except PostroomError as error:
            self.notify(str(error), severity="error")
        finally:
            self._is_loading = False
