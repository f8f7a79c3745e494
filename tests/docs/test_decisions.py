"""Every decision record has a number of its own, a date and a status, and the index names it."""

import re
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
HEAD = re.compile(
    r"# (\d{3}) \S.*\n\nDate: \d{4}-\d\d-\d\d · Status: (accepted|superseded by \d{3})", re.ASCII
)


def records() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def test_each_record_begins_with_its_number_date_and_status() -> None:
    for path in records():
        head = HEAD.match(path.read_text("utf-8"))
        assert head, f"{path.name} must begin: # NNN Title, then Date: YYYY-MM-DD · Status: accepted"
        assert head[1] == path.name[:3]


def test_no_two_records_share_a_number() -> None:
    numbers = Counter(path.name[:3] for path in records())
    assert [number for number, count in numbers.items() if count > 1] == []


def test_the_index_names_every_record() -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    assert sorted(set(re.findall(r"\((\d{3}-[\w-]+\.md)\)", index))) == [path.name for path in records()]
