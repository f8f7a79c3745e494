"""Publishes into a queue with rules until it is killed; says each id whose publish has returned."""

import sys

import postroom


def main(store: str) -> None:
    with postroom.open_sync(f"sqlite:///{store}", housekeeping=False) as room:
        for n in range(100_000):
            kind = "route" if n % 2 else "divide"
            print(room.publish("orders", n, labels={"do": kind}, key=f"k{n}").id, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
