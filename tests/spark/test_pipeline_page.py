"""What `docs/how-to/pipeline.md` tells people to type is typed as it stands, over a store and a lake that are there."""

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import apsw
import pyarrow.fs as pafs
import pytest
from anyio.from_thread import start_blocking_portal

from postroom.pipeline.lake.files import filesystem
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.api.house import TOKEN, opened
from tests.docs.blocks import texts_of
from tests.docs.shell_pages import ShellPage, run_page
from tests.pipeline.lineage_server import LineageServer
from tests.spark.lakes import copied, copy_of
from tests.spark.pipeline_page import PIPELINE

RULE = {
    "name": "angry first",
    "source_queue_id": "office/inbox/coder",
    "expression": "priority_score > 800",
    "action": {"type": "escalate", "priority_tier": "high"},
}


def filled_conversation(month: SqliteSource) -> tuple[str, str]:
    """The oldest message of a person that the store has, and its conversation."""
    db = apsw.Connection(month.path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        [found] = db.execute(
            "SELECT id, correlation_id FROM archive WHERE channel='telegram' ORDER BY seq LIMIT 1"
        )
    finally:
        db.close()
    return found


def type_page(page: ShellPage, month: SqliteSource, filled: Lake, bucket: str, folder: Path) -> None:
    home = folder / ".postroom"
    home.mkdir()
    shutil.copy(copy_of(month, folder / "copy").path, home / "postroom.db")
    copied(filled, home / "lake")
    there, path = filesystem(f"{bucket}/page")
    pafs.copy_files(str(filled.folder), path, pafs.LocalFileSystem(), there)
    (folder / "rule.json").write_text(json.dumps(RULE))
    message_id, talk = filled_conversation(month)
    with LineageServer() as server:
        names = {
            "telegram:1-17": talk,
            "01890a5d-ac96-774b-bcce-b302099a8057": message_id,
            "telegram-ada": "telegram-ada <<<y",
            # Only the office that runs has more to tell.
            "postroom status ": "postroom status || [[ $? = 4 ]] ",
            "http://marquez.example.org:5000": server.url,
            "s3://bucket/postroom": f"{bucket}/page",
            "AWS_ENDPOINT_URL=https://objects.example.org AWS_REGION=eu-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…":
                " ".join(f"{name}={value}" for name, value in os.environ.items() if name.startswith("AWS_")),
        }  # fmt: skip
        run_page(dataclasses.replace(page, names=names), folder)


def test_the_page_about_the_pipeline_is_typed(
    month: SqliteSource, filled: Lake, bucket: str, tmp_path: Path
) -> None:
    type_page(PIPELINE, month, filled, bucket, tmp_path)


@pytest.mark.slow
def test_the_page_about_the_pipeline_is_typed_whole(
    month: SqliteSource, filled: Lake, bucket: str, tmp_path: Path
) -> None:
    type_page(dataclasses.replace(PIPELINE, not_run={}), month, filled, bucket, tmp_path)


def test_the_job_of_the_page_reads_and_publishes(spark: Any, month: SqliteSource, tmp_path: Path) -> None:
    [program] = texts_of("docs/how-to/pipeline.md", "python")
    orders = spark.createDataFrame([(n, f"item {n}") for n in range(5)], "order int, item string")
    copy_of(month, tmp_path)
    with (
        start_blocking_portal() as loop,
        loop.wrap_async_context_manager(opened(tmp_path, works=False)) as house,
    ):
        loop.call(house.room.create_scope, "shop")
        loop.call(house.room.create_queue, "shop/orders")
        here = program.replace('"room.db"', repr(str(tmp_path / "copy.db")))
        here = here.replace("http://10.0.0.5:3777", str(house.url))
        scope: dict[str, Any] = {"spark": spark, "orders": orders, "key": TOKEN}
        exec(here, scope)
        assert scope["events"].count() == month.snapshot().head
        assert scope["stream"].isStreaming
        assert scope["dead"].count() > 0
        assert loop.call(house.room.counts, "shop/orders").pending == 5
