"""When one provider fails, the next one is tried, if that can help and nothing has been done yet."""

from pathlib import Path

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.providers import (
    ErrorKind,
    Failed,
    Progress,
    Provider,
    Script,
    ScriptProvider,
    ScriptRule,
    ToolUse,
    TurnRequest,
    TurnStream,
    run_with_fallback,
)
from postroom.providers.fallback import PROVIDERS_FAULT
from tests.providers.conftest import tell

REQUEST = TurnRequest(agent_id="coder", prompt="hello", workspace=Path("/"))


class Chain:
    name = "chain"

    def __init__(self, *providers: Provider) -> None:
        self._providers = providers

    def run(self, request: TurnRequest) -> TurnStream:
        return run_with_fallback([(provider, request) for provider in self._providers])


def one(name: str, clock: ManualClock | None = None, **rule: object) -> ScriptProvider:
    script = Script(rules=(ScriptRule(**rule),), pace=0)  # type: ignore[arg-type]
    return ScriptProvider(script, name=name, clock=clock)


@pytest.mark.parametrize("kind", sorted(PROVIDERS_FAULT))
async def test_the_next_provider_is_tried_when_the_first_is_at_fault(kind: ErrorKind) -> None:
    told = await tell(Chain(one("a", fail=kind), one("b", reply="from b")), REQUEST)
    assert told.answer == "from b"
    assert told.of(Progress)[0].text.endswith("Trying b.")


@pytest.mark.parametrize("kind", sorted(set(ErrorKind) - PROVIDERS_FAULT))
async def test_what_lies_with_the_message_is_not_tried_elsewhere(kind: ErrorKind) -> None:
    assert (await tell(Chain(one("a", fail=kind), one("b")), REQUEST)).failed.kind is kind


async def test_a_turn_that_has_used_a_tool_is_not_repeated_elsewhere() -> None:
    acted = _Acted()
    assert (await tell(Chain(acted, one("b")), REQUEST)).failed.kind is ErrorKind.CRASHED


async def test_if_all_fail_the_one_that_passes_by_itself_is_the_verdict(still: ManualClock) -> None:
    chain = Chain(
        one("a", fail=ErrorKind.AUTH),
        one("b", still, fail=ErrorKind.RATE_LIMIT, retry_after=60),
        one("c", still, fail=ErrorKind.RATE_LIMIT, retry_after=30),
        one("d", fail=ErrorKind.NOT_INSTALLED),
    )
    failed = (await tell(chain, REQUEST)).failed
    assert (failed.kind, failed.retry_at) == (ErrorKind.RATE_LIMIT, still.now() + 30 * SECOND)
    assert [line.partition(":")[0] for line in failed.detail.splitlines()[:4]] == ["a", "b", "c", "d"]


async def test_if_none_passes_by_itself_the_first_is_the_verdict() -> None:
    chain = Chain(one("a", fail=ErrorKind.NOT_INSTALLED), one("b", fail=ErrorKind.AUTH))
    assert (await tell(chain, REQUEST)).failed.kind is ErrorKind.NOT_INSTALLED


async def test_a_failure_that_may_pass_at_any_time_is_not_put_off(still: ManualClock) -> None:
    late = one("a", still, fail=ErrorKind.RATE_LIMIT, retry_after=3600)
    soon = one("b", fail=ErrorKind.OVERLOADED)
    for chain in (Chain(late, soon), Chain(soon, late)):
        assert (await tell(chain, REQUEST)).failed.kind is ErrorKind.OVERLOADED


async def test_no_provider_at_all_is_a_failure() -> None:
    assert (await tell(Chain(), REQUEST)).failed.kind is ErrorKind.INVALID


class _Acted(ScriptProvider):
    def __init__(self) -> None:
        super().__init__(name="acted")

    async def _run(self, request: TurnRequest) -> TurnStream:
        yield ToolUse(name="Bash", state="started")
        yield Failed(kind=ErrorKind.CRASHED, message="it fell over")


async def test_a_provider_that_fails_before_any_session_is_named() -> None:
    empty = TurnRequest(agent_id="coder", prompt=" ", workspace=Path("/"))
    assert (await tell(Chain(one("a")), empty)).events == [(await tell(Chain(one("a")), empty)).failed]
    assert (await tell(Chain(one("a")), empty)).failed.provider == "a"
    chain = Chain(one("a", fail=ErrorKind.AUTH), one("b", fail=ErrorKind.OVERLOADED))
    assert (await tell(chain, REQUEST)).failed.provider == "b", "whose failure the verdict is"
