"""A provider that says "later" for ever: few requests, one word to the person, and an end with a name."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from postroom import Message, State
from postroom.clock import SECOND, ManualClock
from postroom.kernel import commands as c
from postroom.kernel.model import Counts
from postroom.kernel.states import Change
from postroom.providers.anthropic_api import AnthropicApi
from postroom.providers.protocol import ErrorKind, Failed, Provider, TurnRequest
from postroom.services.messages import MessageStory
from postroom.terminal.cli.why import why
from tests.acceptance.office import Puppet, Staffed, staffed, text, until
from tests.providers.model_server import model_server

HOUR = 3600.0


def limit(request: TurnRequest) -> list[Failed]:
    return [Failed(kind=ErrorKind.RATE_LIMIT, message="The limit is reached.")]


def limited_office(
    tmp_path: Path, clock: ManualClock, provider: Provider, **changes: Any
) -> AbstractAsyncContextManager[Staffed]:
    options: dict[str, Any] = {
        "agents": {"coder": {"provider": "stubborn", "model": "m"}},
        "teams": {},
        "monitoring": {"heartbeat_interval": 0},
        "limits": {"lease_s": 0.2},  # it claims anew every 0.1 s; the clock that ends leases stands
        "puppets": {"stubborn": provider},
        **changes,
    }
    return staffed(tmp_path, clock=clock, office_clock=clock, **options)


async def write(desk: Staffed, words: str, who: str = "ann") -> str:
    sent = await desk.write(f"@coder {words}", sender_id=who)
    return sent.receipts[0].id


async def settled(desk: Staffed, now: int, *ids: str) -> list[Message]:
    """These messages, once each waits for a moment to come, or has ended."""
    found: list[Message] = []

    def is_settled(message: Message) -> bool:
        later = message.state is State.DELAYED and (message.visible_at or 0) > now
        return later or message.state is State.DEAD

    async def all_settled() -> bool:
        found[:] = [await desk.room.get(each) for each in ids]
        return all(map(is_settled, found))

    await until(all_settled)
    return found


async def told(desk: Staffed) -> list[tuple[str, str]]:
    page = await desk.room.messages(queue="office/outbox/web", limit=100)
    return [(message.message_type, text(message)) for message in page.messages]


async def test_a_server_that_refuses_for_ever_is_asked_ever_less_and_the_message_ends_in_a_named_state(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    began = clock.now()
    async with model_server() as server:
        api = AnthropicApi(api_key="k", base_url=server.scenario("e429one"), clock=clock)
        async with limited_office(tmp_path, clock, api) as desk:
            sent = await write(desk, "hello")
            pauses: list[float] = []
            while True:
                [message] = await settled(desk, clock.now(), sent)
                if message.state is State.DEAD:
                    break
                assert message.attempts == 0, "waiting uses up no attempt"
                assert message.visible_at is not None
                pauses.append((message.visible_at - clock.now()) / SECOND)
                clock.set(message.visible_at)
            [notice, failure] = await told(desk)
            turns = [record.data["outcome"] for record in await desk.room.records("turn", limit=500)]
    assert (message.failure_kind, message.attempts) == ("rate_limited", 1)
    assert (clock.now() - began) / SECOND == 24 * HOUR, "guards.rate_limit_s"
    assert pauses[:13] == [float(min(2**n, 3600)) for n in range(13)]
    assert all(pause == HOUR for pause in pauses[13:-1])
    assert len(server.received) == len(pauses) < 40
    assert turns == ["rate_limit"] * len(server.received)
    assert notice[0] == "office.notice"
    assert "has to wait" in notice[1]
    assert failure[0] == "office.failure"
    assert f"postroom dead replay {sent}" in failure[1]


async def test_while_one_message_waits_the_others_of_its_agent_ask_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    puppet = Puppet(limit)
    async with limited_office(tmp_path, clock, puppet) as desk:
        first = await write(desk, "hello", "person 0")
        await settled(desk, clock.now(), first)
        ids = [first, *[await write(desk, "hello", f"person {n}") for n in range(1, 5)]]
        mail = await settled(desk, clock.now(), *ids)
        assert len(puppet.asked) == 1
        for tries in range(2, 6):
            clock.set(max(m.visible_at or 0 for m in mail))
            mail = await settled(desk, clock.now(), *ids)
            assert len(puppet.asked) == tries
        assert {m.attempts for m in mail} == {0}


async def test_each_message_waits_its_own_time_and_one_that_is_sent_again_waits_anew(tmp_path: Path) -> None:
    clock = ManualClock()
    puppet = Puppet(limit)
    async with limited_office(tmp_path, clock, puppet, guards={"rate_limit_s": 600}) as desk:
        ids = [await write(desk, "first")]
        [first] = await settled(desk, clock.now(), *ids)
        clock.advance(30)
        ids.append(await write(desk, "second", "bob"))
        [first, second] = await settled(desk, clock.now(), *ids)
        while first.state is not State.DEAD:
            clock.set(min(m.visible_at or 0 for m in (first, second)))
            [first, second] = await settled(desk, clock.now(), *ids)
        assert second.state is State.DELAYED, "it came later"
        asked = len(puppet.asked)
        await desk.room.run(c.Replay(message_ids=(first.id,)))
        [first, second] = await settled(desk, clock.now(), *ids)
        assert (first.state, second.state) == (State.DELAYED, State.DELAYED)
        assert len(puppet.asked) == asked, "the limit that is known of still holds"
        clock.set(second.visible_at or 0)
        [first, second] = await settled(desk, clock.now(), *ids)
        assert (first.state, second.state) == (State.DELAYED, State.DEAD)


async def test_an_answer_ends_the_wait_and_the_next_limit_begins_with_a_short_pause(tmp_path: Path) -> None:
    clock = ManualClock()
    script = ["limit", "limit", "here", "limit"]

    def act(request: TurnRequest) -> Any:
        return limit(request) if (word := script.pop(0)) == "limit" else word

    async with limited_office(tmp_path, clock, Puppet(act)) as desk:
        first = await write(desk, "first")
        for pause in (60, 120):
            [message] = await settled(desk, clock.now(), first)
            assert (message.visible_at or 0) - clock.now() == pause * SECOND
            clock.advance(pause)
        assert text((await desk.replies(1))[0]) == "here\n\n- [coder]"
        [message] = await settled(desk, clock.now(), await write(desk, "second"))
        assert (message.visible_at or 0) - clock.now() == 60 * SECOND


async def test_another_provider_need_not_wait_for_the_limit_of_the_one_before(tmp_path: Path) -> None:
    clock = ManualClock()
    async with limited_office(tmp_path, clock, Puppet(limit)) as desk:
        await settled(desk, clock.now(), await write(desk, "hello"))
    willing = Puppet(lambda request: "here", "willing")
    changed: dict[str, Any] = {"agents": {"coder": {"provider": "willing"}}, "puppets": {"willing": willing}}
    async with limited_office(tmp_path, clock, Puppet(limit), **changed) as desk:
        await write(desk, "again", "bob")
        assert text((await desk.replies(1))[0]) == "here\n\n- [coder]"


async def test_the_wait_goes_on_where_it_was_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    puppet = Puppet(limit)
    began, sent, ended = clock.now(), "", False
    while not ended:
        async with limited_office(tmp_path, clock, puppet, guards={"rate_limit_s": 600}) as desk:
            sent = sent or await write(desk, "hello")
            [message] = await settled(desk, clock.now(), sent)
            ended = message.state is State.DEAD
            clock.set(clock.now() if ended else message.visible_at or 0)
    assert (clock.now() - began) / SECOND == 600
    assert len(puppet.asked) == 4, "after 0, 60, 180 and 420 s"


async def test_why_says_until_when_it_is_rate_limited(tmp_path: Path) -> None:
    clock = ManualClock()
    async with limited_office(tmp_path, clock, Puppet(limit)) as desk:
        [message] = await settled(desk, clock.now(), await write(desk, "hello"))
        history = [event async for event in desk.room.events() if event.message_id == message.id]
    assert history[-1].type != Change.SNOOZED, "what was kept of the turn comes later"
    said = why(MessageStory(message, history, [], None, None, Counts()), clock.now())
    assert "rate limited until 2027-01-15T08:01:00" in said
    assert ".." not in said
