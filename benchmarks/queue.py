"""The queue benchmark: ours against huey, persist-queue and bare apsw loops, on a real disk with real syncs.

`scripts/bench queue` takes about three minutes; `--quick` only shows that everything runs. With `--against`
this version is measured against that of another commit instead.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.queueing import alone, backlog, cases, report, versions, wake
from benchmarks.queueing.disk import real_disk
from benchmarks.queueing.measure import FULL, QUICK, Effort, Outcome
from benchmarks.queueing.pattern import Pattern, learn

Case = Callable[[Effort, Pattern, Path], Outcome]

CASES: dict[str, Case] = {
    "publish": cases.many_publish,
    "cycle": cases.many_cycles,
    "alone": alone.one_publisher,
    "batch": cases.batch_publish,
    "backlog": backlog.claims,
    "wake": wake.wake_up,
}
RESULTS = Path(__file__).parent / "results"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench queue", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds; the figures mean nothing")
    parser.add_argument("--gate", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--against", metavar="COMMIT", help="measure this version against another one")
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--folder", type=Path, help="where to write while measuring; must be a real disk")
    parser.add_argument("--results", type=Path, help="where queue.json and queue.png go")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables as a page")
    return parser.parse_args()


def _compare_with_others(effort: Effort, names: Iterable[str], folder: Path) -> Outcome:
    outcome, pattern = Outcome(), learn(folder)
    for name in names:
        print(f"… {name}", file=sys.stderr, flush=True)
        place = folder / name
        place.mkdir()
        outcome.add(CASES[name](effort, pattern, place))
    return outcome


def main() -> int:
    chosen = arguments()
    effort = QUICK if chosen.quick else FULL
    folder = Path(tempfile.mkdtemp(prefix="postroom-bench-", dir=chosen.folder or real_disk()))
    outcome = Outcome()
    try:
        under = report.conditions(effort, folder)
        if chosen.against:
            outcome.add(versions.compare(chosen.against, effort, folder))
        else:
            outcome.add(_compare_with_others(effort, chosen.only or CASES, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.show(outcome)
    # A quick or partial run must not replace the figures of a whole one.
    results = chosen.results or (None if chosen.quick or chosen.only or chosen.against else RESULTS)
    if results is not None:
        report.write(outcome, under, results)
    if chosen.markdown is not None:
        chosen.markdown.parent.mkdir(parents=True, exist_ok=True)
        chosen.markdown.write_text(report.as_markdown(outcome, under), "utf-8")
    missed = [ratio for ratio in outcome.ratios if not ratio.passed]
    return 1 if chosen.gate and missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
