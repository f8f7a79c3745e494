"""What the addresses of stores begin with, and which extra of the package each needs."""

import contextlib
from collections.abc import Iterator

from postroom.errors import StoreNeedsExtra

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
MARIADB = ("mariadb://",)
SERVERS = (*POSTGRES, *MARIADB)
REDIS = ("redis://", "rediss://", "unix://")


@contextlib.contextmanager
def needing_extra(extra: str) -> Iterator[None]:
    """Around imports of a library that comes with an extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise StoreNeedsExtra(url=f"{extra}://", extra=extra, module=error.name) from error
