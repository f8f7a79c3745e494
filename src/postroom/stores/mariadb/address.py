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
_OPTIONS = frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity"})
# Every assignment of an UPDATE sees what was there before, as elsewhere; `||` joins texts.
_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,PIPES_AS_CONCAT,SIMULTANEOUS_ASSIGNMENT"
_SESSION = (
    f"SET SESSION sql_mode = '{_MODE}', time_zone = '+00:00', innodb_lock_wait_timeout = 30,"
    # A process that stands still must not hold others up: for less than they wait for a lock.
    " idle_transaction_timeout = 20,"
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

    def _open_socket(self) -> socket.socket | None:
        """Of this machine's server; the driver opens others, and leaves this one open when it fails."""
        if "unix_socket" not in self.options:
            return None
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.settimeout(CONNECT_S)
            found.connect(self.options["unix_socket"])
        except OSError as error:
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
