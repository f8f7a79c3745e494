"""`postroom demo queue`: the whole life of five messages, in a room of its own that is gone afterwards."""

import sys
import time

from postroom.kernel.model import Message
from postroom.runtime import SyncRoom
from postroom.services.message_events import events_of
from postroom.terminal.cli.events import what
from postroom.terminal.cli.output import span
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.verify import verify

QUEUE = "letters"
LETTERS: list[tuple[dict[str, str], str, str]] = [
    ({"to": "Ada", "text": "Welcome!"}, "normal", "welcome-ada"),
    ({"to": "Ben", "text": "Your invoice"}, "high", "invoice-17"),
    ({"to": "Cleo", "text": "The server room is hot"}, "critical", "alarm-3"),
    ({"to": "Dora", "text": "Our newsletter"}, "background", "news-dora"),
    ({"to": "Nobody", "text": "Hello?"}, "low", "hello-1"),
]
NEXT = [
    ("postroom queue create jobs --ordering priority", "a queue of your own, in ~/.postroom"),
    ("""postroom publish jobs '{"hello": "world"}'""", "a message that survives a power cut"),
    ("postroom claim jobs", "take it, then complete it with the line that claim shows"),
    ("postroom show ID", "why a message is where it is"),
    ("postroom ledger tail", "everything that happened"),
    ("postroom --help", "all commands"),
]
STEP_S = 0.04


class Printer:
    """The handler of the demo's workers. It runs out of paper once, and knows no Nobody."""

    def __init__(self) -> None:
        self.paper = False
        self.addresses = {"Ada", "Ben", "Cleo", "Dora"}

    def deliver(self, letter: Message) -> dict[str, str]:
        to = letter.body["to"]
        if to == "Ben" and not self.paper:
            self.paper = True
            raise OSError("the printer is out of paper")
        if to not in self.addresses:
            raise LookupError(f"{to} has no address")
        return {"delivered to": to}


class Play:
    def __init__(self, room: SyncRoom, at: CommandContext) -> None:
        self._room = room
        self._at = at
        self._out = at.out
        self._quiet = at.out.as_json
        self._printer = Printer()
        self._pause = STEP_S if sys.stdout.isatty() else 0.0

    def run(self) -> None:
        self._say(f"Postroom works in a room of its own for this demo: {self._at.url}")
        self._queue()
        invoice = self._publish()
        self._work()
        self._dead_letters()
        self._ledger(invoice)
        self._title("What to try next")
        width = max(len(line) for line, _ in NEXT)
        for line, about in NEXT:
            self._say(f"{line:<{width}}  {about}")
        if self._quiet:
            counts = self._room.counts(QUEUE)
            self._out.line({"queue": f"default/{QUEUE}", "completed": counts.completed, "dead": counts.dead})

    def _title(self, text: str) -> None:
        if self._quiet:
            return
        self._out.say("")
        self._out.say(text, style="bold")

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        self._out.say(f"  {text}")
        sys.stdout.flush()
        time.sleep(self._pause)

    def _queue(self) -> None:
        self._title("1. A queue")
        queue = self._room.create_queue(
            QUEUE, ordering="priority", max_retries=3, backoff_base_s=0.2, backoff_cap_s=0.2
        )
        self._say(f"{queue.path} is open: the most urgent letter first, three attempts for each.")

    def _publish(self) -> str:
        self._title("2. Five letters, in the order they were written")
        room, ids = self._room, {}
        for body, priority, key in LETTERS:
            receipt = room.publish(QUEUE, body, type="letter", priority=priority, key=key)
            ids[key] = receipt.id
            self._say(f"published  {priority:<10}  to {body['to']}: {body['text']}  (key {key})")
        body, priority, key = LETTERS[1]
        again = room.publish(QUEUE, body, type="letter", priority=priority, key=key)
        same = "the same message, no second one" if again.id == ids[key] else "a second message"
        self._say(f"published {key} once more, as after a lost answer: {same}.")
        return ids[key]

    def _work(self) -> None:
        self._title("3. Two workers, Anna and Ralf, claim them by urgency")
        room, workers, turn = self._room, ("Anna", "Ralf"), 0
        while room.counts(QUEUE).open:
            worker = workers[turn % 2]
            for letter in room.claim(QUEUE, worker=worker, wait=1):
                self._handle(worker, letter)
                turn += 1

    def _handle(self, worker: str, letter: Message) -> None:
        name = f"{worker} claims the letter to {letter.body['to']}"
        if letter.attempts > 1:
            name += f", attempt {letter.attempts}"
        try:
            result = self._printer.deliver(letter)
        except LookupError as problem:
            self._room.fail(letter, str(problem), kind="address", retry=False)
            self._say(f"{name}: no use, {problem}. It becomes a dead letter.")
        except OSError as problem:
            self._room.fail(letter, str(problem), kind="printer")
            pause = span(self._wait(letter.id))
            self._say(f"{name}: failed, {problem}. Retry in {pause}.")
        else:
            self._room.complete(letter, result)
            self._say(f"{name}: delivered.")

    def _wait(self, message_id: str) -> float:
        after = self._room.get(message_id)
        return max(0, (after.visible_at or after.updated_at) - after.updated_at) / 1e6

    def _dead_letters(self) -> None:
        self._title("4. The dead letter comes back")
        room = self._room
        [dead] = room.messages(state="dead").messages
        self._say(f"the letter to {dead.body['to']} is dead: {dead.failure_reason}.")
        self._printer.addresses.add("Nobody")
        self._say("somebody finds the address and replays it.")
        room.replay(dead.id)
        for letter in room.claim(QUEUE, worker="Anna"):
            self._handle("Anna", letter)

    def _ledger(self, invoice: str) -> None:
        self._title("5. The ledger knows it all; this is the life of the invoice")
        room = self._room
        message = room.get(invoice)
        for event in room.look(lambda reader: events_of(reader, message)):
            self._say(f"event {event.seq:>2}  {what(event)}")
        with self._at.file() as file, file.look() as reader:
            verified = verify(reader)
        self._say(
            f"verified: {verified.events} events, each linked to the one before; "
            f"all {verified.messages} messages are as it says."
        )
        self._say(f"head {verified.head.seq} {verified.head.hash.hex()}")
