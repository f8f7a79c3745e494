"""A table of the lake as a file: Parquet as it is, CSV with lists and bytes written as text."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

from postroom.errors import InvalidField
from postroom.terminal.cli.errors import FileTaken, NotWritten, Unclear
from postroom.terminal.cli.output import json_text


class Format(StrEnum):
    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


def chosen(as_: Format | None, out: Path | None, *, force: bool) -> Format:
    """What was asked for, else what the name of the file says."""
    if out is None:
        if as_ is Format.PARQUET:
            raise InvalidField("--out", "is needed: Parquet is no text for a terminal")
        return as_ or Format.TABLE
    if as_ is Format.TABLE:
        raise Unclear("--out writes CSV or Parquet: use --format csv or --format parquet")
    ending = out.suffix.removeprefix(".").lower()
    if as_ is None and ending not in (Format.CSV, Format.PARQUET):
        raise Unclear(f"{out} may be CSV or Parquet: say which with --format")
    if out.exists() and not force:
        raise FileTaken(path=str(out))
    return as_ or Format(ending)


def write(found: Any, as_: Format, out: Path | None) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    if out is None:
        sys.stdout.flush()
        pyarrow.csv.write_csv(_flat(found), sys.stdout.buffer)
        return
    try:
        if as_ is Format.PARQUET:
            pyarrow.parquet.write_table(found, str(out), compression="zstd")
        else:
            pyarrow.csv.write_csv(_flat(found), str(out))
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise NotWritten(path=str(out), reason=reason) from None


def _flat(found: Any) -> Any:
    import pyarrow as pa

    for number, field in enumerate(found.schema):
        nested = pa.types.is_nested(field.type)
        if nested or pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            texts = [_text(value) for value in found.column(number).to_pylist()]
            found = found.set_column(number, field.name, pa.array(texts, pa.string()))
    return found


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else json_text(value)
