"""A MariaDB server of the tests' own: in a temporary folder, on its own socket, gone with the process."""

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql
from pymysql.constants import CLIENT

# The server refuses to run as root unless it is told whom to run as.
USER = ["--user=mysql"] if os.geteuid() == 0 else []
# A server may be killed, but power cuts are not tried here, so nothing waits for the disk.
SETTINGS = [
    "--no-defaults",
    "--skip-networking",
    "--skip-grant-tables",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--innodb-doublewrite=0",
    "--max-connections=200",
]
# What every room has, whatever was in it.
KEPT = frozenset({"meta", "locks"})
FIRST_FIGURES = (
    "INSERT INTO figures VALUES (0, 0, 'head', 0, REPEAT(x'00', 32), 0, 0),"
    " (0, 0, 'anchor', 0, REPEAT(x'00', 32), 0, 0), (0, 0, 'version', 0, NULL, NULL, NULL)"
)


def find_server() -> str | None:
    """Debian keeps it where only root looks."""
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class MariadbServer:
    def __init__(self, program: str, folder: Path | None = None, within: Sequence[str] = ()) -> None:
        """`within`: what starts it elsewhere, such as on another host; then anybody may come in by TCP."""
        self._program = program
        self._within = within
        self.folder = folder or Path(tempfile.mkdtemp(prefix="postroom-mariadb-"))
        if USER:
            shutil.chown(self.folder, "mysql")
        self._data = self.folder / "data"
        # Its own: a server that starts removes what others have in the folder that they share.
        self._temporary = self.folder / "temporary"
        self._temporary.mkdir()
        if USER:
            shutil.chown(self._temporary, "mysql")
        self.socket = self.folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None
        self._used_by: Path | None = None
        self._tables: list[str] | None = None
        command = ["mariadb-install-db", "--no-defaults", *USER, f"--datadir={self._data}"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-log-bin"]
        command.append(f"--tmpdir={self._temporary}")
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"mariadb-install-db: {done.stdout}{done.stderr}"
        self.start()
        atexit.register(self.remove)

    def start(self, *settings: str) -> None:
        command = [*self._within, self._program, *SETTINGS, *USER, *settings]
        command += ["--skip-networking=0", "--bind-address=0.0.0.0"] if self._within else []
        command += [f"--datadir={self._data}", f"--socket={self.socket}", f"--pid-file={self.folder / 'pid'}"]
        command.append(f"--tmpdir={self._temporary}")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log)
        end = time.monotonic() + 60
        while True:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
                    tried.connect(str(self.socket))
            except OSError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < end, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def start_if_down(self) -> bool:
        is_down = self._process is None or self._process.poll() is not None
        if is_down:
            self.start()
        return is_down

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            (self._process.kill if kill else self._process.terminate)()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop(kill=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self, database: str | None = None) -> "pymysql.Connection[Any]":
        try:
            return pymysql.connect(
                unix_socket=str(self.socket),
                user="root",
                database=database,
                autocommit=True,
                ssl_disabled=True,
                client_flag=CLIENT.MULTI_STATEMENTS,
            )
        except pymysql.err.OperationalError:
            # Crashed: its log says at what.
            if self._process is not None and self._process.poll() is not None:
                raise AssertionError((self.folder / "log").read_text()[-20000:]) from None
            raise

    def execute(self, sql: str, database: str | None = None) -> tuple[Any, ...]:
        """The rows of the last statement."""
        with self.connect(database) as db, db.cursor() as cursor:
            cursor.execute(sql)
            while cursor.nextset():
                pass
            return cursor.fetchall()

    def address(self, database: str) -> str:
        return f"mariadb://root@localhost/{database}?unix_socket={quote(str(self.socket), safe='')}"

    def url(self, database: str) -> str:
        """The address of a database, made when it is first asked for."""
        self.execute(f"CREATE DATABASE IF NOT EXISTS `{database}`")
        return self.address(database)

    def url_of_empty_room(self, folder: Path) -> str:
        """One database serves test after test, since making it takes longer than most of them; it is emptied
        whenever another test asks."""
        url = self.url("room")
        if folder != self._used_by:
            self._used_by = folder
            self._empty()
        return url

    def count_from_one(self) -> None:
        self._tables = None
        self.execute("DROP DATABASE IF EXISTS room")

    def _empty(self) -> None:
        if self._tables is None:
            rows = self.execute("SHOW FULL TABLES WHERE table_type = 'BASE TABLE'", "room")
            self._tables = [name for name, _ in rows if name not in KEPT] or None
        if self._tables is not None:
            words = [f"DELETE FROM {name}" for name in self._tables]
            words.append("DELETE FROM meta WHERE name = 'move'")
            self.execute(";".join([*words, FIRST_FIGURES]), "room")


@functools.cache
def shared_server() -> MariadbServer | None:
    """One for all tests of this process; None where MariaDB is not installed."""
    program = find_server()
    return None if program is None else MariadbServer(program)


def count_from_one() -> None:
    """The next room numbers its queues as a new one does, which takes too long to be done always."""
    server = shared_server()
    if server is not None:
        server.count_from_one()
