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
