"""One picture of all promises: how far each lies past its target."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

from benchmarks.queueing.measure import Ratio
from benchmarks.queueing.report import reached, wanted

MET, MISSED, INK = "#2f7d5b", "#b5462f", "#333333"


def draw(ratios: list[Ratio], date: str, path: Path) -> None:
    rows: list[tuple[float, Ratio]] = []
    headings: list[tuple[float, str]] = []
    y, case = 0.0, None
    for ratio in ratios:
        if ratio.case != case:
            case = ratio.case
            y += 0.5
            headings.append((y, case))
            y += 0.85
        rows.append((y, ratio))
        y += 1

    figure, axes = plt.subplots(figsize=(10, 0.42 * y + 1.6), dpi=120)
    axes.barh(
        [at for at, _ in rows],
        [ratio.margin for _, ratio in rows],
        height=0.72,
        color=[MET if ratio.passed else MISSED for _, ratio in rows],
    )
    beside = axes.get_yaxis_transform()
    axes.axvline(1, color=INK, linewidth=1.5, linestyle="--")
    axes.text(1, -0.35, "target", ha="center", va="bottom", color=INK, fontsize=9)
    for at, ratio in rows:
        axes.text(
            1.01, at, reached(ratio), transform=beside, va="center", fontsize=9, weight="bold", color=INK
        )
        axes.text(1.13, at, wanted(ratio), transform=beside, va="center", fontsize=9, color=INK)
    for at, heading in headings:
        text = axes.text(0, at, heading, transform=beside, va="center", fontsize=9.5, weight="bold")
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    axes.set_yticks([at for at, _ in rows], [ratio.what for _, ratio in rows], fontsize=9)
    axes.set_ylim(y - 0.3, -0.3)
    axes.set_xlim(0, max(2.0, *(ratio.margin for ratio in ratios)) * 1.05)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.set_xlabel(
        "how many times better than its target; beside it what was reached, and the target", fontsize=9
    )
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.suptitle(f"Postroom's queue against its targets, {date}", fontsize=13, weight="bold")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
