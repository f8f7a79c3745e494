"""Both HTTP APIs through their official packages, against a server on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.providers import (
    Cause,
    ErrorKind,
    Finished,
    Provider,
    TextChunk,
    TurnLimits,
    TurnRequest,
    Usage,
    Utterance,
)
from postroom.providers import api as api_module
from postroom.providers.anthropic_api import AnthropicApi
from postroom.providers.openai_api import OpenAIApi
from tests.providers.conftest import tell, until
from tests.providers.model_server import ModelServer, model_server

K, C = ErrorKind, Cause
REPLY = "Hello from the fake — model."
Connect = Callable[..., Provider]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server() as served:
        yield served


@pytest.fixture(params=["anthropic", "openai"])
def flavour(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def connect(flavour: str, server: ModelServer, still: ManualClock) -> Connect:
    """`connect("e429")` is a provider whose server plays that scenario."""

    def connected(scenario: str = "ok", **options: Any) -> Provider:
        options = {"api_key": "sk-test-key", "clock": still, **options}
        if flavour == "anthropic":
            return AnthropicApi(base_url=server.scenario(scenario), **options)
        return OpenAIApi(base_url=server.scenario(scenario, "/v1"), **options)

    return connected


def ask(prompt: str = "hello", **fields: Any) -> TurnRequest:
    fields = {"model": "some-model", "limits": TurnLimits(wall_clock=200, idle=100), **fields}
    return TurnRequest(agent_id="coder", prompt=prompt, workspace=Path("/"), **fields)


async def test_an_answer_streams_in_and_ends_whole(connect: Connect) -> None:
    told = await tell(connect(), ask())
    assert told.answer == REPLY
    assert [chunk.text for chunk in told.of(TextChunk)] == ["Hello ", "from ", "the ", "fake — ", "model."]


async def test_usage_counts_the_cache_apart(connect: Connect, flavour: str, server: ModelServer) -> None:
    usage = (await tell(connect(), ask())).usage
    assert (usage.cache_read_tokens, usage.output_tokens) == (900, 25)
    assert (usage.input_tokens, usage.cache_write_tokens) == (
        (20, 300) if flavour == "anthropic" else (320, 0)
    )
    assert usage.model == "some-model"
    assert usage.vendor.startswith(server.url)
    assert usage.cost_usd is None


async def test_the_history_and_the_system_prompt_are_sent(
    connect: Connect, server: ModelServer, flavour: str
) -> None:
    history = (
        Utterance("assistant", "I begin"),
        Utterance("user", "first"),
        Utterance("assistant", "answer"),
        Utterance("user", " "),
    )
    await tell(connect(), ask("second", history=history, system_prompt="be nice"))
    body = server.received[0].body
    conversation = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "second"},
    ]
    if flavour == "anthropic":
        assert (body["system"], body["messages"]) == ("be nice", conversation)
    else:
        assert body["messages"] == [{"role": "system", "content": "be nice"}, *conversation]
    assert body["stream"] is True


async def test_an_id_names_the_history_the_caller_keeps(connect: Connect) -> None:
    assert (await tell(connect(), ask(session_id="kept"))).session == "kept"
    first, second = [await tell(connect(), ask()) for _ in range(2)]
    assert first.session != second.session


@pytest.mark.parametrize(
    ("scenario", "kind", "cause"),
    [
        ("e400", K.INVALID, C.UNKNOWN),
        ("e401", K.AUTH, C.UNKNOWN),
        ("e403", K.AUTH, C.UNKNOWN),
        ("e404", K.INVALID, C.MODEL),
        ("quota", K.AUTH, C.QUOTA),
        ("credit", K.AUTH, C.QUOTA),
        ("e429", K.RATE_LIMIT, C.UNKNOWN),
        ("e500", K.OVERLOADED, C.SERVER),
        ("e503", K.OVERLOADED, C.UNKNOWN),
        ("e529", K.OVERLOADED, C.UNKNOWN),
        ("midstream", K.OVERLOADED, C.UNKNOWN),
        ("cut", K.OVERLOADED, C.STREAM_CUT),
        ("context", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("e413", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("refusal", K.REFUSED, C.UNKNOWN),
    ],
)
async def test_a_failure_is_of_the_kind_the_server_says(
    connect: Connect, server: ModelServer, scenario: str, kind: ErrorKind, cause: Cause
) -> None:
    failed = (await tell(connect(scenario), ask())).failed
    assert (failed.kind, failed.cause) == (kind, cause), failed.detail
    assert "sk-fake" not in failed.detail
    assert len(server.received) == 1  # trying again is the queue's business


@pytest.mark.parametrize(
    ("scenario", "seconds"), [("e429", 7), ("e429ms", 1.5), ("e429date", 30), ("e529", 3), ("e503", None)]
)
async def test_when_to_come_back_is_passed_on(
    connect: Connect, still: ManualClock, scenario: str, seconds: float | None
) -> None:
    failed = (await tell(connect(scenario), ask())).failed
    assert failed.retry_at == (None if seconds is None else still.now() + round(seconds * SECOND))


async def test_an_answer_cut_by_the_token_limit_says_so(connect: Connect, flavour: str) -> None:
    reason = "max_tokens" if flavour == "anthropic" else "length"
    assert (await tell(connect("length"), ask())).verdict == Finished(text=REPLY, stop_reason=reason)


async def test_an_empty_answer_is_an_answer(connect: Connect) -> None:
    assert (await tell(connect("empty"), ask())).answer == ""


async def test_an_answer_that_breaks_off_is_paid_for_as_far_as_is_known(
    connect: Connect, flavour: str
) -> None:
    told = await tell(connect("midstream"), ask())
    assert bool(told.of(Usage)) == (flavour == "anthropic")  # the other tells its count at the end only


@pytest.mark.parametrize("scenario", ["silent", "stall"])
async def test_a_server_that_falls_silent_is_left_after_the_idle_limit(
    connect: Connect, server: ModelServer, scenario: str
) -> None:
    await tell(connect(), ask())  # the package is loaded by now
    request = ask(limits=TurnLimits(wall_clock=600, idle=1.0))
    failed = (await tell(connect(scenario), request)).failed
    assert (failed.kind, failed.cause) == (ErrorKind.TIMED_OUT, Cause.IDLE)
    await asyncio.wait_for(server.dropped.wait(), 60)


async def test_a_turn_ends_at_the_wall_clock_limit(connect: Connect) -> None:
    request = ask(limits=TurnLimits(wall_clock=0.25, idle=600))
    failed = (await tell(connect("drip"), request)).failed
    assert (failed.kind, failed.cause) == (ErrorKind.TIMED_OUT, Cause.WALL_CLOCK)


async def test_an_answer_beyond_the_output_limit_is_stopped(connect: Connect) -> None:
    request = ask(limits=TurnLimits(wall_clock=200, idle=100, output_bytes=10_000))
    failed = (await tell(connect("flood"), request)).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.OUTPUT_LIMIT)


async def test_closing_a_turn_hangs_up(connect: Connect, server: ModelServer) -> None:
    stream = connect("stall").run(ask())
    async for event in stream:
        if isinstance(event, TextChunk):
            break
    await stream.aclose()
    await asyncio.wait_for(server.dropped.wait(), 60)


async def test_cancelling_a_turn_hangs_up(connect: Connect, server: ModelServer) -> None:
    turn = asyncio.create_task(tell(connect("stall"), ask()))
    await until(lambda: bool(server.received))
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await asyncio.wait_for(server.dropped.wait(), 60)


async def test_a_server_that_cannot_be_reached_is_a_matter_of_the_network(
    flavour: str, still: ManualClock
) -> None:
    make = AnthropicApi if flavour == "anthropic" else OpenAIApi
    failed = (await tell(make(api_key="sk-test", base_url="http://127.0.0.1:9", clock=still), ask())).failed
    assert (failed.kind, failed.cause) == (ErrorKind.OVERLOADED, Cause.NETWORK)


async def test_a_missing_package_is_told_with_how_to_install_it(
    connect: Connect, flavour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(api_module.importlib, "import_module", missing)
    failed = (await tell(connect(), ask())).failed
    assert failed.kind is ErrorKind.NOT_INSTALLED
    assert "pip install 'postroom[providers]'" in failed.message
    assert f"`{flavour}`" in failed.detail


@pytest.mark.parametrize(
    ("options", "fields", "kind"),
    [
        ({"api_key": ""}, {}, K.AUTH),
        ({}, {"model": ""}, K.INVALID),
        ({}, {"prompt": " "}, K.INVALID),
    ],
)
async def test_a_turn_that_makes_no_sense_is_not_sent(
    connect: Connect, server: ModelServer, options: dict[str, Any], fields: dict[str, Any], kind: ErrorKind
) -> None:
    assert (await tell(connect(**options), ask(**fields))).failed.kind is kind
    assert server.received == []


async def test_the_key_goes_to_the_server_and_nowhere_else(
    connect: Connect, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    provider = connect()
    assert (await tell(provider, ask())).answer == REPLY
    assert "sk-test-key" in str(server.received[0].headers)
    assert "from-environment" not in str(server.received[0].headers)


async def test_the_context_window_can_also_end_in_the_middle(server: ModelServer) -> None:
    provider = AnthropicApi(api_key="k", base_url=server.scenario("window"))
    assert (await tell(provider, ask())).failed.kind is ErrorKind.CONTEXT_TOO_LONG


async def test_a_filtered_answer_is_a_refusal(server: ModelServer) -> None:
    provider = OpenAIApi(api_key="k", base_url=server.scenario("filtered", "/v1"))
    assert (await tell(provider, ask())).failed.kind is ErrorKind.REFUSED


async def test_a_server_that_counts_nothing_is_no_problem(server: ModelServer) -> None:
    told = await tell(OpenAIApi(api_key="k", base_url=server.scenario("nousage", "/v1")), ask())
    assert told.answer == REPLY
    assert told.of(Usage) == []
