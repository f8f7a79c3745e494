"""The address of a MariaDB database, `mariadb://user:password@host:port/database?unix_socket=…`."""

import socket
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import pymysql
from pymysql.constants import CLIENT

from postroom.errors import StoreFailed

CONNECT_S = 10
# Longer than a lock may be waited for; a server that says nothing for so long is gone.
ANSWER_S = 90
NO_SERVER = 2002
# A server that is cut off is given up after 11 seconds, where the system can do it.
_ALIVE = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (
            ("TCP_KEEPIDLE", 5),
            ("TCP_KEEPINTVL", 2),
            ("TCP_KEEPCNT", 3),
            ("TCP_USER_TIMEOUT", 11_000),
        )
        if hasattr(socket, name)
    ),
)
_OPTIONS = frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity"})
# Every assignment of an UPDATE sees what was there before, as elsewhere; `||` joins texts.
_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,PIPES_AS_CONCAT,SIMULTANEOUS_ASSIGNMENT"
_SESSION = (
    f"SET SESSION sql_mode = '{_MODE}', time_zone = '+00:00', innodb_lock_wait_timeout = 30,"
    # A process that stands still while it is read from or written to must not hold others up.
    " net_read_timeout = 10, net_write_timeout = 10,"
    # What is locked is found by the index that a statement names, row by row, however long its lists are.
    " join_cache_level = 0, in_predicate_conversion_threshold = 0, optimizer_max_sel_arg_weight = 0,"
    " eq_range_index_dive_limit = 10"
)
_ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"


class MariadbAddress(msgspec.Struct, frozen=True):
    place: str
    """Without a password."""
    options: dict[str, Any]

    def connect(self) -> "pymysql.Connection[Any]":
        db = pymysql.connect(
            defer_connect=True,
            charset="utf8mb4",
            collation="utf8mb4_nopad_bin",
            autocommit=True,
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
            write_timeout=ANSWER_S,
            client_flag=CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
            **self.options,
        )
        try:
            db.connect(self._open_socket())
            with db.cursor() as cursor:
                cursor.execute(_SESSION)
                cursor.execute(_ISOLATION)
        except BaseException:
            if db.open:
                db.close()
            raise
        return db

    def _open_socket(self) -> socket.socket:
        """The driver's own would wait for hours for a server that is cut off, and stay open when it fails."""
        found: socket.socket | None = None
        try:
            if "unix_socket" in self.options:
                found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                found.settimeout(CONNECT_S)
                found.connect(self.options["unix_socket"])
            else:
                found = socket.create_connection((self.options["host"], self.options["port"]), CONNECT_S)
                for level, name, value in _ALIVE:
                    found.setsockopt(level, name, value)
        except OSError as error:
            if found is not None:
                found.close()
            raise pymysql.err.OperationalError(NO_SERVER, f"no server answers there ({error})") from error
        return found


def read_address(url: str) -> MariadbAddress:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise StoreFailed(path="mariadb://…", reason=f"its address cannot be read ({error})") from None
    name = unquote(parts.path.removeprefix("/"))
    host = parts.hostname or "localhost"
    place = f"mariadb://{host}:{port or 3306}/{name}"
    if not name:
        raise StoreFailed(path=place, reason="its address names no database (mariadb://user@host/database)")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(given.keys() - _OPTIONS)
    if unknown:
        reason = f"its address has the option {unknown[0]}, and only {', '.join(sorted(_OPTIONS))} are known"
        raise StoreFailed(path=place, reason=reason)
    options: dict[str, Any] = {"host": host, "port": port or 3306, "database": name, **given}
    if "ssl_verify_identity" in given:
        options["ssl_verify_identity"] = given["ssl_verify_identity"] not in ("", "0", "false")
    # What stays on this machine need not be hidden on its way.
    options["ssl_disabled"] = "unix_socket" in given
    options["user"] = unquote(parts.username or "") or None
    options["password"] = unquote(parts.password or "")
    return MariadbAddress(place, options)
