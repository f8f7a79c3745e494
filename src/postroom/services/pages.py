"""Cursors: the id of the last thing of a page, which tells nothing about how much there is elsewhere."""

from postroom.errors import InvalidField


def bad_cursor(cursor: str) -> InvalidField:
    return InvalidField("cursor", f"{cursor!r} is not one that a listing gave")
