"""A personal WhatsApp account: linked by a code; groups, notes to oneself; and the bridge as it is."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.channels.errors import (
    ChannelMisconfigured,
    ChannelUnlinked,
    MaybeSent,
    NotSent,
    RetryAfter,
    Undeliverable,
)
from postroom.channels.line_rpc import LineRpc, RpcRefusal, Streams
from postroom.channels.model import Address, Envelope, Piece, PieceKind
from postroom.channels.styled_text import StyledText
from postroom.channels.whatsapp_personal import KIND, channel
from postroom.channels.whatsapp_personal.channel import PersonalWhatsAppChannel
from postroom.channels.whatsapp_personal.events import Account, read_message
from postroom.channels.whatsapp_personal.problems import BridgeProblem, classify_problem
from postroom.clock import SystemClock
from postroom.providers.protocol import TurnRequest
from postroom.testing import (
    ConnectionDropped,
    FakePersonalWhatsApp,
    HeldClock,
    Person,
    RateLimited,
    ServerFailed,
)
from postroom.testing.platforms.whatsapp_personal.server import ACCOUNT, HIDDEN_ACCOUNT
from tests.app.house_process import HouseProcess
from tests.channels.chat_platforms import PLATFORMS, open_chat_office

PLATFORM = PLATFORMS["whatsapp_personal"]
HELLO = Piece(kind=PieceKind.TEXT, text=StyledText("hello"))
ANN = Person("491700001", "Ann")


@pytest.fixture
async def fake() -> AsyncIterator[FakePersonalWhatsApp]:
    async with FakePersonalWhatsApp(clock=HeldClock(SystemClock().now())) as fake:
        yield fake


@pytest.fixture
async def linked(fake: FakePersonalWhatsApp) -> AsyncIterator[PersonalWhatsAppChannel]:
    made = PersonalWhatsAppChannel("whatsapp_personal", PLATFORM.options(fake))
    await made.open()
    yield made
    await made.close()


async def test_in_groups_only_what_means_the_account_is_heard_and_notes_to_oneself_are(
    fake: FakePersonalWhatsApp, tmp_path: Path
) -> None:
    def echo(request: TurnRequest) -> str:
        return f"echo: {request.prompt}"

    async with open_chat_office(tmp_path, PLATFORM, fake, echo) as office:
        await office.pair()
        await fake.write(office.ann, "just talking", group="120363")
        await fake.write(office.ann, f"@{HIDDEN_ACCOUNT} status?", group="120363", mentions=[HIDDEN_ACCOUNT])
        [answer] = await fake.transcript.wait_for("echo: status?", chat="120363@g.us")
        await fake.write(office.ann, "really?", group="120363", quotes=answer.id)
        await fake.transcript.wait_for("echo: really?", chat="120363@g.us")
        await fake.write_from_phone("to a friend", to="491709999")
        await office.pair(Person(ACCOUNT, "The owner"))
        await fake.write_from_phone("a note to myself")
        [noted] = await fake.transcript.wait_for("echo: a note to myself")
        assert noted.chat == f"{ACCOUNT}@s.whatsapp.net"
        heard = [asked.prompt for asked in office.puppet.asked]
        assert heard == ["status?", "really?", "a note to myself"]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (RateLimited(1), RetryAfter),
        (ServerFailed(), NotSent),
        (ConnectionDropped("before"), MaybeSent),
        (ConnectionDropped("after"), MaybeSent),
    ],
)
async def test_what_became_of_a_message_is_told_as_far_as_it_is_known(
    fake: FakePersonalWhatsApp, linked: PersonalWhatsAppChannel, fault: Any, problem: type[Exception]
) -> None:
    fake.faults.plan("send", fault)
    with pytest.raises(problem):
        await linked.send(Address(chat="491700001@s.whatsapp.net"), HELLO, "key", None)


async def test_who_is_not_on_whatsapp_gets_nothing(
    fake: FakePersonalWhatsApp, linked: PersonalWhatsAppChannel
) -> None:
    fake.unknown.add("1@s.whatsapp.net")
    with pytest.raises(Undeliverable):
        await linked.send(Address(chat="1@s.whatsapp.net"), HELLO, "key", None)


async def test_an_unlinked_device_is_told_with_what_to_do(
    fake: FakePersonalWhatsApp, linked: PersonalWhatsAppChannel
) -> None:
    fake.unlink()
    with pytest.raises(ChannelMisconfigured, match="unlinked this device"):
        await linked.open()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("the store doesn't contain a device JID", BridgeProblem.NOT_CONNECTED),
        ("client is nil", BridgeProblem.NOT_CONNECTED),
        ("failed to refresh media connections: websocket not connected", BridgeProblem.NOT_CONNECTED),
        ("timed out waiting for message send response", BridgeProblem.UNKNOWN),
        ("websocket disconnected before info query returned response", BridgeProblem.UNKNOWN),
        ("server returned error 429", BridgeProblem.RATE_LIMITED),
        ("server returned error 463", BridgeProblem.REFUSED),
        ("something else", BridgeProblem.UNKNOWN),
    ],
)
def test_only_what_is_surely_not_sent_is_sent_again(said: str, problem: BridgeProblem) -> None:
    assert classify_problem(said) is problem


async def test_there_is_a_code_to_scan_until_the_phone_has_linked_the_device() -> None:
    async with FakePersonalWhatsApp(linked=False) as fake:
        made = PersonalWhatsAppChannel("whatsapp_personal", PLATFORM.options(fake))
        try:
            with pytest.raises(ChannelUnlinked, match="postroom channel setup whatsapp_personal"):
                await made.open()
            assert made.pairing
            fake.scan()
            await made.open()
            assert made.pairing is None
        finally:
            await made.close()


@pytest.mark.slow
async def test_the_code_is_drawn_until_the_phone_has_scanned_it(tmp_path: Path) -> None:
    async with FakePersonalWhatsApp(linked=False) as fake:
        house = HouseProcess(tmp_path)
        words = ("channel", "setup", "whatsapp_personal", "--set", f"bridge=127.0.0.1:{fake.port}")
        try:
            await asyncio.to_thread(house.start)
            asking = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "postroom", *words),
                env=house.env,
                cwd=house.folder,
                stdin=subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            assert asking.stdout is not None
            said = ""
            async with asyncio.timeout(120):
                while "Linked devices" not in said:
                    line = (await asking.stdout.readline()).decode()
                    assert line, said
                    said += line
                async with httpx2.AsyncClient(headers=house.headers, timeout=60) as http:
                    page = await http.get(f"{house.url}/channels")
                    assert "<svg" in page.text.partition("not linked with a phone")[2][:500]
                fake.scan()
                said += (await asking.stdout.read()).decode()
                assert await asking.wait() == 0, said
            assert "█" in said
            assert "is linked, and receives" in said
            refused = await asyncio.to_thread(house.cli, "channel", "test", "whatsapp_personal", check=False)
            assert "has the connection" in refused.stderr
        finally:
            house.end()


# The bridge, with neonize as it is


@pytest.fixture
async def bridge(tmp_path: Path) -> AsyncIterator[LineRpc]:
    processes: list[asyncio.subprocess.Process] = []

    async def start() -> Streams:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.channels.bridge_child", str(tmp_path / "session.db")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        return process.stdout, process.stdin

    rpc = LineRpc(start)
    yield rpc
    await rpc.close()
    for process in processes:
        await process.communicate()


async def test_the_bridge_hands_out_one_message_at_a_time_and_waits_until_it_is_stored(
    bridge: LineRpc,
) -> None:
    [one] = await bridge.call("receive", timeout=60)
    assert (one["id"], one["text"], one["sender"], one["name"]) == ("ONE", "hello", "491700001", "Ann")
    assert one["chat"] == "491700001@s.whatsapp.net"
    assert await bridge.call("fed") == []
    [two] = await bridge.call("receive", timeout=60)
    assert await bridge.call("fed") == ["ONE", "REACTION"]
    assert (two["sender"], two["sender_jid"]) == ("491700001", "88000111@lid")
    assert (two["mentions"], two["quoted"]) == (["15550100"], {"id": "3EB0OLD", "sender": "15550100"})
    received = read_message(two, Account("15550100"))
    assert received is not None
    assert (received.text, received.addressed) == ("status?", True)
    [three] = await bridge.call("receive", timeout=60)
    assert (three["text"], three["file"]["name"], three["file"]["size"]) == ("the plan", "plan.pdf", 7)
    assert await bridge.call("receive", timeout=0.05) == []
    assert await bridge.call("fed") == ["ONE", "REACTION", "TWO", "THREE"]


async def test_the_bridge_says_that_nothing_was_sent_while_no_phone_is_linked(bridge: LineRpc) -> None:
    [*_, one] = await bridge.call("receive", timeout=60)
    quoted = f"{one['id']}/{one['sender_jid']}"
    for method, params in (
        ("send", {"chat": one["chat"], "text": "hello", "quotes": quoted}),
        ("send_file", {"chat": one["chat"], "name": "a.txt", "media_type": "text/plain", "data": "YQ=="}),
    ):
        with pytest.raises(RpcRefusal) as refused:
            await bridge.call(method, **params)
        assert refused.value.code == BridgeProblem.NOT_CONNECTED
    with pytest.raises(RpcRefusal, match="there is no dance"):
        await bridge.call("dance")
    status = await bridge.call("status")
    assert (status["connected"], status["qr"], status["problem"]) == (False, None, None)


async def test_a_bridge_of_our_own_starts_and_ends_with_the_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing of this reaches WhatsApp.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(channel, "LINK_S", 0.0)
    session = tmp_path / "channels" / "session.db"
    made = KIND.build("whatsapp_personal", {"session": str(session)})
    assert isinstance(made, PersonalWhatsAppChannel)
    try:
        with pytest.raises(ConnectionError, match="does not answer"):
            await made.open()
        assert session.parent.stat().st_mode & 0o077 == 0
    finally:
        await made.close()


def test_an_envelope_without_words_or_a_file_is_nothing() -> None:
    told = {"id": "1", "chat": "1@s.whatsapp.net", "from_me": False, "group": False, "text": ""}
    assert read_message(Envelope("1", told).raw, Account("15550100")) is None
