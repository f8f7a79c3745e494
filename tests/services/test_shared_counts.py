"""Limits of requests hold for all processes on a store together, a second behind."""

import pytest

from postroom.errors import StoreFailed
from postroom.kernel import service_commands
from postroom.kernel.facts import RATE
from postroom.kernel.ports import FactFilter
from postroom.kernel.transitions.request_counts import PREFIX
from postroom.services.errors import RequestLimitReached
from postroom.services.rates import WINDOW, RateMeter
from postroom.services.shared_counts import MOST_SHARED, SharedCounts
from tests.services.conftest import ServedRoom

WHO = [("key", "one", 3), ("tenant", "default", 1000)]


def counting(served: ServedRoom) -> tuple[RateMeter, SharedCounts]:
    """As one process has them."""
    meter, shared = RateMeter(served.clock), SharedCounts(served.room)
    shared.add(meter)
    return meter, shared


async def shared_facts(served: ServedRoom) -> list[str]:
    wanted = FactFilter(kind=RATE, prefix=PREFIX)
    return [fact.data for fact in await served.room.look(lambda reader: reader.reads.scan(wanted, 100))]


async def test_what_one_process_let_through_counts_in_the_other(served: ServedRoom) -> None:
    (first, told), (second, heard) = counting(served), counting(served)
    for _ in range(2):
        first.spend(WHO)
    await told.share()
    await heard.share()
    assert second.spend(WHO).remaining == 0
    with pytest.raises(RequestLimitReached):
        second.spend(WHO)
    await heard.share()
    await told.share()
    with pytest.raises(RequestLimitReached):
        first.spend(WHO)


async def test_what_is_a_minute_old_counts_nowhere(served: ServedRoom) -> None:
    (first, told), (second, heard) = counting(served), counting(served)
    for _ in range(3):
        first.spend(WHO)
    await told.share()
    served.clock.advance(WINDOW)
    await heard.share()
    assert second.spend(WHO).remaining == 2, "the process that told it may be dead"
    assert await shared_facts(served) == []
    await told.share()
    assert await shared_facts(served) == []


async def test_who_has_nothing_more_to_tell_says_so_once_and_writes_no_event(served: ServedRoom) -> None:
    meter, shared = counting(served)
    before = await served.room.head()
    await shared.share()
    assert await shared_facts(served) == []
    meter.spend(WHO)
    await shared.share()
    assert await shared_facts(served) == ['{"key/one":1}'], "a small part of a large limit is not told"
    served.clock.advance(WINDOW)
    await shared.share()
    assert await shared_facts(served) == ["{}"]
    assert await served.room.head() == before


async def test_a_store_that_is_away_leaves_each_process_to_itself(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (first, told), (second, heard) = counting(served), counting(served)
    for _ in range(3):
        first.spend(WHO)
    await told.share()
    await heard.share()
    with pytest.raises(RequestLimitReached):
        second.spend(WHO)

    async def fail(command: object) -> None:
        raise StoreFailed(path="the store", reason="it is away")

    monkeypatch.setattr(served.room, "run", fail)
    await heard.share()
    assert second.spend(WHO).remaining == 2
    assert "it is away" in caplog.text


async def test_no_more_names_are_told_than_a_few(served: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, shared = counting(served)
    for number in range(MOST_SHARED + 5):
        meter.spend([("key", str(number), 1)])
    meter.spend([("key", "busy", 2)])
    meter.spend([("key", "busy", 2)])
    sent: list[service_commands.ShareRequestCounts] = []
    run = served.room.run

    def note(command: service_commands.ShareRequestCounts) -> object:
        sent.append(command)
        return run(command)

    monkeypatch.setattr(served.room, "run", note)
    await shared.share()
    assert (len(sent[0].counts), sent[0].counts["key/busy"]) == (MOST_SHARED, 2)
