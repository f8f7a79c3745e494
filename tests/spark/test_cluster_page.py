"""What `docs/operations/spark-cluster.md` tells people to type is typed, as it stands, on hosts of their own."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from tests.namespaces import ip
from tests.spark.lakes import copy_of, fill, same
from tests.spark.test_cluster import started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

PAGE = Path(__file__).parents[2] / "docs/operations/spark-cluster.md"
HERE = "10.0.0.5"
"""The address that the page gives the host of the store."""
STORE_PORT = 5000


def blocks() -> tuple[str, str, str]:
    """What starts the office for workers on other hosts, and the run; and a small cluster on one machine."""
    office, elsewhere, small = re.findall(
        r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return office, elsewhere, small


@contextmanager
def hosts(*others: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The host of the store, by its namespace, and those of others by their address. This machine has no part in it."""
    mark = os.getpid() % 10_000
    main = f"pra{mark}"
    with ExitStack() as undo:

        def add(name: str) -> None:
            ip("netns", "add", name)
            undo.callback(ip, "netns", "del", name)
            ip("-n", name, "link", "set", "lo", "up")

        try:
            add(main)
            ip("-n", main, "link", "add", "br0", "type", "bridge")
            ip("-n", main, "addr", "add", f"{HERE}/24", "dev", "br0")
            ip("-n", main, "link", "set", "br0", "up")
            names = {address: f"pra{mark}x{number}" for number, address in enumerate(others)}
            for number, (address, name) in enumerate(names.items()):
                add(name)
                ip(
                    "link",
                    "add",
                    f"v{number}",
                    "netns",
                    main,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    "eth0",
                    "netns",
                    name,
                )
                ip("-n", main, "link", "set", f"v{number}", "master", "br0", "up")
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
        except OSError as error:
            pytest.skip(f"network namespaces are not allowed here: {error}")
        yield main, names


def within(name: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", name, *words]


def type_in(name: str, commands: str, env: dict[str, str], folder: Path) -> str:
    """A shell of that host; whatever it left running is ended with it."""
    with (folder / "typed.log").open("w+") as log:
        shell = subprocess.Popen(
            within(name, "bash", "-ec", commands), env=env, cwd=folder, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            shell.wait(900)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        log.seek(0)
        said = log.read()
    assert shell.returncode == 0, said[-3000:]
    return said


def user_environment(home: Path, **more: str) -> dict[str, str]:
    """A user with `postroom` and `python` on the path, and nothing else that the page does not name."""
    bare = {name: os.environ[name] for name in ("HOME", "LANG", "JAVA_HOME", "TMPDIR") if name in os.environ}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**bare, "PATH": path, "POSTROOM_HOME": str(home), **more}


def home_of(month: SqliteSource, folder: Path) -> tuple[Path, SqliteSource]:
    home = folder / "home"
    home.mkdir()
    shutil.copy(copy_of(month, folder / "copy").path, home / "postroom.db")
    return home, open_source(str(home / "postroom.db"))


def test_a_small_cluster_on_one_machine_is_made_as_the_page_says(
    month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    home, _ = home_of(month, tmp_path)
    with hosts() as (main, _):
        type_in(main, blocks()[2], user_environment(home), tmp_path)
    same(Lake(str(home / "lake")), filled)


def test_two_workers_on_other_hosts_fill_a_bucket_as_the_page_says(
    spark: Any, month: SqliteSource, tmp_path: Path
) -> None:
    home, store = home_of(month, tmp_path)
    storage = {
        "AWS_ENDPOINT_URL": f"http://{HERE}:{STORE_PORT}", "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    env = user_environment(home, **storage, PYSPARK_PYTHON=sys.executable)
    addresses = ("10.0.0.6", "10.0.0.7")
    with hosts(*addresses) as (main, others), ExitStack() as running:
        moto = subprocess.Popen(
            within(main, str(Path(sys.executable).with_name("moto_server")), "-H", HERE, "-p", str(STORE_PORT)),
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        running.callback(moto.wait)
        running.callback(moto.kill)
        make = f"""
import time, httpx2
for _ in range(300):
    try:
        httpx2.put("http://{HERE}:{STORE_PORT}/bucket", timeout=60).raise_for_status()
        break
    except httpx2.TransportError:
        time.sleep(0.2)  # a server is only found to be up by asking it
else:
    raise SystemExit("the object store did not start")
"""
        subprocess.run(within(main, sys.executable, "-c", make), env=env, check=True, timeout=300)
        type_in(main, blocks()[0], env, tmp_path)
        running.callback(
            subprocess.run, within(main, "postroom", "stop"), env=env, cwd=tmp_path, check=True, timeout=300
        )
        master = ("spark-class", "org.apache.spark.deploy.master.Master", "--host", HERE, "--port", "7077")
        running.enter_context(
            started(
                tmp_path / "master.log", "Starting Spark master at", *master, "--webui-port", "0",
                within=tuple(within(main)), SPARK_LOCAL_IP=HERE,
            )
        )  # fmt: skip
        for address, name in others.items():
            hide = f'mount -t tmpfs none {home} && exec "$@"'
            worker = (
                "spark-class", "org.apache.spark.deploy.worker.Worker", f"spark://{HERE}:7077", "--host", address,
                "-c", "1", "-m", "1g", "--webui-port", "0",
            )  # fmt: skip
            running.enter_context(
                started(
                    tmp_path / f"{name}.log", "registered with master", *worker,
                    within=(*within(name), "sh", "-c", hide, "sh"), SPARK_LOCAL_IP=address, **storage,
                )
            )  # fmt: skip
        type_in(main, blocks()[1], env, tmp_path)
        fetch = f"""
import pyarrow.fs as pafs
from postroom.pipeline.lake.files import filesystem
there, path = filesystem("s3://bucket/postroom")
pafs.copy_files(path, {str(tmp_path / "fetched")!r}, there, pafs.LocalFileSystem())
"""
        (tmp_path / "fetched").mkdir()
        subprocess.run(within(main, sys.executable, "-c", fetch), env=env, check=True, timeout=300)
    found, whole = Lake(str(tmp_path / "fetched")), Lake(str(tmp_path / "whole"))
    # The office may have written to the store since; what is missing is added, and nothing else.
    fill(spark, found, store)
    fill(spark, whole, store)
    same(found, whole)
