"""One picture of the hour: dead rows, and how long claims took, part after part."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from benchmarks.queueing.plot import INK, MET, MISSED
from benchmarks.steadily.samples import Sample, percentile


def draw(samples: list[Sample], title: str, path: Path) -> None:
    minutes = [sample.at_s / 60 for sample in samples]
    figure, (above, below) = plt.subplots(2, 1, figsize=(11, 7), dpi=120, sharex=True, layout="constrained")
    above.plot(minutes, [sum(sample.dead.values()) for sample in samples], color=INK)
    above.set_ylabel("dead rows in all tables", fontsize=9)
    for share, name, colour in ((0.99, "p99", MISSED), (0.5, "p50", MET)):
        values = [percentile(sample.claims_ms, share) for sample in samples]
        below.plot(minutes, values, color=colour, label=f"claim, {name}")
    below.set_ylabel("milliseconds", fontsize=9)
    below.set_xlabel("minutes", fontsize=9)
    below.legend(fontsize=8)
    part = ""
    for sample, minute in zip(samples, minutes, strict=True):
        if sample.part != part:
            part = sample.part
            above.text(minute, 1.02, part, transform=above.get_xaxis_transform(), fontsize=8)
            for axes in (above, below):
                axes.axvline(minute, color=INK, linewidth=0.8, linestyle=":")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.suptitle(title, fontsize=13, weight="bold")
    figure.savefig(path)
    plt.close(figure)
