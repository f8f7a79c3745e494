"""The proof from a terminal: `python -m tests.faults.run --points 100000`, or `--kills 1000`.

With `--seed`, `--mode` and `--point` it shows one crash again.
"""

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.faults import kills
from tests.faults.campaign import Tally, campaign, try_seed
from tests.faults.modes import MODES


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.run", description=__doc__)
    parser.add_argument("--points", type=int, default=0, help="crash points to try, at least")
    parser.add_argument("--kills", type=int, default=0, help="processes to kill")
    parser.add_argument("--seed", type=int, help="the first seed; with --point, the only one")
    parser.add_argument("--point", type=int, help="try only this point of the seed")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this way of crashing")
    chosen = parser.parse_args(arguments)
    # Housekeepers warn about dead letters, of which these workloads have many.
    logging.disable(logging.CRITICAL)
    modes = tuple(chosen.mode or MODES)
    seed = chosen.seed or 0
    started = time.monotonic()
    failed = False
    if chosen.point is not None:
        tally = Tally()
        try_seed(seed, tally, modes, point=chosen.point)
        failed |= _report(tally)
    elif chosen.points or not chosen.kills:
        failed |= _report(campaign(chosen.points or 2000, modes, seed, _say))
    if chosen.kills:
        with tempfile.TemporaryDirectory() as folder:
            killed = kills.campaign(Path(folder), chosen.kills, seed, _say)
        print(killed)
        failed |= bool(killed.problems)
    print(f"in {time.monotonic() - started:.0f} s")
    return int(failed)


def _report(tally: Tally) -> bool:
    for broken in tally.broken:
        print(f"BROKEN {broken}")
    print(tally)
    return bool(tally.broken)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
