"""A conversation is told the same by API and command line, and the same before a run of the pipeline as after."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient

from postroom.clock import SECOND, ManualClock
from postroom.kernel.model import Message
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import TRACES
from postroom.pipeline.serving.engine import QueryEngine, engine
from postroom.pipeline.serving.live_traces import Life
from postroom.pipeline.serving.traces import trace
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.runtime import SyncRoom, open_sync
from tests.spark.lake_app import lake_app
from tests.spark.lakes import END, copied, copy_of, fill, rows
from tests.terminal.cli.runner import Cli

INBOXES = ("writer", "coder", "reviewer", "front-desk")
PRICE = "0.1"
NEW = "web:new-1"


def answer(room: SyncRoom, clock: ManualClock, message: Message) -> None:
    clock.advance(3)
    usage = [{"provider": "script", "model": "m", "input_tokens": 7, "output_tokens": 5}]
    turn = {"agent": message.agent, "outcome": "finished", "started_at": clock.now() - 3 * SECOND,
            "ended_at": clock.now(), "usage": usage, "cost_usd": PRICE, "price_source": "reported"}  # fmt: skip
    with room.unit() as unit:
        unit.complete(message, {"text": "done"})
        unit.record("turn", f"turn-{message.id}", turn, about=message)


@pytest.fixture(scope="module")
def half(month: SqliteSource, tmp_path_factory: pytest.TempPathFactory) -> SqliteSource:
    """The month; then old conversations go on, what was open ends, fails or is worked on, and one begins."""
    store = copy_of(month, tmp_path_factory.mktemp("half"))
    clock = ManualClock(END + 3600 * SECOND)
    with open_sync(f"sqlite:///{store.path}", clock=clock, housekeeping=False, actor="later") as room:
        for letter in room.messages(limit=1000).messages:
            if letter.state == "dead" and not letter.archived:
                room.replay(letter.id)
        roots = [each for each in room.messages(limit=1000).messages if each.correlation_id and not each.hop]
        for root in roots[:5]:
            room.publish(
                "office/inbox/writer",
                {"text": "one more thing"},
                type="office.note",
                correlation_id=root.correlation_id or root.id,
                causation_id=root.id,
                agent="writer",
                hop=1,
            )
        for number in range(3):
            room.publish("office/inbox/coder", {"text": f"part {number}"}, type="office.mail", agent="coder",
                         channel="web", correlation_id=NEW)  # fmt: skip
        clock.advance(5)
        for name in INBOXES:
            for turn, message in enumerate(room.claim(f"office/inbox/{name}", limit=100)):
                clock.advance(1)
                if message.correlation_id != NEW and turn % 4 == 1:
                    room.fail(message, "no ink", kind="crashed")
                elif message.correlation_id != NEW and turn % 4 == 2:
                    room.release(message)
                elif message.correlation_id == NEW or turn % 4 == 0:
                    answer(room, clock, message)
    return store


@pytest.fixture(scope="module")
def before(filled: Lake) -> Iterator[QueryEngine]:
    with engine(filled) as opened:
        yield opened


@pytest.fixture(scope="module")
def after(
    spark: Any, filled: Lake, half: SqliteSource, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[QueryEngine]:
    lake = copied(filled, tmp_path_factory.mktemp("lake") / "lake")
    fill(spark, lake, half)
    with engine(lake) as opened:
        yield opened


def every(light: QueryEngine) -> list[str]:
    return [row["trace_id"] for row in light.rows("SELECT trace_id FROM traces ORDER BY trace_id")]


def unmarked(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "spans": [{k: v for k, v in span.items() if k != "fresh"} for span in told["spans"]]}


def test_what_is_not_in_the_lake_yet_is_told_as_the_lake_tells_it_later(
    before: QueryEngine, after: QueryEngine, half: SqliteSource
) -> None:
    told = {name: trace(before, half, name) for name in every(after)}
    fresh = [name for name, each in told.items() if any(span.get("fresh") for span in each["spans"])]
    mixed = [name for name in fresh if not all(span.get("fresh") for span in told[name]["spans"])]
    assert len(fresh) > 5
    assert len(mixed) > 3
    for name, each in told.items():
        assert unmarked(each) == trace(after, half, name), name


def test_the_store_alone_tells_a_conversation_as_the_lake_does(
    after: QueryEngine, half: SqliteSource
) -> None:
    for name in every(after):
        assert unmarked(trace(None, half, name)) == trace(after, half, name), name


def test_money_is_added_without_rounding(before: QueryEngine, half: SqliteSource) -> None:
    told = trace(before, half, NEW)
    assert [span["cost_usd"] for span in told["spans"]] == [0.1, 0.1, 0.1]
    assert told["summary"]["cost_usd"] == 0.3
    assert (told["summary"]["turns"], told["summary"]["tokens"]) == (3, 36)


@pytest.mark.parametrize("with_lake", [True, False], ids=["half in the lake", "without a lake"])
def test_api_and_command_line_give_the_same_answer(
    with_lake: bool,
    filled: Lake,
    before: QueryEngine,
    half: SqliteSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("POSTROOM_STORE", "POSTROOM_LAKE"):
        monkeypatch.delenv(name, raising=False)
    cli = Cli(tmp_path, monkeypatch, capsys)
    monkeypatch.setenv("POSTROOM_HOME", str(cli.home))
    lake = filled.location if with_lake else str(tmp_path / "none")
    if with_lake:
        monkeypatch.setenv("POSTROOM_LAKE", lake)
    app = lake_app(lake, half.path)
    old = [name for name in every(before) if any(s.get("fresh") for s in trace(before, half, name)["spans"])]
    with TestClient(app) as http:
        for name in (NEW, *old[:3]):
            answered = http.get(f"/api/traces/{name}").json()
            assert answered == cli.json("trace", name, "--store", half.path)
            assert all(span["wait_us"] is not None for span in answered["spans"] if span["claimed_at"])
            assert answered["summary"]["messages"] == len(answered["spans"])


def test_a_conversation_that_is_all_in_the_lake_is_not_counted_again(
    before: QueryEngine, filled: Lake, month: SqliteSource
) -> None:
    for row in rows(filled, TRACES)[:20]:
        told = trace(before, month, row["trace_id"])
        assert not any("fresh" in span for span in told["spans"])
        assert told == trace(before, None, row["trace_id"])


def lived(*moments: tuple[int, str, str]) -> tuple[int | None, int | None]:
    life = Life(message_id="m1")
    for number, (time, kind, state) in enumerate(moments, 1):
        data = msgspec.json.encode({"state": state, "type": "t"}).decode()
        life.lived({"seq": number, "time": time, "type": f"message.{kind}", "tenant": "default",
                    "scope": "office", "queue": "inbox/coder", "causation_id": None, "data": data})  # fmt: skip
    return life.wait_us, life.work_us


def test_waiting_ends_with_the_first_claim_and_work_is_all_claims_together() -> None:
    published = (10, "published", "pending")
    assert lived(published) == (None, None)
    assert lived(published, (30, "claimed", "claimed")) == (20, 0)
    assert lived(
        published, (30, "claimed", "claimed"), (33, "extended", "claimed"), (35, "failed", "delayed"),
        (50, "claimed", "claimed"), (58, "completed", "completed"),
    ) == (20, 13)  # fmt: skip
