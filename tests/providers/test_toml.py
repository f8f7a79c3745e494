"""What is written is read back the same by Python's own parser."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from postroom.providers.toml import toml

_texts = st.text(st.characters(codec="utf-8"), max_size=20)
_tables: Any = st.recursive(
    st.dictionaries(_texts, _texts | st.booleans() | st.integers(-9, 9) | st.lists(_texts), max_size=4),
    lambda inner: st.dictionaries(_texts, inner | _texts, max_size=3),
    max_leaves=5,
)


@given(_tables)
def test_every_table_survives_the_way_through_toml(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml(table)) == table


def test_a_prompt_with_everything_in_it_survives() -> None:
    text = 'He said "hi" \\ \'\'\' """ \x7f \x01 \u2028 🙂\r\n\ttab'
    assert tomllib.loads(toml({"developer_instructions": text})) == {"developer_instructions": text}
