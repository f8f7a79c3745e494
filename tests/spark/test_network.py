"""Workers on hosts of their own, which have neither the store's file nor this machine's loopback."""

import asyncio
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.api.house import TOKEN, opened
from tests.namespaces import network
from tests.spark.lakes import copy_of, same
from tests.spark.test_cluster import pipeline, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


async def test_workers_on_other_hosts_are_fed_over_http_and_fill_the_same_lake(
    month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path / "store")
    with network(2) as (here, others), ExitStack() as running:
        master = ("spark-class", "org.apache.spark.deploy.master.Master", "--host", here, "--port", "0")
        line = running.enter_context(
            started(
                tmp_path / "master.log", "Starting Spark master at", *master, "--webui-port", "0",
                SPARK_LOCAL_IP=here,
            )
        )  # fmt: skip
        found = re.search(r"spark://[\d.]+:\d+", line)
        assert found is not None
        for each, name in enumerate(others):
            address = f"{here.rpartition('.')[0]}.{each + 10}"
            # The folder of the store is another one there: nothing can be read from its file.
            hide = f'mount -t tmpfs none {Path(store.path).parent} && exec "$@"'
            worker = (
                "spark-class", "org.apache.spark.deploy.worker.Worker", found[0], "--host", address,
                "-c", "1", "-m", "1g", "--webui-port", "0",
            )  # fmt: skip
            running.enter_context(
                started(
                    tmp_path / f"{name}.log", "registered with master", *worker,
                    within=("ip", "netns", "exec", name, "sh", "-c", hide, "sh"), SPARK_LOCAL_IP=address,
                )
            )  # fmt: skip
        api = {"host": here, "port": 0}
        async with opened(tmp_path, works=False, host=here, fed_from=store.path, api=api) as house:
            lake = await asyncio.to_thread(
                pipeline, store, tmp_path / "lake", "--master", found[0], "--driver-host", here,
                "--bind-address", here, "--feed", house.url, "--conf", "spark.task.maxFailures=2",
                SPARK_LOCAL_IP=here, POSTROOM_TOKEN=TOKEN,
            )  # fmt: skip
    same(lake, filled)
