"""Cursors: the id of the last thing of a page, which tells nothing about how much there is elsewhere."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Query

from postroom.errors import InvalidField

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before")]


def cut(
    things: Sequence[Any], cursor: str | None, limit: int, name: str = "id"
) -> tuple[list[Any], str | None]:
    """A page of a list that is all there, and the cursor of the next."""
    start = 0
    if cursor is not None:
        places = [place for place, thing in enumerate(things) if thing[name] == cursor]
        if not places:
            raise InvalidField("cursor", f"{cursor!r} is not one that a listing gave")
        start = places[0] + 1
    page = list(things[start : start + limit])
    more = len(things) > start + limit
    return page, page[-1][name] if more else None
