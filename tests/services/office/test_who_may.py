"""The office is its owner's; an agent has what it needs for a turn, and nobody else anything."""

import asyncio
import inspect
from functools import cached_property
from typing import Any

import pytest

from postroom.services.errors import OwnerOnly
from postroom.services.office import OfficeServices
from postroom.services.use_cases import UseCases
from tests.services.office.conftest import ServedOffice

FOR_AGENTS = {
    "agents.directory",
    "conversations.write_to",
    "conversations.read_inbox",
    "conversations.search",
    "questions.ask",
    "questions.read",
    "tasks.list_all",
    "tasks.get",
    "tasks.add",
    "tasks.change",
    "tasks.comments",
    "tasks.count_comments",
    "tasks.comment",
}
NAMES = [name for name, found in vars(OfficeServices).items() if isinstance(found, cached_property)]


def methods(service: UseCases) -> dict[str, Any]:
    found = inspect.getmembers(service, inspect.iscoroutinefunction)
    return {name: method for name, method in found if not name.startswith("_")}


def arguments(method: Any) -> dict[str, Any]:
    """Something for every argument that must be given; who may not ask is refused before they are read."""
    _, *others = inspect.signature(method).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each for each in others if each.default is each.empty and each.kind not in variable]
    return {each.name: 1 if each.annotation in (int, float) else "a-name" for each in needed}


@pytest.mark.parametrize("name", NAMES)
async def test_nobody_but_the_owner_and_agents_in_a_turn_is_served(office: ServedOffice, name: str) -> None:
    service = getattr(office.services, name)
    assert methods(service)
    for method_name, method in methods(service).items():
        with pytest.raises(OwnerOnly):
            await method(office.stranger(), **arguments(method))
        if f"{name}.{method_name}" not in FOR_AGENTS:
            with pytest.raises(OwnerOnly):
                await method(office.agent("coder"), **arguments(method))


async def test_what_agents_may_is_not_refused_for_who_they_are(office: ServedOffice) -> None:
    for each in FOR_AGENTS:
        name, method_name = each.split(".")
        method = getattr(getattr(office.services, name), method_name)
        done = asyncio.ensure_future(method(office.agent("coder"), **arguments(method)))
        await asyncio.wait({done})
        assert not isinstance(done.exception(), OwnerOnly), each
