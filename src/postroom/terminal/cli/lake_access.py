"""The lake and the store that commands are about, by what was said or by where they usually are."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from postroom.errors import PostroomError
from postroom.terminal.cli.errors import NoStore
from postroom.terminal.cli.options import option
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postroom.pipeline.lake.lake import Lake
    from postroom.pipeline.serving.engine import QueryEngine
    from postroom.pipeline.sources.sqlite import SqliteSource

LakeOption = Annotated[
    str | None,
    option("PATH", "The lake: a folder or an object-store URL. Default: lake, beside the store.", "--lake"),
]


def lake_of(at: CommandContext, named: str | None) -> "Lake":
    from postroom.pipeline.errors import PartMissing

    try:
        from postroom.pipeline.lake.lake import Lake
    except ImportError as error:
        raise PartMissing(package=error.name or "deltalake") from error
    where = named or os.environ.get("POSTROOM_LAKE") or str(at.lake_folder)
    return Lake(where if "://" in where else str(Path(where).expanduser().absolute()))


def source_of(at: CommandContext, feed: str | None = None) -> "SqliteSource":
    from postroom.pipeline.sources.sqlite import SqliteSource, open_source

    if at.has_server:
        return open_source(at.url)  # which every executor reaches by itself
    path = at.path
    if not path.is_file():
        raise NoStore(path=str(path))
    source = SqliteSource(str(path.absolute()))
    feed = feed or os.environ.get("POSTROOM_SPARK_FEED")
    if not feed:
        return source
    from postroom.app.home import Home
    from postroom.pipeline.sources.feed import fed
    from postroom.terminal.cli.connection import token_of

    return fed(source, feed, token_of(Home.of()))


def find_source(at: CommandContext) -> "SqliteSource | None":
    """None where there is no store, or its server is away: then the lake answers alone."""
    if at.has_server:
        source = source_of(at)
        try:
            source.snapshot()
        except PostroomError as error:
            at.out.note(str(error))
            return None
        return source
    return source_of(at) if at.has_file else None


@contextmanager
def light(at: CommandContext, lake: str | None) -> "Iterator[QueryEngine]":
    found = lake_of(at, lake)
    from postroom.pipeline.serving.engine import engine

    with engine(found) as opened:
        yield opened
