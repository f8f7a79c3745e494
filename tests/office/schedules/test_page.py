"""The page about schedules says what is so."""

import re
from pathlib import Path
from typing import Any

import msgspec
from tests.office.schedules.desk import a_book, moment

from postroom import Room
from postroom.clock import ManualClock
from postroom.kernel.schedules.cron import NICKNAMES
from postroom.office.schedules import Cron, Missed

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "schedules.md").read_text("utf-8")


def test_every_expression_of_the_page_is_understood() -> None:
    table = PAGE.partition("## Expressions")[2].partition("##")[0]
    shown = [
        cell for cell in re.findall(r"`([^`]+)`", table) if cell[0] in "@0123456789" and cell not in "07"
    ]
    expressions = [cell for cell in shown if cell.startswith("@") or len(cell.split()) >= 5]
    assert len(expressions) >= 10
    for expression in expressions:
        assert Cron(expression).next(moment("2026-01-01T00:00Z")) is not None
    assert set(NICKNAMES) <= set(expressions)


async def test_the_example_of_the_page_runs(room: Room, clock: ManualClock) -> None:
    [block] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

    class Office(msgspec.Struct):
        schedules: object

    office = Office(a_book(room, clock))
    lines = "\n".join(f"    {line}" for line in block.splitlines())
    scope: dict[str, Any] = {}
    exec(f"async def example(office, moment):\n{lines}", scope)
    await scope["example"](office, clock.now() + 5)
    assert {schedule.to for schedule in await a_book(room, clock).all()} == {"coder", "dev", "lead"}


def test_every_policy_is_on_the_page() -> None:
    for policy in Missed:
        assert f"| `{policy.value}` |" in PAGE
