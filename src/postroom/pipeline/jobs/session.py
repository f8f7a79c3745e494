"""The Spark session of a run: small by default, on this machine unless told otherwise."""

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from postroom.errors import InvalidField
from postroom.pipeline.errors import PartMissing, SparkFailed, SparkNotReached
from postroom.pipeline.jobs.java import find_java
from postroom.pipeline.jobs.workers import PIECES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_MB = 1024
LONGEST_LOG = 10 << 20
BYTES_PER_BATCH = 64 << 20
# Java only plans and moves parcels: there is little to compile well, and little to collect.
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CICompilerCount=1 -XX:ReservedCodeCacheSize=192m"


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Which Spark: a master to start a driver for, or a Spark Connect server."""

    master: str = "local[*]"
    remote: str | None = None
    memory_mb: int = MEMORY_MB
    partitions: int | None = None
    settings: dict[str, str] = {}
    """Anything of Spark's own, which comes before what is set here."""
    driver_host: str | None = None
    """Under which name or address workers reach the driver. On this machine alone: 127.0.0.1."""
    bind_address: str | None = None
    py_files: tuple[str, ...] = ()
    named: bool = False
    """Whether somebody has said which."""

    @property
    def local(self) -> bool:
        return self.remote is None and self.master.startswith("local")


def where(
    master: str | None,
    remote: str | None,
    memory_mb: int = MEMORY_MB,
    *,
    conf: Sequence[str] = (),
    driver_host: str | None = None,
    bind_address: str | None = None,
    py_files: Sequence[str] = (),
) -> Where:
    """What was asked for, else POSTROOM_SPARK_REMOTE and POSTROOM_SPARK_MASTER, else all cores here."""
    if master is None and remote is None:
        remote = os.environ.get("POSTROOM_SPARK_REMOTE") or None
        master = os.environ.get("POSTROOM_SPARK_MASTER") or None
    for file in py_files:
        if "://" not in file and not Path(file).is_file():
            raise InvalidField("--py-files", f"{file} is no file")
    return Where(
        master=master or "local[*]",
        remote=remote if master is None else None,
        memory_mb=memory_mb,
        settings=dict(_setting(each) for each in conf),
        driver_host=driver_host or os.environ.get("POSTROOM_SPARK_DRIVER_HOST") or None,
        bind_address=bind_address or os.environ.get("POSTROOM_SPARK_BIND_ADDRESS") or None,
        py_files=tuple(py_files),
        named=bool(master or remote),
    )


def _setting(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name.startswith("spark."):
        raise InvalidField("--conf", f"is {given!r}, must be like spark.executor.memory=2g")
    return name, value


def _addresses(at: Where) -> dict[str, str]:
    """On this machine nobody else is to reach the driver; workers elsewhere must."""
    alone = "127.0.0.1" if at.local else None
    host, bind = at.driver_host or alone, at.bind_address or alone
    named = {"spark.driver.host": host, "spark.driver.bindAddress": bind}
    return {key: value for key, value in named.items() if value}


def settings(at: Where) -> dict[str, str]:
    cores = os.cpu_count() or 2
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_addresses(at),
        "spark.sql.session.timeZone": "UTC",
        PIECES: str(at.partitions or 2 * cores),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.join.preferSortMergeJoin": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # A parcel is one row, and may have megabytes.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_PER_BATCH),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.scheduler.mode": "FAIR",
        "spark.driver.memory": f"{at.memory_mb}m",
        "spark.driver.extraJavaOptions": f"{JVM} -Xss4m",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        # Else every expression asks the JVM several times where in our code it was written.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.python.worker.reuse": "true",
        # It must be installed where workers are: what is sent along comes only after it has started.
        **({} if at.py_files else {"spark.python.daemon.module": "postroom.pipeline.jobs.preloaded"}),
        "spark.log.level": "ERROR",
        **at.settings,
    }


@contextlib.contextmanager
def session(at: Where, name: str = "postroom") -> Iterator["SparkSession"]:
    """A session that is stopped, and its JVM ended, when the block is left."""
    spark = start(at, name)
    try:
        yield spark
    finally:
        stop(spark)


class LazySession:
    """A session that is started by whoever first needs it, if anybody does."""

    def __init__(self, at: Where) -> None:
        self._at = at
        self._lock = threading.Lock()
        self.started: SparkSession | None = None

    def get(self) -> "SparkSession":
        with self._lock:
            if self.started is None:
                self.started = start(self._at)
            return self.started


@contextlib.contextmanager
def lazy_session(at: Where) -> Iterator[LazySession]:
    """If it was started, it is stopped when the block is left."""
    lazy = LazySession(at)
    try:
        yield lazy
    finally:
        if lazy.started is not None:
            stop(lazy.started)


def start(at: Where, name: str = "postroom") -> "SparkSession":
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise PartMissing(package="pyspark") from error
    if at.local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        # Python may be elsewhere where workers are, or come packed with the job.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if at.remote is not None:
        return _connect(at)
    scratch = Path(tempfile.gettempdir()) / f"postroom-spark-{os.getuid()}"
    scratch.mkdir(mode=0o700, exist_ok=True)
    java = find_java(os.environ, scratch)
    os.environ["JAVA_HOME"] = str(java.home)
    if at.local and at.bind_address is None:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.pop("SPARK_REMOTE", None)
    builder = SparkSession.builder.master(at.master).appName(name)
    for key, value in settings(at).items():
        builder = builder.config(key, value)
    log = scratch / "spark.log"
    try:
        with _aside(log):
            spark = builder.getOrCreate()
    except Exception as error:
        reason = f"{_first_line(error)} (more in {log})"
        if not at.local:
            raise SparkNotReached(address=at.master, reason=reason) from error
        raise SparkFailed(reason=reason) from error
    spark.sparkContext.setLogLevel("OFF")
    for file in at.py_files:
        spark.sparkContext.addPyFile(file)
    return spark


@contextlib.contextmanager
def _aside(log: Path) -> Iterator[None]:
    """What the JVM and the workers say goes to a file: a process keeps the stderr it was started with."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        if file.tell() > LONGEST_LOG:
            file.truncate(0)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _connect(at: Where) -> "SparkSession":
    from pyspark.sql import SparkSession

    try:
        builder = SparkSession.builder.remote(at.remote or "")
        for key in ("spark.sql.session.timeZone", "spark.sql.execution.arrow.maxBytesPerBatch"):
            builder = builder.config(key, settings(at)[key])
        for key, value in at.settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        if at.py_files:
            spark.addArtifacts(*at.py_files, pyfile=True)
        spark.range(1).count()
    except ImportError as error:
        raise PartMissing(package=f"{error.name} (pyspark[connect])") from error
    except Exception as error:
        raise SparkNotReached(address=at.remote, reason=_first_line(error)) from error
    return spark


def stop(spark: "SparkSession") -> None:
    """Also the JVM: pyspark leaves it running until the program ends."""
    with contextlib.suppress(Exception):
        context = getattr(spark, "_sc", None)
        spark.stop()
        if context is None:
            return
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
            process = getattr(gateway, "proc", None)
            if process is not None:
                process.stdin.close()
                process.wait(20)
            SparkContext._gateway = None
            SparkContext._jvm = None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
