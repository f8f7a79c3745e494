"""The lake for other engines: SQL that makes its tables known to DuckDB, Spark SQL or Trino."""

from collections.abc import Callable

from postroom.pipeline.errors import LakeMissing
from postroom.pipeline.lake.descriptions import TABLES
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import ALL, Table

_TYPES = {"day": "DATE", "month": "VARCHAR"}


def render_catalog(lake: Lake, kind: str) -> tuple[str, int]:
    """The statements, and of how many tables."""
    there = [table for table in ALL if lake.exists(table)]
    if not there:
        raise LakeMissing(lake=lake.location)
    begin, of_table = _WAYS[kind]
    named = _layer_in_duckdb if kind.startswith("duckdb") else _layer
    layers = dict.fromkeys(named(table) for table in there)
    lines = [begin] if begin else []
    lines += [f"CREATE SCHEMA IF NOT EXISTS {layer};" for layer in layers]
    for table in there:
        lines += ["", f"-- one row is {TABLES[table.name]}", of_table(lake, table)]
    return "\n".join(lines) + "\n", len(there)


def _delta_in_duckdb(lake: Lake, table: Table) -> str:
    place = _quoted(_place(lake, table))
    name = f"{_layer_in_duckdb(table)}.{table.short}"
    return f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM delta_scan({place});"  # noqa: S608 - a file


def _files_in_duckdb(lake: Lake, table: Table) -> str:
    files, name = lake.files(table), f"{_layer_in_duckdb(table)}.{table.short}"
    if not files:
        kinds = ", ".join(f'NULL AS "{name}"' for name in table.schema.names)
        return f"CREATE OR REPLACE VIEW {name} AS SELECT {kinds} LIMIT 0;"
    places = ", ".join(_quoted(file.uri) for file in files)
    cut = ""
    if table.cut:
        cut = f", hive_partitioning = true, hive_types = {{'{table.cut}': {_TYPES[table.cut]}}}"
    names = ", ".join(f'"{name}"' for name in table.schema.names)
    return (
        f"CREATE OR REPLACE VIEW {name} AS SELECT {names} "  # noqa: S608 - a file
        f"FROM read_parquet([{places}], union_by_name = true{cut});"
    )


def _in_spark(lake: Lake, table: Table) -> str:
    return f"CREATE TABLE IF NOT EXISTS {_name(table)} USING delta LOCATION {_quoted(_place(lake, table))};"


def _in_trino(lake: Lake, table: Table) -> str:
    return (
        f"CALL system.register_table(schema_name => '{table.layer}', table_name => '{table.short}', "
        f"table_location => {_quoted(_place(lake, table))});"
    )


_WAYS: dict[str, tuple[str, Callable[[Lake, Table], str]]] = {
    "duckdb": ("INSTALL delta; LOAD delta;", _delta_in_duckdb),
    "duckdb-files": ("", _files_in_duckdb),
    "spark": ("", _in_spark),
    "trino": ("", _in_trino),
}


def _name(table: Table) -> str:
    return f"{table.layer}.{table.short}"


def _layer(table: Table) -> str:
    return table.layer


def _layer_in_duckdb(table: Table) -> str:
    """A database without a file is called `memory` there, so no schema may be."""
    return "lake_memory" if table.layer == "memory" else table.layer


def _place(lake: Lake, table: Table) -> str:
    place = lake.uri(table)
    return f"file://{place}" if place.startswith("/") else place


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
