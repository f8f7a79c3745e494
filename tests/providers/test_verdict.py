"""A stream of events ends with one verdict, whatever an adapter does."""

from pathlib import Path

import pytest

from postroom.providers import ErrorKind, Failed, Finished, TextChunk, TurnRequest, TurnStream
from postroom.providers.failures import Product
from postroom.providers.verdict import guarded
from tests.providers.conftest import tell

PRODUCT = Product(label="Thing", install="i", login="l")
REQUEST = TurnRequest(agent_id="a", prompt="p", workspace=Path("/"))


class Adapter:
    name = "adapter"

    def __init__(self, behaviour: str) -> None:
        self._behaviour = behaviour
        self.closed = False

    def run(self, request: TurnRequest) -> TurnStream:
        return guarded(PRODUCT, self._run())

    async def _run(self) -> TurnStream:
        try:
            yield TextChunk(text="x")
            if self._behaviour == "raise":
                raise KeyError("oops")
            if self._behaviour == "twice":
                yield Finished(text="one")
                yield Finished(text="two")
        finally:
            self.closed = True


@pytest.mark.parametrize(("behaviour", "detail"), [("raise", "oops"), ("nothing", "without a verdict")])
async def test_an_error_in_an_adapter_is_a_failed_turn(behaviour: str, detail: str) -> None:
    told = await tell(Adapter(behaviour), REQUEST)
    assert isinstance(told.verdict, Failed)
    assert told.verdict.kind is ErrorKind.CRASHED
    assert detail in told.verdict.detail


async def test_nothing_follows_the_verdict() -> None:
    assert (await tell(Adapter("twice"), REQUEST)).answer == "one"


async def test_closing_the_stream_closes_the_adapter() -> None:
    adapter = Adapter("nothing")
    stream = adapter.run(REQUEST)
    await anext(stream)
    await stream.aclose()
    assert adapter.closed
