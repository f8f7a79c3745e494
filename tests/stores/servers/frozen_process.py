"""A process that is to be frozen: `URL STAGE` opens a room, goes into a transaction with all that it can
hold, and stands still there. Its other writers wait behind it, as they do in a busy process.
"""

import sys
import threading
from typing import Any

import postroom
from postroom.stores.mariadb.connection import MariadbWriteConnection
from postroom.stores.postgres.connection import PostgresWriteConnection

WRITERS = 3
# More than the buffers between the server and a client that does not read.
MANY_BYTES = 15_000_000


_is_held = threading.Event()


def stand_still() -> None:
    _is_held.set()
    threading.Event().wait()


def hold_between_statements(connection: Any) -> None:
    stand_still()


def hold_while_sending(connection: Any) -> None:
    """The server has heard the beginning of what goes together, and hears no more."""
    if isinstance(connection, PostgresWriteConnection):
        with connection.db.pipeline():
            connection._send_waiting()
            connection.db.pgconn.send_flush_request()
            connection.db.pgconn.flush()
            stand_still()
    assert isinstance(connection, MariadbWriteConnection)
    said = b"\x03" + b";".join([*connection._waiting, b"COMMIT"])
    connection.db._sock.sendall(len(said).to_bytes(3, "little") + b"\x00" + said[:-3])  # type: ignore[union-attr]
    stand_still()


def hold_while_reading(connection: Any) -> None:
    """The server has more to say than anybody reads."""
    if isinstance(connection, PostgresWriteConnection):
        connection.db.pgconn.send_query(f"SELECT repeat('x', {MANY_BYTES})".encode())
    else:
        assert isinstance(connection, MariadbWriteConnection)
        said = b"\x03SELECT repeat('x', %d)" % MANY_BYTES
        connection.db._sock.sendall(len(said).to_bytes(3, "little") + b"\x00" + said)  # type: ignore[union-attr]
    stand_still()


STAGES = {
    "between statements": hold_between_statements,
    "while it sends": hold_while_sending,
    "while it reads": hold_while_reading,
}


def main(url: str, stage: str) -> None:
    kind = PostgresWriteConnection if url.startswith("postgres") else MariadbWriteConnection
    with postroom.open_sync(url, actor="frozen", housekeeping=False) as room:
        kind.commit = STAGES[stage]  # type: ignore[method-assign]
        for number in range(WRITERS):
            threading.Thread(target=room.publish, args=("jobs", number), daemon=True).start()
            assert _is_held.wait(60)
        print("held", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
