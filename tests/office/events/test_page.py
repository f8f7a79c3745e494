"""The page about events names those that there are, with their fields."""

import re
from pathlib import Path

from tests.office.events.test_recorded import OLD_FIELDS, recorded

from postroom.office.events import NEW, OLD

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "events.md"


def rows() -> dict[str, str]:
    return dict(re.findall(r"^\| `([a-z_]+(?::[a-z]+)?)` \| (.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE))


def test_the_page_names_every_event() -> None:
    assert rows().keys() >= NEW | OLD


def test_the_page_names_their_fields() -> None:
    shown = rows()
    for each in recorded("sse_team_handoff"):
        assert re.findall(r"`(\w+)`", shown[each["event"]])[: len(each["data"]) - 2] == list(each["data"])[2:]
    for name, fields in OLD_FIELDS.items():
        if not shown[name].startswith("as "):
            assert re.findall(r"`(\w+)`", shown[name]) == fields
