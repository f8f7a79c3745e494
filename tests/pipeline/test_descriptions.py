"""Every column of the lake is described once, and the reference says what the tables are."""

from pathlib import Path

from postroom.pipeline.lake.descriptions import OWN, SHARED, TABLES, describe_column, render_reference
from postroom.pipeline.lake.tables import ALL

PAGE = Path(__file__).parents[2] / "docs/reference/lake-columns.md"


def test_every_table_and_every_column_is_described() -> None:
    assert set(TABLES) == {table.name for table in ALL}
    missing = [
        f"{table.name}.{name}"
        for table in ALL
        for name in table.schema.names
        if name not in OWN.get(table.name, {}) and name not in SHARED
    ]
    assert missing == []


def test_nothing_is_described_that_is_not_there() -> None:
    columns = {table.name: set(table.schema.names) for table in ALL}
    assert [
        f"{table}.{name}" for table, own in OWN.items() for name in own if name not in columns[table]
    ] == []
    assert set(SHARED) <= set().union(*columns.values())


def test_the_reference_is_as_the_tables_are_declared() -> None:
    assert PAGE.read_text("utf-8") == render_reference(), "postroom pipeline describe --markdown > the page"
    assert all(describe_column(table, name) in render_reference() for table in ALL for name in table.key)
