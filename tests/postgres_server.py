"""A PostgreSQL server of the tests' own: in a temporary folder, on its own socket, gone with the process."""

import atexit
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import psycopg

from postroom.stores.postgres.dialect import HERE

# PostgreSQL refuses to run as root.
AS_POSTGRES = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
# Power cuts are not tried here, so nothing waits for the disk.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "listen_addresses": "",
    "max_connections": "200",
    "deadlock_timeout": "100ms",
    "shared_buffers": "32MB",
}


def find_programs() -> Path | None:
    """Where `initdb` and `postgres` are; Debian keeps them out of the PATH."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).parent] if on_path else []
    found += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True
    )
    return next((folder for folder in found if (folder / "initdb").exists()), None)


class Server:
    def __init__(self, programs: Path, folder: Path | None = None, within: Sequence[str] = ()) -> None:
        """`within`: what starts it elsewhere, such as on another host; then anybody may come in by TCP."""
        self._programs = programs
        self._within = within
        self.folder = folder or Path(tempfile.mkdtemp(prefix="postroom-pg-"))
        if AS_POSTGRES:
            shutil.chown(self.folder, "postgres")
        self._data = self.folder / "data"
        self._used_by: Path | None = None
        self._uses = 0
        self._run(
            "initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "-N"
        )
        if within:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all all trust\n")
        self.start()
        atexit.register(self.remove)

    def _run(self, program: str, *args: object) -> None:
        command = [*self._within, *AS_POSTGRES, str(self._programs / program), *map(str, args)]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self, **settings: str) -> None:
        chosen = {**SETTINGS, **settings, **({"listen_addresses": "*"} if self._within else {})}
        words = [f"-c {name}={value or chr(39) * 2}" for name, value in chosen.items()]
        options = f"-k {self.folder} {' '.join(words)}"
        self._run("pg_ctl", "-D", self._data, "-l", self.folder / "log", "-w", "-o", options, "start")

    def start_if_down(self) -> bool:
        status = [*AS_POSTGRES, str(self._programs / "pg_ctl"), "-D", str(self._data), "status"]
        is_down = subprocess.run(status, cwd="/", capture_output=True, check=False).returncode != 0
        if is_down:
            self.start()
        return is_down

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    def remove(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, schema: str) -> str:
        """The address of a schema, made when it is first asked for."""
        options = quote(f"-csearch_path={schema}")
        with psycopg.connect(self.address(), autocommit=True) as db:
            db.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'.encode())
        return f"{self.address()}&options={options}"

    def url_of_empty_room(self, folder: Path) -> str:
        """One schema serves test after test, since making it takes longer than most of them; it is emptied
        whenever another test asks."""
        url = self.url("room")
        if folder != self._used_by:
            self._used_by = folder
            self._uses += 1
            with psycopg.connect(url) as db:
                self._empty(db)
        return url

    def _empty(self, db: psycopg.Connection) -> None:
        rows = db.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'room'").fetchall()
        tables = [name for (name,) in rows if name != "meta"]
        if not tables:
            return
        words = [f"DELETE FROM {name}" for name in tables]
        if self._uses % 50 == 0:
            words = [f"TRUNCATE {', '.join(tables)}"]
        words.append("DELETE FROM meta WHERE name = 'move'")
        words.append("UPDATE meta SET value = '0' WHERE name = 'folded'")
        words.append("UPDATE meta SET value = 'ledger' WHERE name = 'sealed_by'")
        words.append(
            "SELECT setval(c.oid::regclass, 1, false) FROM pg_class c"
            " WHERE c.relkind = 'S' AND c.relnamespace = 'room'::regnamespace"
        )
        script = resources.files(HERE).joinpath("migrations", "0001_initial.sql").read_text("utf-8")
        words += re.findall(r"^INSERT INTO [^;]+", script, re.MULTILINE)
        db.execute(";".join(words).encode())

    def address(self) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(self.folder), safe='')}"


@functools.cache
def shared_server() -> Server | None:
    """One for all tests of this process; None where PostgreSQL is not installed."""
    programs = find_programs()
    return None if programs is None else Server(programs)
