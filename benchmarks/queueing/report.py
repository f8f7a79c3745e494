"""What was found: as a table on the terminal, as JSON, and as a page of Markdown."""

import os
import platform
import sqlite3
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw
import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.queueing import disk
from benchmarks.queueing.measure import Effort, Figure, Outcome, Ratio


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """Under what it was measured. Nothing here names a machine or a path."""

    date: str
    system: str
    cpus: int
    file_system: str
    sync_ms: float
    load: float
    python: str
    postroom: str
    sqlite: str
    sqlite_of_peers: str
    huey: str
    persist_queue: str
    effort: Effort


def conditions(effort: Effort, folder: Path) -> Conditions:
    return Conditions(
        date=datetime.now(UTC).date().isoformat(),
        system=platform.system(),
        cpus=os.cpu_count() or 1,
        file_system=disk.file_system(folder),
        sync_ms=round(disk.sync_time(folder), 3),
        load=round(os.getloadavg()[0], 1),
        python=platform.python_version(),
        postroom=version("postroom"),
        sqlite=apsw.sqlite_lib_version(),
        sqlite_of_peers=sqlite3.sqlite_version,
        huey=version("huey"),
        persist_queue=version("persist-queue"),
        effort=effort,
    )


def amount(figure: Figure) -> str:
    return f"{figure.value:,.2f} ms" if figure.unit == "ms" else f"{figure.value:,.0f}/s"


def reached(ratio: Ratio) -> str:
    return f"{ratio.value:.2f}{ratio.unit}"


def wanted(ratio: Ratio) -> str:
    sign = "≥" if ratio.better == "higher" else "≤"
    return f"{sign} {ratio.target:g}{ratio.unit}"


def _cases(outcome: Outcome) -> list[str]:
    return list(dict.fromkeys(figure.case for figure in outcome.figures))


def show(outcome: Outcome) -> None:
    table = Table(title="Queue benchmark: medians of alternated rounds")
    for name in ("case", "who", "figure"):
        table.add_column(name, justify="right" if name == "figure" else "left")
    for name in ("ratio", "target", ""):
        table.add_column(name, justify="right" if name else "left")
    for case in _cases(outcome):
        shown = case
        for figure in (figure for figure in outcome.figures if figure.case == case):
            table.add_row(shown, figure.who, amount(figure))
            shown = ""
        for ratio in (ratio for ratio in outcome.ratios if ratio.case == case):
            verdict = "[green]met[/]" if ratio.passed else "[red]missed[/]"
            table.add_row("", f"  {ratio.what}", "", reached(ratio), wanted(ratio), verdict)
        table.add_section()
    Console(width=None if os.isatty(1) else 130).print(table)


def as_json(outcome: Outcome, under: Conditions) -> bytes:
    found: dict[str, Any] = {
        "conditions": under,
        "ratios": [{**msgspec.structs.asdict(ratio), "met": ratio.passed} for ratio in outcome.ratios],
        "figures": [_rounded(figure) for figure in outcome.figures],
    }
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _rounded(figure: Figure) -> dict[str, Any]:
    low, high = min(figure.rounds), max(figure.rounds)
    return {
        "case": figure.case,
        "who": figure.who,
        "unit": figure.unit,
        "value": round(figure.value, 4),
        "lowest": round(low, 4),
        "highest": round(high, 4),
        "measured": len(figure.rounds),
    }


HOW = """\
Everybody writes to the same real disk and answers a caller only after the sync. Rounds alternate. A figure
is the median of its rounds, a ratio the median of the rounds' ratios; trust the ratios, since the figures
depend on the disk. The message is about 200 bytes of JSON. Ours runs as it is opened by default: checks,
hash-chained ledger and housekeeping included.

- **huey** is called at its SQLite storage (`fsync=True`), below its task objects, from one thread per caller.
  It deletes a message when it is taken and knows no acknowledgement: its cycle is two commits, ours three.
- **persist-queue** is its `SQLiteAckQueue` (`multithreading=True`, automatic commit), one thread per caller.
- **bare apsw** writes the same rows into the same tables (messages, contents, ledger) with the same
  indexes, pragmas and durability, and nothing else. With many callers it commits in groups: the requests of
  one tick of the event loop go to a writer thread. It does not check, count, wake or chain: the 32 bytes of
  the ledger's hash are a constant, and every column that is the same in all messages stands in the statement
  as a literal. That makes the bar higher.

Run it with `scripts/bench queue`."""


def tables(outcome: Outcome) -> list[str]:
    lines = ["| case | compared | reached | target | |", "| --- | --- | ---: | ---: | --- |"]
    for ratio in outcome.ratios:
        verdict = "met" if ratio.passed else "**missed**"
        lines.append(f"| {ratio.case} | {ratio.what} | {reached(ratio)} | {wanted(ratio)} | {verdict} |")
    lines += ["", "| case | who | figure | lowest – highest |", "| --- | --- | ---: | ---: |"]
    for figure in outcome.figures:
        low = amount(msgspec.structs.replace(figure, value=min(figure.rounds)))
        high = amount(msgspec.structs.replace(figure, value=max(figure.rounds)))
        lines.append(f"| {figure.case} | {figure.who} | {amount(figure)} | {low} – {high} |")
    return lines


def as_markdown(outcome: Outcome, under: Conditions) -> str:
    lines = [
        "# Queue benchmark",
        "",
        f"Measured on {under.date}: {under.system}, {under.cpus} CPUs, {under.file_system} "
        f"(a plain write with its sync takes {under.sync_ms:.2f} ms), load {under.load} before the start, "
        f"Python {under.python}, SQLite {under.sqlite} (the peers: {under.sqlite_of_peers}), "
        f"huey {under.huey}, persist-queue {under.persist_queue}.",
        "",
    ]
    return "\n".join([*lines, *tables(outcome), "", HOW, ""])


def write(outcome: Outcome, under: Conditions, folder: Path) -> None:
    from benchmarks.queueing import plot

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "queue.json").write_bytes(as_json(outcome, under))
    plot.draw(outcome.ratios, under.date, folder / "queue.png")
