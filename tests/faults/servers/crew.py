"""One process that publishes and some that work, on a server that something is done to; and the judge, who
knows what was accepted, and in the end compares it with what was done."""

import contextlib
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import postroom
from postroom import SyncRoom
from tests.conformance.promises import check_promises
from tests.stores.servers.conftest import until

WORKERS = 3
HERE: tuple[Sequence[str], ...] = ((),)


@dataclass
class Crew:
    room: SyncRoom
    """The judge's."""
    publisher: "subprocess.Popen[str]"
    workers: "list[subprocess.Popen[str]]"
    start_worker: Callable[[], "subprocess.Popen[str]"]
    published: list[int]
    stop: Path

    def go_on(self, more: int = 10) -> None:
        """Until some more are done: what was broken works again."""
        so_far = self.room.counts("jobs").completed
        until(lambda: self.room.counts("jobs").completed >= so_far + more, within=300)

    def check(self) -> str:
        """Each message was accepted once, done once, and the ledger and the store tell the same."""
        self.go_on()
        self.stop.touch()
        self.publisher.wait(300)
        room = self.room
        until(lambda: room.counts("jobs").pending == 0 and not room.counts("jobs").claimed, within=300)
        until(lambda: self.published[-1] == len(self.published) - 1)
        count = len(self.published)
        events = list(room.events())
        messages = [message for page in list_pages(room) for message in page]
        assert sorted(message.body for message in messages) == list(range(count))
        completed = [event.message_id or "" for event in events if event.type == "message.completed"]
        assert sorted(completed) == sorted(message.id for message in messages)
        check_promises(room)
        return f"{count} messages, {len(events)} events, none lost"


def list_pages(room: SyncRoom, queue: str = "jobs") -> Iterator[list[postroom.Message]]:
    cursor = None
    while True:
        page = room.messages(queue=queue, limit=1000, cursor=cursor)
        yield page.messages
        cursor = page.next_cursor
        if cursor is None:
            return


@contextlib.contextmanager
def at_work(
    folder: Path, judge_url: str, url: str, redis_url: str = "", within: Sequence[Sequence[str]] = HERE
) -> Iterator[Crew]:
    """Clocks of two workers are ten minutes off, one each way. `within`: what each is started by, in turn."""
    with contextlib.ExitStack() as stack:
        room = stack.enter_context(postroom.open_sync(judge_url, actor="judge"))
        room.create_queue("jobs", max_retries=50)
        clocks, places = itertools.cycle((0, 600, -600)), itertools.cycle(within)

        def start(role: str, *words: str) -> "subprocess.Popen[str]":
            command = [*next(places), sys.executable, "-m", "tests.faults.servers.load", url, redis_url]
            ahead = str(next(clocks)) if role == "worker" else "0"
            with (folder / f"{role}.err").open("ab") as errors:
                process = subprocess.Popen(
                    [*command, ahead, role, *words], stdout=subprocess.PIPE, stderr=errors, text=True
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout is not None
            stack.callback(process.stdout.close)
            return process

        stop, published = folder / "stop", list[int]()
        publisher = start("publisher", str(stop))
        workers = [start("worker") for _ in range(WORKERS)]
        hearing = threading.Thread(target=hear, args=(publisher, published))
        hearing.start()
        try:
            yield Crew(room, publisher, workers, lambda: start("worker"), published, stop)
        finally:
            publisher.kill()
            hearing.join()


def hear(publisher: "subprocess.Popen[str]", published: list[int]) -> None:
    assert publisher.stdout is not None
    for line in publisher.stdout:
        if line.strip().isdigit():
            published.append(int(line))
