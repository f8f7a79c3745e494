"""`postroom pipeline describe` and `catalog`: what is in the lake, for people and for other engines."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from postroom.errors import InvalidField
from postroom.terminal.cli.errors import FileTaken, NotWritten
from postroom.terminal.cli.lake_access import LakeOption, lake_of
from postroom.terminal.cli.options import argument, choice, flag, option
from postroom.terminal.cli.output import some, table
from postroom.terminal.cli.store_access import CommandContext


class CatalogKind(StrEnum):
    DUCKDB = "duckdb"
    DUCKDB_FILES = "duckdb-files"
    SPARK = "spark"
    TRINO = "trino"


def describe(
    at: CommandContext,
    name: Annotated[
        str | None, argument("TABLE", "One table, like message_life. Default all, in a line.")
    ] = None,
    markdown: Annotated[bool, flag("All tables and columns as Markdown.", "--markdown")] = False,
) -> None:
    """Show what the tables of the lake and their columns mean."""
    from postroom.pipeline.lake.descriptions import TABLES, describe_column, kind_of, render_reference
    from postroom.pipeline.lake.tables import ALL, BY_SHORT

    if markdown:
        at.out.show({"markdown": render_reference()}, render_reference())
        return
    if name is None:
        at.out.show(
            [{"table": each.name, "one_row_is": TABLES[each.name], "key": list(each.key)} for each in ALL],
            table(["table", "one row is"], [(each.name, TABLES[each.name]) for each in ALL]),
        )
        return
    found = BY_SHORT.get(name.rpartition("/")[2])
    if found is None:
        raise InvalidField("TABLE", f"{name!r} is none of the lake; there are {', '.join(BY_SHORT)}")
    columns = [(each.name, kind_of(each.type), describe_column(found, each.name)) for each in found.schema]
    at.out.show(
        {
            "table": found.name,
            "one_row_is": TABLES[found.name],
            "key": list(found.key),
            "columns": [{"name": one, "type": kind, "meaning": told} for one, kind, told in columns],
        },
        f"{found.name}: one row is {TABLES[found.name]}. Key: {', '.join(found.key)}.",
        table(["column", "type", "meaning"], columns),
    )


def catalog(
    at: CommandContext,
    kind: Annotated[
        CatalogKind, choice(CatalogKind, "For which engine", "--for", default="duckdb")
    ] = CatalogKind.DUCKDB,
    lake: LakeOption = None,
    out: Annotated[Path | None, option("FILE", "Write it to this file.", "--out")] = None,
    force: Annotated[bool, flag("Replace the file if it is there.", "--force")] = False,
) -> None:
    """Write SQL with which another engine knows the tables of the lake.

    duckdb, spark and trino read Delta, always as it is then; duckdb-files needs no extension and is the lake
    as it is now.
    """
    from postroom.pipeline.serving.catalog import render_catalog

    text, tables = render_catalog(lake_of(at, lake), kind.value)
    if out is None:
        at.out.show({"sql": text}, text)
        return
    if out.exists() and not force:
        raise FileTaken(path=str(out))
    try:
        out.write_text(text, "utf-8")
    except OSError as error:
        raise NotWritten(path=str(out), reason=error.strerror) from error
    at.out.show({"file": str(out), "tables": tables}, f"{some(tables, 'table')} in {out}")
