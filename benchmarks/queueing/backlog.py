"""The case about size: claiming one message must not take longer because a million others lie in the file."""

import random
import time
from pathlib import Path

import postroom
from benchmarks.queueing import measure
from benchmarks.queueing.bare import connect
from benchmarks.queueing.letter import BODY, QUEUE, encode, room_options
from benchmarks.queueing.measure import Effort, Outcome, Ratio
from benchmarks.queueing.pattern import Pattern

MOST = 1.5
AT_ONCE = 50_000

# ?1 the first number, ?2 how many, ?3 the time, ?4 the body
NUMBERS = "WITH RECURSIVE n (seq) AS (SELECT ?1 UNION ALL SELECT seq + 1 FROM n WHERE seq < ?1 + ?2 - 1)"
COMPLETED = "UPDATE messages SET state = 'completed', finished_at = updated_at, attempts = 1, claims = 1"
COUNTED = """
INSERT INTO figures SELECT queue_id, 0, state, count(*), NULL, NULL, NULL
FROM messages WHERE true GROUP BY queue_id, state
ON CONFLICT DO UPDATE SET n = excluded.n
"""
NUMBERED = "UPDATE figures SET message_seq = (SELECT max(seq) FROM messages) WHERE name = 'head'"


def _selected(insert: str) -> str:
    """The statement that inserts one row, made to insert a row for each number."""
    head, _, values = insert.partition(" VALUES (")
    values = values.removesuffix(")").replace("?1", "seq").replace("?2", "printf('%036d', seq)")
    return f"{head} {NUMBERS} SELECT {values} FROM n"


def fill(path: Path, pattern: Pattern, size: int, *, completed: bool) -> None:
    """Lay a million messages into a closed file, without their ledger events, which a claim never reads."""
    pattern.copy_to(path)
    db = connect(path, "relaxed")
    try:
        now, first = time.time_ns() // 1000, pattern.messages + 1
        while size > 0:
            some = min(size, AT_ONCE)
            with db:
                db.execute(_selected(pattern.insert_message), (first, some, now))
                db.execute(_selected(pattern.insert_content), (first, some, now, encode(BODY)))
            first, size = first + some, size - some
        with db:
            if completed:
                db.execute(COMPLETED)
            db.execute(COUNTED)
            db.execute(NUMBERED)
        db.pragma("wal_checkpoint(truncate)")
    finally:
        db.close()


def claims(effort: Effort, pattern: Pattern, folder: Path) -> Outcome:
    case, size = "claim of one message", f"{effort.backlog:,}"
    empty, pending, completed = "empty queue", f"{size} pending", f"{size} completed"
    files = {who: folder / f"{number}.db" for number, who in enumerate((empty, pending, completed))}
    pattern.copy_to(files[empty])
    fill(files[pending], pattern, effort.backlog, completed=False)
    fill(files[completed], pattern, effort.backlog, completed=True)

    times: dict[str, list[float]] = {who: [] for who in files}
    rooms = {who: postroom.open_sync(str(file), **room_options()) for who, file in files.items()}
    opened = {who: room.__enter__() for who, room in rooms.items()}
    try:
        order, shuffle = list(opened), random.Random(0).shuffle
        for _ in range(effort.claims):
            shuffle(order)
            for who in order:
                times[who].append(_claim_time(opened[who]))
    finally:
        for room in rooms.values():
            room.__exit__(None, None, None)
        for file in files.values():
            file.unlink()
    found = {who: measure.figure(case, who, "ms", values) for who, values in times.items()}
    ratios = [
        Ratio(
            case=case,
            what=f"{who}, against an empty queue",
            value=measure.paired(found[who], found[empty]),
            target=MOST,
            better="lower",
        )
        for who in (pending, completed)
    ]
    return Outcome(list(found.values()), ratios)


def _claim_time(room: postroom.SyncRoom) -> float:
    """Milliseconds for a claim with its commit; one goes in and one out, so that the size stays."""
    room.publish(QUEUE, BODY)
    started = time.perf_counter()
    [job] = room.claim(QUEUE, limit=1)
    spent = time.perf_counter() - started
    room.complete(job)
    return spent * 1000
