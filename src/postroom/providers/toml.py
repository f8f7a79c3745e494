"""Just enough TOML to write a configuration file; Python only reads it."""

import json
from typing import TypeAlias

Value: TypeAlias = "str | bool | int | float | list[str] | Table"
Table: TypeAlias = "dict[str, Value]"


def toml(table: Table) -> str:
    return "\n".join(_lines(table, ())) + "\n"


def _lines(table: Table, path: tuple[str, ...]) -> list[str]:
    lines = [
        f"{_string(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict)
    ]
    for key, value in table.items():
        if isinstance(value, dict):
            inner = (*path, key)
            lines += ["", f"[{'.'.join(map(_string, inner))}]", *_lines(value, inner)]
    return lines


def _value(value: "Value") -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_string, value))}]"
    return str(value)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, and for the surrogate pairs that ASCII output would bring.
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007f")
