"""Erasure leaves nothing of what was written in any file of the lake, however old or forgotten it is."""

from datetime import date
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from postroom.clock import ManualClock
from postroom.kernel.erasure.subject import Subject
from postroom.pipeline.jobs.erase import LakeEraser
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import CHUNKS, FAILURE_CAUSES, LEDGER, MESSAGES, Table
from tests.pipeline.tiny import put, rows

SECRET = "the moon is made of cheese"
DAY = date(2026, 11, 1)
CAUSE = {"day": DAY, "tenant": "t", "queue": "q", "error_class": "crashed"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def message(name: str, text: str | None = None) -> dict[str, object]:
    return {"id": name, "seq": 1, "ended_seq": 1, "created_at": 1, "body": text}


def holding(lake: Lake, text: str) -> list[Path]:
    files = Path(str(lake.folder)).rglob("*.parquet")
    return [file for file in files if text in str(pq.read_table(file).to_pylist())]


def test_files_that_a_killed_run_left_behind_go_too(lake: Lake) -> None:
    """Its rows were never committed, so no table knows of them."""
    put(lake, MESSAGES, message("other"))
    writer = FileWriter(lake.uri(MESSAGES), MESSAGES.schema, None, MESSAGES.tracked)
    row = dict.fromkeys(MESSAGES.schema.names) | message("m", SECRET)
    writer.write(pa.Table.from_pylist([row], MESSAGES.schema))
    writer.close()
    assert holding(lake, SECRET)
    LakeEraser(lake, ManualClock()).carry_out(["m"])
    assert not holding(lake, SECRET)
    assert [row["id"] for row in rows(lake, MESSAGES)] == ["other"]


def test_versions_of_before_go_too(lake: Lake) -> None:
    """It was the example once; now another message is."""
    put(lake, FAILURE_CAUSES, {**CAUSE, "example_id": "m", "example_reason": SECRET})
    old = lake.files(FAILURE_CAUSES)
    put(lake, FAILURE_CAUSES, {**CAUSE, "example_id": "other", "example_reason": "no ink"})
    lake.commit(FAILURE_CAUSES, [], Positions(2, 2), removed=old)
    assert holding(lake, SECRET)
    LakeEraser(lake, ManualClock()).carry_out(["m"])
    assert not holding(lake, SECRET)
    assert [row["example_reason"] for row in rows(lake, FAILURE_CAUSES)] == ["no ink"]


def test_files_from_before_a_column_was_declared_are_erased(lake: Lake) -> None:
    fewer = pa.schema([field for field in MESSAGES.schema if field.name not in ("files", "redacted")])
    before = msgspec.structs.replace(MESSAGES, schema=fewer)
    put(lake, before, message("m", SECRET), message("other", "kept"))
    eraser = LakeEraser(lake, ManualClock())
    assert eraser.carry_out(["m"]) == 1
    assert not holding(lake, SECRET)
    assert {row["id"]: row["body"] for row in rows(lake, MESSAGES)} == {
        "m": '{"erased":true}',
        "other": "kept",
    }
    assert eraser.count(["m"]) == 0


def test_an_event_that_was_erased_is_not_counted_again(lake: Lake) -> None:
    put(
        lake,
        LEDGER,
        {"seq": 1, "time": 1, "message_id": "m", "data": f'{{"reason":"{SECRET}","state":"dead"}}'},
        {"seq": 2, "time": 1, "message_id": "other", "data": '{"reason":"no ink","state":"dead"}'},
    )
    eraser = LakeEraser(lake, ManualClock())
    assert eraser.carry_out(["m"]) == 1
    assert eraser.count(["m"]) == 0
    assert [row["data"] for row in rows(lake, LEDGER)] == [
        '{"reason":"erased","state":"dead"}',
        '{"reason":"no ink","state":"dead"}',
    ]


def test_what_was_told_to_others_of_a_message_goes_with_it(lake: Lake) -> None:
    """Deliveries of webhooks name it in a label; events for subscribers have it as their cause."""
    put(
        lake,
        MESSAGES,
        message("m", SECRET),
        {**message("d", SECRET), "message_type": "webhook.delivery", "labels": '{"about":"m"}'},
        {**message("e", SECRET), "message_type": "scaiqueue.message.completed", "causation_id": "m"},
        {**message("x", "kept"), "message_type": "webhook.delivery", "labels": '{"about":"other"}'},
        {**message("y", "kept"), "message_type": "office.reply", "causation_id": "m"},
    )
    eraser = LakeEraser(lake, ManualClock())
    assert eraser.count(["m"]) == eraser.carry_out(["m"]) == 3
    assert not holding(lake, SECRET)
    assert {row["id"] for row in rows(lake, MESSAGES) if row["body"] == "kept"} == {"x", "y"}
    assert eraser.count(["m"]) == 0


def test_an_erasure_that_was_killed_finds_again_what_it_had_not_reached(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(lake, MESSAGES, {**message("m", SECRET), "sender_id": "42"})
    put(lake, CHUNKS, {"message_id": "m", "part": 0, "text": SECRET, "ended_seq": 1})
    commit = Lake.commit

    def dies(self: Lake, table: Table, *args: object, **more: object) -> None:
        if table is CHUNKS:
            raise KeyboardInterrupt
        commit(self, table, *args, **more)  # type: ignore[arg-type]

    eraser, subject = LakeEraser(lake, ManualClock()), Subject(field="sender_id", value="42")
    monkeypatch.setattr(Lake, "commit", dies)
    with pytest.raises(KeyboardInterrupt):
        eraser.carry_out(eraser.find(subject))
    monkeypatch.undo()
    eraser.carry_out(eraser.find(subject))
    assert not holding(lake, SECRET)


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("body.people.mail", "ada@example.org", ["a", "b"]),
        ("body.people.mail", "nobody@example.org", []),
        ("body.number", "42", ["b"]),
        ("body.number", 42, ["b"]),
        ("body.known", True, ["b"]),
        ("labels.customer.id", "c-1", ["a"]),
        ("labels.customer", "c-1", []),
        ("sender_id", "ada", ["b"]),
    ],
)
def test_a_person_is_found_where_the_store_would_find_them(
    lake: Lake, field: str, value: str | int | bool, found: list[str]
) -> None:
    """A path goes through every item of a list, and the name of a label may have dots in it."""
    json = {"content_type": "application/json"}
    put(
        lake,
        MESSAGES,
        {
            **message("a", '{"people":{"mail":"ada@example.org"}}'),
            **json,
            "labels": '{"customer.id":"c-1"}',
        },
        {
            **message("b", '{"people":[{"mail":"x"},{"mail":"ada@example.org"}],"number":42,"known":true}'),
            **json,
            "sender_id": "ada",
        },
        {**message("c", "ada@example.org 42 mail"), "content_type": "text/plain"},
        {**message("d", '{"mail": broken [redacted]'), **json},
    )
    assert LakeEraser(lake, ManualClock()).find(Subject(field=field, value=value)) == found


def test_whoever_may_erase_in_some_queues_finds_only_what_lay_in_them(lake: Lake) -> None:
    """A dead letter lies in one queue and died in another; both must be theirs."""
    ada = {"sender_id": "ada", "tenant": "t", "scope": "s"}
    put(
        lake,
        MESSAGES,
        {**message("own"), **ada, "queue": "a"},
        {**message("own dead letter"), **ada, "queue": "dead", "origin_queue": "a"},
        {**message("foreign dead letter"), **ada, "queue": "dead", "origin_queue": "b"},
        {**message("foreign"), **ada, "queue": "b"},
        {**message("elsewhere"), **ada, "queue": "a", "scope": "other"},
    )
    eraser, subject = LakeEraser(lake, ManualClock()), Subject(field="sender_id", value="ada")
    assert eraser.find(subject, "t", "s", ["a", "dead"]) == ["own", "own dead letter"]
    assert eraser.find(subject, "t", "s", []) == []
    assert len(eraser.find(subject, "t", "s")) == 4
