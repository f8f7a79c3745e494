"""What was found at each size, and how it stands to the targets."""

import math
from typing import Any

import msgspec


class Found(msgspec.Struct, kw_only=True):
    """One run of the benchmark at one size. Rates are events a second; what was not measured is None."""

    events: int
    date: str
    others: float
    """The share of the cores that other programs took meanwhile."""
    checked: float | None = None
    trusted: float | None = None
    exporter: float | None = None
    pandas: float | None = None
    start_s: float = 0.0
    whole_s: float
    cpu_s: float | None = None
    """Processor seconds of all processes of the whole run."""
    steps: dict[str, float]
    more_events: int = 0
    more_s: float | None = None
    more_cpu_s: float | None = None
    queries_ms: dict[str, float] = {}
    megabytes: float

    @property
    def bronze_s(self) -> float:
        return self.steps["bronze"]


class Target(msgspec.Struct, frozen=True):
    what: str
    events: int
    value: float
    least: float | None
    most: float | None
    unit: str

    @property
    def met(self) -> bool:
        return (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )

    @property
    def margin(self) -> float:
        """How many times better than its target."""
        if self.least is not None and self.most is None:
            return self.value / self.least
        return (self.most or 0.0) / self.value if self.value else math.inf

    @property
    def wanted(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"


def targets(sizes: list[Found]) -> list[Target]:
    told: list[Target] = []
    for found in sizes:
        add = lambda what, value, least, most, unit, n=found.events: told.append(  # noqa: E731 - short
            Target(what, n, value, least, most, unit)
        )
        if found.checked and found.trusted and found.exporter and found.pandas:
            add(
                "bronze, every hash checked, against one process",
                found.checked / found.exporter,
                1.0,
                None,
                "×",
            )
            add(
                "bronze, hashes on trust, against one process", found.trusted / found.exporter, 1.0, None, "×"
            )
            add("bronze against pandas to createDataFrame", found.checked / found.pandas, 5.0, None, "×")
        if found.checked:
            add("whole run against its bronze", found.whole_s / found.bronze_s, None, 3.0, "×")
            if found.more_s is not None:
                add(
                    "run after 1 % more, share of the whole",
                    100 * found.more_s / found.whole_s,
                    None,
                    5.0,
                    "%",
                )
        if found is sizes[-1]:
            # Asked for at eight million; with less than that they say only as much as they can.
            add("slowest question of the portal", max(found.queries_ms.values()), None, 300.0, "ms")
            add("most memory of all processes", found.megabytes, None, 3000.0, "MB")
    if len(sizes) > 1:
        told.append(Target("growth of cost with events", sizes[-1].events, growth(sizes), 0.8, 1.2, "power"))
    return told


def growth(sizes: list[Found]) -> float:
    """The power of the number of events with which the seconds grow: 1 is linear."""
    xs = [math.log(found.events) for found in sizes]
    ys = [math.log(found.whole_s) for found in sizes]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def table(sizes: list[Found]) -> list[str]:
    lines = ["| what | events | found | target | |", "| --- | --- | --- | --- | --- |"]
    for each in targets(sizes):
        verdict = "met" if each.met else "**missed**"
        found = f"{each.value:,.3g}" if each.value < 1000 else f"{each.value:,.0f}"
        lines.append(f"| {each.what} | {each.events:,} | {found} {each.unit} | {each.wanted} | {verdict} |")
    lines += ["", "| events | whole run | cpu | events/s | steps | 1 % more | cpu | memory | others |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for found in sizes:
        steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found.steps.items())
        times = [_seconds(each) for each in (found.whole_s, found.cpu_s, found.more_s, found.more_cpu_s)]
        lines.append(
            f"| {found.events:,} | {times[0]} | {times[1]} | {found.events / found.whole_s:,.0f} | {steps} "
            f"| {times[2]} | {times[3]} | {found.megabytes:,.0f} MB | {found.others:.0%} |"
        )
    if any(found.checked for found in sizes):
        lines += [
            "",
            "| events | bronze, checked | on trust | one process | pandas |",
            "| --- | --- | --- | --- | --- |",
        ]
    for found in sizes:
        rates = (found.checked, found.trusted, found.exporter, found.pandas)
        if all(rates):
            lines.append(
                f"| {found.events:,} | " + " | ".join(f"{rate:,.0f}/s" for rate in rates if rate) + " |"
            )
    return lines


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"


def document(sizes: list[Found], conditions: dict[str, Any]) -> dict[str, Any]:
    return {
        "conditions": conditions,
        "sizes": msgspec.to_builtins(sizes),
        "targets": [
            {**msgspec.structs.asdict(each), "met": each.met, "wanted": each.wanted}
            for each in targets(sizes)
        ],
    }


NOTES = """
Steps run side by side, so their seconds add up to more than the whole; *cpu* is what all processes of a run
spent, which says more than seconds where others use the machine. The whole run is everything: bronze with
every hash checked, silver, gold, and memory, by Spark in a warm session. The run after 1 % more is done by
the same process, without Spark where it finds less than 250,000 events. The exporter of the comparison reads
by ADBC and writes with `write_deltalake`; it checks no hashes, redacts no secrets, and compresses with snappy
where bronze has zstd. Questions and memory have their targets at eight million events.
"""


def page(sizes: list[Found], conditions: dict[str, Any]) -> str:
    others = max(found.others for found in sizes)
    said = (
        f"Measured on {conditions['date']} with `scripts/bench pipeline` (`--events N --append` each size): "
        f"{conditions['system']}, {conditions['cpus']} CPUs, {conditions['file_system']}, "
        f"Python {conditions['python']}, load {conditions['load']}. "
        f"Other programs took up to {others:.0%} of the machine meanwhile (column *others*)."
    )
    return "\n".join(["# Pipeline benchmark", "", said, "", *table(sizes), NOTES])
