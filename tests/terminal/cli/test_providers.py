"""A provider is tried with one real request, and what is wrong is told with what to do."""

import asyncio
from typing import Any

import pytest

from tests.providers.model_server import model_server
from tests.terminal.cli.runner import Cli, Done


async def trying(cli: Cli, scenario: str, *more: str) -> tuple[Done, list[Any]]:
    async with model_server() as server:
        url = server.scenario(scenario, "/v1")
        await asyncio.to_thread(
            cli.ok, "provider", "add", "lab", "--url", url, "--harness", "api", "--model", "m"
        )
        done = await asyncio.to_thread(cli, "provider", "test", "custom:lab", *more)
        return done, server.received


async def test_a_provider_that_answers_is_told_with_its_words_and_after_how_long(cli: Cli) -> None:
    done, received = await trying(cli, "ok", "--json")
    assert done.code == 0, done.err
    [told] = done.json
    assert (told["provider"], told["model"], told["problem"]) == ("custom:lab", "m", "")
    assert told["answer"]
    assert told["seconds"] >= 0
    assert len(received) == 1, "one request, no more"


@pytest.mark.parametrize(
    ("scenario", "kind"), [("e401", "auth"), ("e404", "invalid"), ("e503", "overloaded")]
)
async def test_one_that_does_not_is_told_with_the_reason_and_ends_with_1(
    cli: Cli, scenario: str, kind: str
) -> None:
    done, _ = await trying(cli, scenario, "--json")
    assert done.code == 1
    [told] = done.json
    assert (told["kind"], told["answer"]) == (kind, "")
    assert told["problem"]


def test_without_a_name_those_of_all_agents_are_tried_once_each(cli: Cli) -> None:
    cli.ok("agent", "add", "coder", "--name", "Coder", "--provider", "script")
    cli.ok("agent", "add", "writer", "--name", "Writer", "--provider", "script")
    [told] = cli.json("provider", "test")
    assert (told["provider"], told["problem"]) == ("script", "")


def test_an_unknown_provider_is_refused_before_anything_is_asked(cli: Cli) -> None:
    assert cli("provider", "test", "anthropc").code == 2
    assert "custom provider 'nowhere' not found" in cli("provider", "test", "custom:nowhere").err


def test_settings_can_be_listed_by_part(cli: Cli) -> None:
    rows = cli.json("settings", "list", "budgets")
    assert {row["name"].partition(".")[0] for row in rows} == {"budgets"}
    assert cli("settings", "list", "nothing").code == 2
    assert cli.json("settings", "get", "budgets.daily_usd") == {"budgets.daily_usd": 100}
