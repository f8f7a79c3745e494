"""The report says what is so: its figures, texts and charts agree, and nothing is compared with half a period."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.errors import QueueNotInLake
from postroom.pipeline.jobs.backtest import check_source
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.serving import insights
from postroom.pipeline.serving.engine import QueryEngine, engine
from postroom.pipeline.serving.insights import Period, period
from postroom.pipeline.serving.report import report
from postroom.pipeline.sources.sqlite import SqliteSource


@pytest.fixture(scope="module")
def light(filled: Lake) -> Iterator[QueryEngine]:
    with engine(filled) as opened:
        yield opened


def card(page: str, title: str) -> str:
    [found] = [part for part in page.split("<section")[1:] if f"<h2>{title}</h2>" in part]
    return found.partition("</section>")[0]


def test_open_messages_are_drawn_as_open_and_days_add_up_to_the_figure_above(light: QueryEngine) -> None:
    at = period(light)
    days, total = insights.days(light, at), insights.overview(light, at)
    for name in ("messages", "completed", "open", "failures"):
        assert sum(day[name] for day in days) == total[name], name
    assert sum(day["failed"] for day in days) == total["dead"] + total["expired"]
    assert total["open"] > 0
    drawn = card(report(light, at, "now"), "Messages a day")
    assert re.findall(r"</i>([^<]+)</li>", drawn) == ["completed", "open", "other ends", "dead or expired"]


def test_got_over_it_counts_what_was_completed(light: QueryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"error_class": "overloaded", "messages": 10, "failures": 12, "recovered": 6, "dead": 1}
    monkeypatch.setattr(insights, "failures", lambda *_: [row])
    page = report(light, period(light), "now")
    drawn = card(page, "What went wrong")
    widths = [
        float(each) for each in re.findall(r'<rect class="t\d" x="[\d.]+" y="\d+" width="([\d.]+)"', drawn)
    ]
    assert [round(each / sum(widths), 2) for each in widths] == [0.6, 0.3, 0.1]
    assert re.findall(r"</i>([^<]+)</li>", drawn)[0] == "got over it"
    assert "6 messages were completed all the same, and 1 became dead letters" in page


def test_a_change_is_shown_only_against_days_that_are_all_known(light: QueryEngine) -> None:
    first, whole = insights.first_day(light), period(light)
    assert isinstance(first, date)
    assert "against the days before" not in report(light, Period(first, whole.until), "now")
    assert "against the days before" not in report(light, whole, "now")
    second = first + timedelta(days=1)
    assert "against the days before" in report(light, Period(second, second), "now")


def test_a_rule_about_a_queue_that_the_lake_does_not_know_is_refused(light: QueryEngine) -> None:
    check_source(light, {"source_queue_id": "office/inbox/coder"})
    check_source(light, {})
    with pytest.raises(QueueNotInLake, match="office/inbox/coder") as refused:
        check_source(light, {"source_queue_id": "office/inbox/nobody"})
    assert refused.value.exit_code == 4


def test_a_run_with_nothing_new_starts_no_java(month: SqliteSource, filled: Lake, tmp_path: Path) -> None:
    """So it costs what it takes to look."""
    env: dict[str, Any] = {
        **os.environ,
        "JAVA_HOME": str(tmp_path / "no-java"),
        "POSTROOM_HOME": str(tmp_path),
    }
    words = ["pipeline", "run", "--store", month.path, "--lake", filled.location]
    done = subprocess.run(
        [sys.executable, "-m", "postroom", *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Nothing is new" in done.stdout
