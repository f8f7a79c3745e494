"""What the demo shows while it plays: a line for each thing that happens, and who is at work."""

from contextlib import suppress
from types import TracebackType
from typing import Any

from rich.live import Live
from rich.table import Table
from rich.text import Text

from postroom.clock import SECOND
from postroom.errors import NotFound
from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.kernel.states import Change
from postroom.office.traces import own_words
from postroom.runtime import Room
from postroom.terminal.cli.output import Output, clean, span

COLOURS = ("cyan", "green", "magenta", "yellow", "blue")
TEXT_CHARS = 90


class Stage:
    def __init__(self, room: Room, out: Output, agents: tuple[str, ...]) -> None:
        self._room = room
        self._out = out
        self._console = out.console()
        self._colours = dict(zip(agents, COLOURS, strict=False))
        self._doing = dict.fromkeys(agents, "")
        self._began: int | None = None
        self._tools: set[int] = set()
        lively = self._console.is_terminal and not out.as_json
        self._live = Live(self._board(), console=self._console, transient=True) if lively else None

    def __enter__(self) -> "Stage":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    async def show(self, event: Event) -> None:
        self._began = self._began or event.time
        if not self._out.as_json:
            with suppress(NotFound):
                await self._tell(event)

    async def _tell(self, event: Event) -> None:
        if event.type.startswith("record.turn"):
            await self._turn(event)
        elif event.type == Change.PUBLISHED and event.scope == "office" and "parent" not in event.details:
            self._published(event, await self._room.get(event.message_id or ""))
        elif event.type in (Change.FAILED, Change.DEAD_LETTERED):
            self._failed(event, await self._room.get(event.message_id or ""))

    async def _turn(self, event: Event) -> None:
        record = await self._room.latest_record(event.type.removeprefix("record."), event.details["key"])
        if record is None:
            return
        agent, kind = record.data["agent"], event.type.removeprefix("record.turn")
        if kind == ".tool":
            # An event names its turn, not its record: the newest may be shown already.
            if record.id in self._tools:
                return
            self._tools.add(record.id)
        if kind == ".started":
            self._doing[agent] = "is thinking"
        elif kind == ".tool" and record.data["state"] == "finished":
            self._line(event, self._who(agent), f" uses {record.data['tool']}", style="dim")
        elif kind == ".progress":
            self._doing[agent] = f"writes: {short(record.data['text'])}"
        elif not kind:
            self._doing[agent] = ""
        if self._live is not None:
            self._live.update(self._board())

    def _published(self, event: Event, message: Message) -> None:
        body: dict[str, Any] = message.body if isinstance(message.body, dict) else {}
        said = str(body.get("text", ""))
        if message.queue.startswith("outbox/"):
            self._line(event, self._who(message.agent), f" → {message.sender}: {short(said)}", style="bold")
        elif message.queue.startswith("room/"):
            team = message.queue.removeprefix("room/")
            self._line(
                event, self._who(message.from_agent), f" in #{team}: {short(str(body.get('post', '')))}"
            )
        elif message.from_agent:
            own = short(own_words(message))
            self._line(event, self._who(message.from_agent), " → ", self._who(message.agent), f": {own}")
        else:
            self._line(event, Text(message.sender or ""), " → ", self._who(message.agent), f": {short(said)}")

    def _failed(self, event: Event, message: Message) -> None:
        if message.subscription is not None:
            return  # a post that rode along
        told = event.details
        reason = str(told.get("reason") or "").rstrip(".")
        if event.type == Change.DEAD_LETTERED:
            self._line(event, self._who(message.agent), f" gives up, a dead letter: {reason}", style="red")
            return
        later = max(0, (told.get("visible_at") or event.time) - event.time) / SECOND
        text = f" failed: {reason}. Tried again in {span(later)}."
        self._line(event, self._who(message.agent), text, style="yellow")

    def _who(self, agent: str | None) -> Text:
        return Text(f"@{agent}", style=self._colours.get(agent or "", ""))

    def _line(self, event: Event, *parts: str | Text, style: str = "") -> None:
        line = Text().append(f"{(event.time - (self._began or event.time)) / SECOND:6.2f} s  ", style="dim")
        for part in parts:
            line.append_text(part if isinstance(part, Text) else Text(clean(part), style=style))
        self._console.print(line, soft_wrap=True, highlight=False)

    def _board(self) -> Table:
        board = Table.grid(padding=(0, 1))
        for agent, doing in self._doing.items():
            board.add_row(" ", self._who(agent), Text(clean(doing) or "waits", style="" if doing else "dim"))
        return board


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"
