"""JSON in a column, opened all at once; a text that does not fit is looked at by itself.

What a text holds beside the fields asked for is passed over. A field of another kind than is asked for is
nothing, and so is every field of a text that is no JSON object.
"""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from postroom.kernel import jsontext
from postroom.pipeline.lake.compute import pc

_ONE_THREAD = 1 << 31


def open_json(texts: pa.Array, fields: pa.Schema) -> pa.Table:
    """A row with these fields for each text."""
    if not len(texts):
        return fields.empty_table()
    # Each then makes one row or more, so as many rows as texts are one for each.
    if not texts.null_count and pc.all(pc.starts_with(texts, "{")).as_py():
        try:
            found = _open_all(texts, fields)
            if found.num_rows == len(texts):
                return found.select(fields.names).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass  # one of them does not fit
    rows = [_open_one(text, fields) for text in texts.to_pylist()]
    return pa.Table.from_pylist(rows, fields)


def _open_all(texts: pa.Array, fields: pa.Schema) -> pa.Table:
    lines = pc.binary_join_element_wise(texts.cast(pa.binary()), b"\n", b"")
    _, places, values = lines.buffers()
    ends = np.frombuffer(places, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    held = pa.py_buffer(np.frombuffer(values, np.uint8)[ends[0] : ends[-1]])
    return pajson.read_json(
        pa.BufferReader(held),
        read_options=pajson.ReadOptions(use_threads=False, block_size=min(held.size + 1, _ONE_THREAD - 1)),
        parse_options=pajson.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
    )


def _open_one(text: str | None, fields: pa.Schema) -> dict[str, Any]:
    try:
        found = None if text is None else jsontext.decode(text)
    except (msgspec.DecodeError, RecursionError):
        found = None
    return (
        {field.name: _fit(found.get(field.name), field.type) for field in fields}
        if isinstance(found, dict)
        else {}
    )


def _fit(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else jsontext.text(value)
    if pa.types.is_list(kind):
        return [_fit(each, kind.value_type) for each in value] if isinstance(value, list) else None
    if pa.types.is_struct(kind):
        return (
            {each.name: _fit(value.get(each.name), each.type) for each in kind}
            if isinstance(value, dict)
            else None
        )
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << (kind.bit_width - 1)
    return value if fits else None
