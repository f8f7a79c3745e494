"""The pipeline benchmark: from ledger events to gold, against simpler ways of exporting them.

`scripts/bench pipeline` measures two million events and takes some minutes; `--large` takes 0.5, 1, 2, 4
and 8 million one after the other. A long measurement can be done in parts: `--events N --append` adds a
size to what was found before, and `--store FILE` keeps the made-up store for the next time. `--scale N` goes
beyond what a store holds: the events are made by Spark while it reads; `--workers` then measures one and two
workers of a cluster too. `--watch N` measures how soon each of N messages is in the lake. Every figure is of
a warm JVM and of this machine: compare ratios, not seconds.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.lakes.cases import measure, say
from benchmarks.lakes.figures import Found, document, page, table, targets
from benchmarks.lakes.multiply import multiply
from benchmarks.queueing.disk import file_system, real_disk
from postroom.pipeline.generator.month import MonthPlan, generate

RESULTS = Path(__file__).parent / "results"
WATCHED = "pipeline-watch.json"
NORMAL = 2_000_000
SIZES = (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
END = 1_794_700_800 * 10**6


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench pipeline", description=__doc__)
    parser.add_argument("--events", type=int, help=f"how many ledger events ({NORMAL:,})")
    parser.add_argument("--large", action="store_true", help="0.5 to 8 million: growth, memory, questions")
    parser.add_argument("--append", action="store_true", help="keep what was found for other sizes")
    parser.add_argument("--store", type=Path, help="a made-up store to use, or to make and keep")
    parser.add_argument("--scale", type=int, nargs="+", metavar="N", help="so many events, made while read")
    parser.add_argument("--workers", type=int, metavar="N", help="so many events on one and on two workers")
    parser.add_argument("--watch", type=int, metavar="N", help="how soon N messages arrive, one at a time")
    parser.add_argument("--gate", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--folder", type=Path, help="where to work; must be a real disk")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables as a page")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where pipeline.json and its plot go")
    return parser.parse_args()


def make_store(path: Path, folder: Path, events: int) -> None:
    """A busy fortnight, again and again until there are events enough. A store with some gets the rest."""
    base = path.with_suffix(".base.db") if path.parent != folder else folder / "base.db"
    if not base.exists():
        say("making a busy fortnight")
        generate(base, MonthPlan(end=END, days=14, per_day=1600, seed=1))
    multiply(base, path, events, lambda made: say(f"{made:,} of {events:,} events in the store"))


def scale_up(chosen: argparse.Namespace, folder: Path, date: str, where: Path) -> None:
    """Written after every size, so that what was found stays when a larger one is broken off."""
    from benchmarks.lakes.scale import ROOT, Scaled, measure_scale, measure_workers
    from benchmarks.lakes.scale_page import scale_page

    # The workers of Spark must know how the events are made.
    os.environ["PYTHONPATH"] = str(ROOT)
    base, written = folder / "base.db", chosen.results / "pipeline-scale.json"
    say("making a busy fortnight")
    generate(base, MonthPlan(end=END, days=14, per_day=1600, seed=1))
    found: list[Scaled] = []
    if chosen.append and written.exists():
        found = msgspec.convert(json.loads(written.read_text("utf-8"))["runs"], list[Scaled])
    tries = [(events, 0) for events in chosen.scale or ()]
    tries += [(chosen.workers, count) for count in (1, 2)] if chosen.workers else []
    for events, workers in tries:
        if workers:
            new = measure_workers(base, events, folder, date, workers)
        else:
            new = measure_scale(base, events, folder, date)
        found = [each for each in found if (each.events, each.workers) != (events, workers)] + [new]
        found.sort(key=lambda each: (each.workers, each.events))
        told = {"conditions": _conditions(date, where), "runs": msgspec.to_builtins(found)}
        written.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
        say(f"{events:,} events: {new.whole_s:.0f} s, {new.megabytes:,.0f} MB")
        if chosen.markdown:
            chosen.markdown.write_text(scale_page(found, told["conditions"]), "utf-8")


def stay_warm(chosen: argparse.Namespace, folder: Path, date: str, where: Path) -> int:
    from benchmarks.lakes.watching import measure_watch

    store = folder / "store.db"
    say("making a busy fortnight")
    generate(store, MonthPlan(end=END, days=14, per_day=1600, seed=1))
    found = measure_watch(store, chosen.watch, folder, date)
    (chosen.results / WATCHED).write_text(json.dumps(msgspec.to_builtins(found), indent=1) + "\n", "utf-8")
    print(found)
    if chosen.markdown:
        write_page(chosen, json.loads((chosen.results / "pipeline.json").read_text("utf-8"))["conditions"])
    return 1 if chosen.gate and not found.met else 0


def write_page(chosen: argparse.Namespace, conditions: dict[str, Any]) -> None:
    """All that was found so far: at every size, and while staying warm."""
    from benchmarks.lakes.watching import WatchFigures, tell_watch

    known = json.loads((chosen.results / "pipeline.json").read_text("utf-8"))["sizes"]
    text, watched = page(msgspec.convert(known, list[Found]), conditions), chosen.results / WATCHED
    if watched.exists():
        told = tell_watch(msgspec.json.decode(watched.read_bytes(), type=WatchFigures))
        text = "\n".join([text, *told, ""])
    chosen.markdown.write_text(text, "utf-8")


def main() -> int:
    chosen = arguments()
    sizes = SIZES if chosen.large else (chosen.events or NORMAL,)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    where = chosen.folder or real_disk()
    folder = Path(tempfile.mkdtemp(prefix="postroom-lakes-", dir=where))
    written = chosen.results / "pipeline.json"
    found: dict[int, Found] = {}
    if chosen.append and written.exists():
        known = msgspec.convert(json.loads(written.read_text("utf-8"))["sizes"], list[Found])
        found = {each.events: each for each in known}
    try:
        if chosen.scale or chosen.workers:
            scale_up(chosen, folder, date, where)
            return 0
        if chosen.watch:
            return stay_warm(chosen, folder, date, where)
        store = chosen.store or folder / "store.db"
        make_store(store, folder, max(sizes) + max(sizes) // 100)
        for events in sizes:
            say(f"{events:,} events")
            found[events] = measure(
                store, events, folder, exporters=not chosen.large or events == NORMAL, date=date
            )
            _keep(found, _conditions(date, where), chosen.results)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ordered = [found[events] for events in sorted(found)]
    print("\n".join(table(ordered)))
    if chosen.markdown:
        write_page(chosen, _conditions(date, where))
    return 1 if chosen.gate and not all(each.met for each in targets(ordered)) else 0


def _conditions(date: str, where: Path) -> dict[str, Any]:
    return {
        "date": date,
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "file_system": file_system(where),
        "load": round(os.getloadavg()[2], 1),
        "python": platform.python_version(),
    }


def _keep(found: dict[int, Found], conditions: dict[str, Any], results: Path) -> None:
    """After every size, so that a measurement that is broken off is not lost."""
    from benchmarks.lakes.plot import draw

    ordered = [found[events] for events in sorted(found)]
    results.mkdir(exist_ok=True)
    text = json.dumps(document(ordered, conditions), indent=1)
    (results / "pipeline.json").write_text(text + "\n", "utf-8")
    draw(ordered, conditions["date"], results / "pipeline.png")


if __name__ == "__main__":
    raise SystemExit(main())
