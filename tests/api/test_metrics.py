"""What operators chart: counted once, with bounded labels, under the names that the dashboard uses."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import postroom
from postroom.api.activity_metrics import OTHER, ActivityMetrics, BoundedNames
from postroom.clock import ManualClock
from tests.api.house import House

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
NAME = re.compile(r"postroom_[a-z0-9_]+")


def read_samples(text: str) -> dict[str, float]:
    """By name, over all labels."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
    return sums


def known_names(text: str) -> set[str]:
    """Of everything there can be, also without a sample yet."""
    names: set[str] = set()
    for name, kind in re.findall(r"^# TYPE (postroom_\w+) (\w+)$", text, re.MULTILINE):
        if not name.endswith("_created"):
            names |= (
                {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else {name}
            )
    return names


async def test_an_answer_of_an_agent_is_counted_all_the_way_and_once(house: House) -> None:
    before = read_samples((await house.http.get("/metrics")).text)
    await house.http.post("/api/message", json={"message": "@coder hello", "channel": "web"})
    await house.until("/api/responses", lambda found: len(found) == 1)
    now = read_samples((await house.http.get("/metrics")).text)

    def grown(name: str) -> float:
        return now.get(f"postroom_{name}", 0) - before.get(f"postroom_{name}", 0)

    assert grown("messages_accepted_total") == 2, "the question and the answer"
    assert grown("messages_claimed_total") == 1
    assert grown("messages_completed_total") == 1
    assert grown("message_wait_seconds_count") == grown("message_run_seconds_count") == 1
    assert grown("turns_total") == 1
    assert grown("http_requests_total") >= 2
    assert now["postroom_metrics_behind_events"] == 0
    again = read_samples((await house.http.get("/metrics")).text)
    assert again["postroom_messages_accepted_total"] == now["postroom_messages_accepted_total"]


async def test_waits_runs_retries_and_dead_letters_are_what_happened() -> None:
    clock, registry = ManualClock(), CollectorRegistry()
    async with postroom.open("memory://", clock=clock, housekeeping=False) as room:
        await room.create_queue("jobs", max_retries=2, backoff_base_s=1, backoff_cap_s=1)
        activity = ActivityMetrics(room, registry)
        await activity.begin()
        await room.publish("jobs", 1)
        for _ in range(2):
            clock.advance(5)
            [message] = await room.claim("jobs")
            clock.advance(2)
            await room.fail(message, "no")
        await activity.catch_up()

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"postroom_{name}", {"scope": "default", "queue": "jobs", **labels})

    assert [value(f"messages_{name}_total") for name in ("accepted", "claimed", "retried", "dead")] == [
        1,
        2,
        1,
        1,
    ]
    assert value("messages_completed_total") is None
    assert (value("message_run_seconds_count"), value("message_run_seconds_sum")) == (2, 4)
    assert value("message_wait_seconds_bucket", le="5.0") == value("message_wait_seconds_count")


def test_labels_are_bounded() -> None:
    names = BoundedNames(most=2)
    assert [names.fit("a"), names.fit("b"), names.fit("c"), names.fit("a")] == [
        ("a",),
        ("b",),
        (OTHER,),
        ("a",),
    ]


def expressions() -> list[str]:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text("utf-8"))
    rules: list[Any] = yaml.safe_load((MONITORING / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    drawn = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return drawn + [rule["expr"] for rule in rules]


async def test_dashboard_alerts_and_page_name_only_what_there_is(house: House) -> None:
    known = known_names((await house.http.get("/metrics")).text)
    used = {name for expression in expressions() for name in NAME.findall(expression)}
    assert used - known == set()
    told = set(
        re.findall(r"^\| `(postroom_\w+)`", (ROOT / "docs/operations/metrics.md").read_text("utf-8"), re.M)
    )
    assert told == {re.sub(r"(_seconds)_(bucket|sum|count)$", r"\1", name) for name in known}


async def test_a_path_that_nobody_has_makes_no_label(house: House) -> None:
    for number in range(5):
        await house.http.get(f"/nothing-{number}/x")
    text = (await house.http.get("/metrics")).text
    assert "nothing-" not in text
    assert 'part="portal"' in text
