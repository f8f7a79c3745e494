"""What SQLite's errors mean to the person who must act on them."""

import contextlib
from collections.abc import Iterator

import apsw

from postroom.errors import StoreCorrupt, StoreError, StoreFailed, StoreFull, StoreReadOnly


def named(error: apsw.Error, path: str) -> StoreError:
    reason = str(error) or type(error).__name__
    if isinstance(error, apsw.FullError):
        return StoreFull(path=path)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreCorrupt(path=path, problem=reason)
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError):
        return StoreReadOnly(path=path, reason=reason)
    return StoreFailed(path=path, reason=reason)


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise named(error, path) from error
