"""PgBouncer before the tests' PostgreSQL, in transaction mode: each transaction may get another session."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests import postgres_server

PORT = 6432
CONFIG = """
[databases]
postgres = host={server} dbname=postgres user=postgres connect_query='SET search_path = room'
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 4
logfile = {folder}/log
"""


@contextlib.contextmanager
def before(server: postgres_server.Server) -> Iterator[str]:
    """The address of the room behind it."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed: apt-get install pgbouncer")
    folder = Path(tempfile.mkdtemp(prefix="postroom-pgbouncer-"))
    config = folder / "config"
    config.write_text(CONFIG.format(server=server.folder, port=PORT, folder=folder))
    folder.chmod(0o777)
    process = subprocess.Popen(
        [*postgres_server.AS_POSTGRES, program, "--quiet", str(config)], cwd="/", stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while not _answers(folder):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, "PgBouncer does not start"
            time.sleep(0.02)
        yield f"postgresql://postgres@/postgres?host={quote(str(folder), safe='')}&port={PORT}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _answers(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried, contextlib.suppress(OSError):
        tried.connect(str(folder / f".s.PGSQL.{PORT}"))
        return True
    return False
