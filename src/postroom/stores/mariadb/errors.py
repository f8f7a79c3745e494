"""What MariaDB's errors mean: to the runtime, whether to try again; to a person, what to do."""

import re

import pymysql

from postroom.errors import InvalidField, StoreClosed, StoreError, StoreFailed, StoreFull, StoreReadOnly
from postroom.kernel.ports import StoreFault
from postroom.stores.sql.contention import CommitUnknown, MustWait, Overtaken


class PoolDrained(Exception):
    """Every connection is in use for too long."""


class PoolShut(Exception):
    """The store was closed meanwhile."""


class PacketTooLarge(Exception):
    """One row is larger than the server takes at once; set its max_allowed_packet higher."""


# A snapshot that is too old, a lock that was waited for too long, a deadlock.
_CROSSED = frozenset({1020, 1205, 1213})
_BUSY = frozenset({1040, 1203, 1226})
# The server is going down, has killed or timed out the session, or the connection is gone.
_LOST = frozenset(
    {1053, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031}
)
_DUPLICATE = frozenset({1062})
_FULL = frozenset({1021, 1114})
_REFUSED = frozenset({1044, 1142, 1143, 1227, 1290, 1792, 1836})
_TOO_LONG = 1406


def code_of(error: BaseException) -> int:
    """0 when it has none: the driver has lost its connection."""
    first = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else 0
    return first if isinstance(first, int) else 0


def is_lost(error: BaseException) -> bool:
    if isinstance(error, pymysql.err.InterfaceError):
        return True
    return isinstance(error, pymysql.MySQLError) and code_of(error) in _LOST


def classify(error: Exception, place: str) -> tuple[StoreFault, Exception]:
    code = code_of(error)
    if isinstance(error, Overtaken) or code in _DUPLICATE:
        return StoreFault.DUPLICATE, _name(error, place)
    if code in _FULL:
        return StoreFault.FINAL, StoreFull(path=place)
    if isinstance(error, PoolShut):
        return StoreFault.FINAL, StoreClosed()
    if isinstance(error, MustWait | PoolDrained) or code in _CROSSED | _BUSY or is_lost(error):
        return StoreFault.RETRY, _name(error, place)
    if code == _TOO_LONG:
        column = re.search(r"column '(\w+)'", str(error))
        return StoreFault.FINAL, InvalidField(
            column[1] if column else "text", "is longer than MariaDB can keep"
        )
    if isinstance(error, pymysql.MySQLError | CommitUnknown | PacketTooLarge):
        return StoreFault.FINAL, _name(error, place)
    return StoreFault.FINAL, error


def _name(error: Exception, place: str) -> StoreError:
    told = error.args[1] if isinstance(error, pymysql.MySQLError) and len(error.args) > 1 else error
    reason = (str(told).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    if code_of(error) in _REFUSED:
        return StoreReadOnly(path=place, reason=reason)
    return StoreFailed(path=place, reason=reason)
