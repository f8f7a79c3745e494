"""The page about states says what the code does."""

import re
from pathlib import Path

from postroom.kernel.states import TRANSITIONS

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "states.md"


def test_the_table_of_the_page_is_the_table_of_the_code() -> None:
    rows = re.findall(r"^\| `(message\.\w+)` \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    told = {
        change: (
            set(re.findall(r"`(\w+)`", source)) or {"nothing"},
            set(re.findall(r"`(\w+)`", target)) or source,
        )
        for change, source, target in rows
    }
    known = {}
    for change, pairs in TRANSITIONS.items():
        sources = {source.value if source else "nothing" for source, _ in pairs}
        targets = {target.value for _, target in pairs}
        known[change.value] = (sources, targets)
    assert set(told) == set(known)
    for change, (sources, targets) in known.items():
        assert told[change][0] == sources, change
        if change != "message.reordered":
            assert told[change][1] == targets, change
