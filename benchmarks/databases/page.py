"""What was found, as a page of the reference."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.databases.servers import Mariadb, Postgres
from benchmarks.queueing import disk
from benchmarks.queueing.measure import Outcome
from benchmarks.queueing.report import tables

HOW = """\
Every server is started by the benchmark in a temporary folder on a real disk, with its defaults: what it
calls committed is synced. Rounds alternate, each in a new database. A figure is the median of its rounds,
a ratio the median of the rounds' ratios; trust the ratios, since the figures depend on the machine, whose
processors the server shares with whoever is measured. The message is about 200 bytes of JSON. A load
above the number of CPUs means that others were at work: then whoever holds a lock waits for a processor, and
all who wait for the lock wait with it.

- **postroom** runs as it is opened by default: checks, counts, hash-chained ledger and housekeeping
  included. A batch is completed with one call, in the same turn of the event loop as the next is claimed,
  which makes both one commit.
- **pgqueuer's worker** is how programs use pgqueuer: its `PgQueuer.run` with asyncpg, batches of 100, until
  the queue is empty. **pgqueuer's queries** are what lies below it, called by a plain loop: a batch is taken,
  then logged as done, without a function that is called for each job.
- **procrastinate** has no batches to take; its own worker runs with 100 jobs at once.
- **bare psycopg** is a plain loop that writes the same rows into the same tables in the same batches, in
  pipelines, and nothing else. It does not check, count, wake or chain.

Run it with `scripts/bench stores`; it writes this page."""


def render(outcome: Outcome, postgres: Postgres, mariadb: Mariadb, folder: Path) -> str:
    names = ("postroom", "psycopg", "pgqueuer", "asyncpg", "procrastinate", "pymysql")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    lines = [
        "# Benchmark of database servers",
        "",
        f"Measured on {datetime.now(UTC).date().isoformat()}: {platform.system()}, {os.cpu_count()} CPUs, "
        f"{disk.file_system(folder)} (a plain write with its sync takes {disk.sync_time(folder):.2f} ms), "
        f"load {os.getloadavg()[0]:.1f} at the end, Python {platform.python_version()}, "
        f"PostgreSQL {postgres.version()}, MariaDB {mariadb.version()}, {versions}.",
        "",
    ]
    return "\n".join([*lines, *tables(outcome), "", HOW, ""])
