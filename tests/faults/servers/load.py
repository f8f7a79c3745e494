"""A process of the load: `publisher FILE`, until there is the file, or `worker`. Its clock may be wrong.

It knows what any program knows: what could not be told is tried again, with the same key.
"""

import itertools
import sys
import time
from pathlib import Path

import postroom
from postroom.errors import ClaimLost, PostroomError

LEASE_S = 3.0
PACE_S = 0.01


def publish(room: postroom.SyncRoom, stop: Path) -> None:
    for number in itertools.takewhile(lambda _: not stop.exists(), itertools.count()):
        while True:
            try:
                room.publish("jobs", number, key=str(number))
                break
            except PostroomError:
                time.sleep(0.05)
        print(number, flush=True)
        time.sleep(PACE_S)


def work(room: postroom.SyncRoom) -> None:
    while True:
        try:
            for message in room.claim("jobs", limit=5, wait=1, lease=LEASE_S):
                try:
                    room.complete(message, {"by": room.actor})
                except ClaimLost:
                    continue
        except PostroomError:
            time.sleep(0.05)


def main(url: str, redis: str, ahead_s: str, role: str, *rest: str) -> None:
    if ahead := float(ahead_s):
        true_time, true_time_ns = time.time, time.time_ns
        time.time = lambda: true_time() + ahead
        time.time_ns = lambda: true_time_ns() + int(ahead * 1e9)
    while True:
        try:
            with postroom.open_sync(url, actor=role, redis=redis or None) as room:
                print("ready", flush=True)
                publish(room, Path(rest[0])) if role == "publisher" else work(room)
                return
        except PostroomError as error:
            print(f"again: {error}", file=sys.stderr, flush=True)
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
