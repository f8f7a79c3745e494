"""A run costs what is new and comes out as if everything had been taken in at once, late events too."""

import threading
from pathlib import Path
from typing import Any

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.jobs.run import Summary
from postroom.pipeline.jobs.watch import watch
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import LEDGER, MESSAGE_LIFE
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.room import open_sync
from tests.spark.conftest import END, copy_of, fill
from tests.spark.test_bad_input import copied
from tests.spark.test_exactly_once import same


def happen(store: SqliteSource) -> None:
    """New mail, hand-offs in old conversations, and ends and returns of messages from days ago."""
    clock = ManualClock(END + 3600 * SECOND)
    with open_sync(f"sqlite:///{store.path}", clock=clock, housekeeping=False, actor="later") as room:
        old = room.messages(limit=1000).messages
        for letter in [each for each in old if each.state == "dead" and not each.archived][:3]:
            room.replay(letter.id)
        root = next(each for each in old if each.correlation_id and each.hop == 0)
        room.publish(
            "office/inbox/writer",
            {"text": "one more thing about the invoice"},
            type="office.note",
            correlation_id=root.correlation_id or root.id,
            causation_id=root.id,
            agent="writer",
        )
        for number in range(20):
            room.publish("shop/orders", {"order": number}, type="order")
        clock.advance(5)
        for message in room.claim("shop/orders", limit=15):
            clock.advance(1)
            room.complete(message)
        for message in room.claim("office/inbox/writer", limit=5):
            room.fail(message, "no ink", kind="crashed")


def test_late_events_and_new_mail_come_out_as_in_one_run(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    store, lake = copy_of(month, tmp_path), copied(filled, tmp_path / "lake")
    happen(store)
    before = {file.path for file in lake.files(MESSAGE_LIFE)}
    done = fill(spark, lake, store)
    assert 0 < done.events < 150
    fresh = Lake(str(tmp_path / "fresh"))
    fill(spark, fresh, store)
    same(lake, fresh)
    assert before & {file.path for file in lake.files(MESSAGE_LIFE)}, (
        "days without news are not written again"
    )


def test_a_watch_takes_in_what_comes_while_the_store_is_open(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    store, lake = copy_of(month, tmp_path), copied(filled, tmp_path / "lake")
    stop, taken = threading.Event(), threading.Event()
    seen: list[Summary] = []

    def done(summary: Summary) -> None:
        seen.append(summary)
        taken.set()

    watcher = threading.Thread(
        target=watch, args=(spark, lake, store, ManualClock(), stop), kwargs={"every_s": 0.1, "done": done}
    )
    with open_sync(f"sqlite:///{store.path}", clock=ManualClock(END), housekeeping=False) as room:
        watcher.start()
        room.publish("shop/orders", {"order": 1})
        assert taken.wait(240)
    stop.set()
    watcher.join(240)
    assert not watcher.is_alive()
    assert sum(each.events for each in seen) >= 1
    assert lake.positions(LEDGER).ledger == store.snapshot().head
