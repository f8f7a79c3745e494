"""The benchmark of database servers: PostgreSQL beside pgqueuer, procrastinate and a bare psycopg loop, and
MariaDB with and without Redis.

`scripts/bench stores` takes some minutes; `--quick` only shows that everything runs.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from tests.redis_server import RedisServer

from benchmarks.databases import cases, page, servers, wake
from benchmarks.databases.cases import FULL, QUICK, Amounts
from benchmarks.databases.servers import Mariadb, Postgres
from benchmarks.queueing import report
from benchmarks.queueing.disk import real_disk
from benchmarks.queueing.measure import Outcome

PAGE = Path(__file__).parent.parent / "docs/reference/stores-benchmark.md"
NAMES = ("drain", "publish", "callers", "redis", "wake")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench stores", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds; the figures mean nothing")
    parser.add_argument("--rounds", type=int, help="how often each case is measured")
    parser.add_argument("--gate", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="CASE", help=", ".join(NAMES))
    return parser.parse_args()


def _wake(postgres: Postgres, mariadb: Mariadb, redis: RedisServer, amounts: Amounts) -> Outcome:
    outcome = Outcome()
    for name, server, beside in (
        ("PostgreSQL", postgres, None),
        ("MariaDB", mariadb, None),
        ("MariaDB with Redis", mariadb, redis.url),
    ):
        with server.database() as url:
            outcome.add(wake.wake_up(name, url, beside, amounts.wakes))
    with mariadb.database() as url:
        outcome.add(wake.come_back("MariaDB with Redis", url, redis))
    return outcome


def main() -> int:
    chosen = arguments()
    amounts = QUICK if chosen.quick else FULL
    if chosen.rounds:
        amounts = msgspec.structs.replace(amounts, rounds=chosen.rounds)
    folder = Path(tempfile.mkdtemp(prefix="postroom-bench-", dir=real_disk()))
    # Servers run as users of their own.
    folder.chmod(0o711)
    tempfile.tempdir = str(folder)
    outcome = Outcome()
    try:
        with servers.start_postgres() as postgres, servers.start_mariadb() as mariadb:
            redis = servers.find_redis()
            measured: dict[str, Callable[[], Outcome]] = {
                "drain": lambda: cases.drain(postgres, amounts, folder),
                "publish": lambda: cases.publish_batches(postgres, amounts, folder),
                "callers": lambda: cases.publish_alone(postgres, amounts, folder),
                "redis": lambda: cases.beside_redis(mariadb, redis.url, amounts, folder),
                "wake": lambda: _wake(postgres, mariadb, redis, amounts),
            }
            for name in chosen.only or NAMES:
                print(f"… {name}", file=sys.stderr, flush=True)
                outcome.add(measured[name]())
            # A quick or partial run must not replace the figures of a whole one.
            if not chosen.quick and not chosen.only:
                PAGE.write_text(page.render(outcome, postgres, mariadb, folder), "utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.show(outcome)
    return 1 if chosen.gate and any(not ratio.passed for ratio in outcome.ratios) else 0


if __name__ == "__main__":
    raise SystemExit(main())
