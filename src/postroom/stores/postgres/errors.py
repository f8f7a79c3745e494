"""What PostgreSQL's errors mean: to the runtime, whether to try again; to a person, what to do."""

import psycopg
from psycopg import errors as pg
from psycopg_pool import PoolClosed, PoolTimeout

from postroom.errors import StoreClosed, StoreError, StoreFailed, StoreFull, StoreReadOnly
from postroom.kernel.ports import StoreFault
from postroom.stores.sql.contention import CommitUnknown, MustWait, Overtaken

_AGAIN = (
    MustWait,
    pg.DeadlockDetected,
    pg.SerializationFailure,
    pg.LockNotAvailable,
    pg.IdleInTransactionSessionTimeout,
    pg.TooManyConnections,
    PoolTimeout,
)
_TOGETHER = (Overtaken, pg.UniqueViolation)


def classify(error: Exception, place: str) -> tuple[StoreFault, Exception]:
    if isinstance(error, _TOGETHER):
        return StoreFault.DUPLICATE, _name(error, place)
    if isinstance(error, pg.DiskFull):
        return StoreFault.FINAL, StoreFull(path=place)
    if isinstance(error, PoolClosed):
        return StoreFault.FINAL, StoreClosed()
    if isinstance(error, _AGAIN) or is_lost(error):
        return StoreFault.RETRY, _name(error, place)
    if isinstance(error, psycopg.Error | CommitUnknown):
        return StoreFault.FINAL, _name(error, place)
    return StoreFault.FINAL, error


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, or the server is going down or coming up."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    return error.sqlstate is None or error.sqlstate[:2] in ("08", "57")


def _name(error: Exception, place: str) -> StoreError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    if isinstance(error, pg.ReadOnlySqlTransaction | pg.InsufficientPrivilege):
        return StoreReadOnly(path=place, reason=reason)
    return StoreFailed(path=place, reason=reason)
