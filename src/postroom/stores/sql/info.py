"""What can be said of a store from outside: for `store info` and `doctor`. Nothing is changed by asking."""

import msgspec


class StoreInfo(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    """Its address, without a password."""
    kind: str
    """The database and its version."""
    bytes: int
    rows: dict[str, int]
    """How many rows each table has."""
    settings: dict[str, str]
    """Those of the server that durability and size hang on."""
    warnings: list[str]
    """What should be otherwise, and how to change it."""


class StoreState(msgspec.Struct, frozen=True, kw_only=True):
    """How a store on a server fits this program and this machine, told without counting anything."""

    schema: int
    """The version of its tables; 0 where there are none."""
    newest: int
    """The one that this program makes and needs."""
    now: float
    """The server's clock, in seconds since 1970."""
