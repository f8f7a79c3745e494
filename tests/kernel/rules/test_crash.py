"""A publisher that is killed leaves every message with what its rule does, or not at all."""

import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from tests.conformance.promises import check_promises

import postroom
from postroom import SyncRoom
from postroom.kernel import service_commands
from postroom.kernel.rules import parsing, rule

PUBLISHER = Path(__file__).with_name("publisher.py")


def add_rule(room: SyncRoom, **document: Any) -> None:
    queues = {queue.slug: queue.id for queue in room.queues("default")}
    rule_id = str(uuid.uuid4())
    made = parsing.drafted(document, lambda name, _: queues[name], rule_id=rule_id, now=1)
    key = f"{room.scope('default').id}/{rule_id}"
    room.run(service_commands.PutServiceDocument(kind=rule.KIND, key=key, data=rule.written(made)))


def test_a_killed_publisher_leaves_all_of_a_rule_or_nothing(tmp_path: Path) -> None:
    store = tmp_path / "room.db"
    with postroom.open_sync(f"sqlite:///{store}", housekeeping=False) as room:
        for name in ("orders", "bulk", "left", "right"):
            room.create_queue(name)
        divide = {"type": "fan_out", "target_queue_ids": ["left", "right"]}
        only = 'labels.do == "divide"'
        add_rule(room, name="a", priority=1, source_queue_id="orders", expression=only, action=divide)
        add_rule(
            room, name="b", source_queue_id="orders", action={"type": "route", "target_queue_id": "bulk"}
        )
    with subprocess.Popen(
        [sys.executable, str(PUBLISHER), str(store)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(40)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read().split()
    with postroom.open_sync(f"sqlite:///{store}", housekeeping=False) as room:
        check_promises(room)
        assert room.counts("orders").open == 0, "nothing is left where a rule has not met it"
        routed, divided = room.counts("bulk").pending, room.counts("orders").completed
        assert room.counts("left").pending == room.counts("right").pending == divided
        whole = [line for line in said if len(line) == 36]
        assert len(whole) <= routed + divided <= len(whole) + 2, "what was answered is there"
        assert {room.get(message_id).queue for message_id in whole} == {"bulk", "orders"}
