"""One picture: how each target stands, and how the cost grows with the number of events."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from benchmarks.lakes.figures import Found, growth, targets

MET, MISSED, INK = "#2f7d5b", "#b5462f", "#333333"


def draw(sizes: list[Found], date: str, path: Path) -> None:
    told = targets(sizes)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 0.5 * len(told) + 2.4), dpi=120, width_ratios=(3, 2), layout="constrained"
    )
    places = range(len(told))
    left.barh(places, [each.margin for each in told], color=[MET if each.met else MISSED for each in told])
    left.axvline(1, color=INK, linewidth=1.5, linestyle="--")
    left.set_yticks(places, [f"{each.what}\n{each.events:,} events" for each in told], fontsize=8)
    for place, each in enumerate(told):
        text = f" {each.value:,.3g} {each.unit} ({each.wanted})"
        left.text(0.02, place, text, va="center", fontsize=8, color="white", weight="bold")
    left.invert_yaxis()
    left.set_xlabel("how many times better than its target; dashed: the target", fontsize=9)
    events = [found.events / 1e6 for found in sizes]
    right.plot(events, [found.whole_s for found in sizes], "o-", color=MET, label="whole run")
    right.plot(events, [found.bronze_s for found in sizes], "o-", color=INK, label="its bronze")
    right.plot(events, [found.more_s or 0 for found in sizes], "o-", color=MISSED, label="after 1 % more")
    right.set_xlabel("million events", fontsize=9)
    right.set_ylabel("seconds", fontsize=9)
    if len(sizes) > 1:
        right.set_title(f"cost grows with the power {growth(sizes):.2f}", fontsize=9)
    right.legend(fontsize=8)
    for axes in (left, right):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.suptitle(f"Postroom's pipeline against its targets, {date}", fontsize=13, weight="bold")
    figure.savefig(path)
    plt.close(figure)
