"""The page about the HTTP benchmark, made from what was measured."""

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "http-benchmark.md"


def _row(*cells: object) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _met(fine: bool) -> str:
    return "met" if fine else "**missed**"


def _calls(calling: dict[str, Any] | None) -> list[str]:
    """Rows of the work queue, if it was measured beside another commit."""
    if calling is None:
        return []
    return [
        _row(
            f"`/v1` {way}, beside commit {calling['against']}",
            f"{calling[way]['ratio']:.2f}×; {calling[way]['cpu ratio']:.2f}× by processor time",
            "≥ 1.7×",
            _met(calling[way]["ratio"] >= 1.7),
        )
        for way in ("publish", "claim", "complete")
    ]


def page(found: dict[str, Any]) -> str:
    accepting, listening, resting = found["accepting"], found["listening"], found["resting"]
    ours, empty = accepting["POST /api/message"], accepting["empty handler"]
    alone, beside = listening["POST alone"], listening["POST beside"]
    times = beside["p50 ms"] / alone["p50 ms"]
    whole = listening["without a gap and in order"]
    where, crowd = found["where"], listening["listeners"]
    lines = [
        "# HTTP benchmark",
        "",
        "Made by `scripts/bench http`, which writes this page. Client and server share the machine.",
        "The empty handler goes through the web framework; a message that is in order does not",
        "(`api/office/fast_messages.py`), which is how it can be the quicker of the two.",
        "",
        f"Measured on {where['date']}: {where['machine']}, load {where['load']} before the start.",
        "",
        "| case | reached | target | |",
        "| --- | ---: | ---: | --- |",
        _row(
            "`POST /api/message`, 64 connections, durable before the answer",
            f"{accepting['share']:.0%} of an empty handler",
            "≥ 50 %",
            _met(accepting["share"] >= 0.5),
        ),
        _row("the same, p99", f"{ours['p99 ms']} ms", "< 50 ms", _met(ours["p99 ms"] < 50)),
        _row(
            f"{crowd} listeners, {listening['events a second to each']:g} events a second each",
            "no gap, in order" if whole else "gaps",
            "no gap",
            _met(whole),
        ),
        _row("a POST beside them, p50", f"{times:.2f}× of alone", "≤ 2×", _met(times <= 2)),
        _row(
            "start to ready, slowest of three",
            f"{resting['start to ready s']} s",
            "< 3 s",
            _met(resting["start to ready s"] < 3),
        ),
        _row(
            "idle server",
            f"{resting['share of a core']:.2%} of a core",
            "< 1 %",
            _met(resting["share of a core"] < 0.01),
        ),
        _row(
            "idle server, resident",
            f"{resting['resident MB']:g} MB",
            "< 200 MB",
            _met(resting["resident MB"] < 200),
        ),
        *_calls(found.get("calling")),
        "",
        "| | a second | p50 ms | p99 ms |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, case in (
        ("`POST /api/message`, 64 connections", ours),
        ("empty handler in the same application", empty),
        ("POST alone, 100 a second", alone),
        (f"POST beside {crowd} listeners", beside),
    ):
        lines.append(_row(name, f"{case['a second']:,}", case["p50 ms"], case["p99 ms"]))
    return "\n".join([*lines, ""])


def write(found: dict[str, Any]) -> None:
    PAGE.write_text(page(found))
