"""Deliveries over real sockets: to the checked address alone, by the name of the host, and never for ever."""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import postroom
from postroom import Message, Room
from postroom.clock import SystemClock
from postroom.kernel import service_commands, webhooks
from postroom.kernel.commands import Claim
from postroom.kernel.rows import Stored
from postroom.kernel.webhooks import Webhook
from postroom.webhooks import delivery as deliveries
from postroom.webhooks.addresses import networks, nowhere
from postroom.webhooks.certificates import trusting
from postroom.webhooks.concurrency import AT_ONCE, LONGEST_S, ReceiverLimits
from postroom.webhooks.delivery import MOST_GIVEN_UP, DeliveryWorkers
from postroom.webhooks.service import WebhookService, make_queue
from tests.acceptance.office import until
from tests.api.queue.receiver import Receiver, everywhere
from tests.loopback import serving
from tests.webhooks.authority import Authority

HOST = "hooks.example.org"
MISMATCH = (
    "its certificate is not trusted (Hostname mismatch, certificate is not valid for 'other.example.org'.)"
)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the resolver knows, by name; everything else it asks the real one."""
    known: dict[str, str] = {}
    real = socket.getaddrinfo

    def lookup(host: Any, *more: Any, **options: Any) -> Any:
        if host == "nowhere.example.org":
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return real(known.get(host, host), *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return known


@contextlib.asynccontextmanager
async def telling(folder: Path, **options: Any) -> AsyncIterator[Room]:
    async with (
        postroom.open(f"sqlite:///{folder / 'room.db'}", durability="relaxed") as room,
        WebhookService(room, **{"inside": everywhere, **options}).running(),
    ):
        yield room


@contextlib.asynccontextmanager
async def answering(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Receiver, int]]:
    receiver = Receiver(0)
    async with serving(receiver.handle, tls=tls) as port:
        yield receiver, port


async def send(room: Room, url: str, **options: Any) -> str:
    hook = Webhook(
        id=f"hook-{url}",
        tenant="default",
        url=url,
        events=("scaiqueue.message.published",),
        secret="a-secret-of-sixteen",
        status="active",
        created_at=0,
        updated_at=0,
        **{"max_retries": 1, **options},
    )
    await room.run(
        service_commands.PutServiceDocument(
            kind=webhooks.KIND, key=hook.id, data=msgspec.to_builtins(hook), tenant="default"
        )
    )
    return await deliver(room, hook)


async def deliver(room: Room, hook: Webhook, number: int = 0) -> str:
    told = webhooks.envelope(webhooks.TEST, f"evt_{hook.url}_{number}", "default", {}, 0)
    return (await room.run(webhooks.delivery(hook, told, None)))[0].id


async def settled(room: Room, message_id: str, *states: str) -> Message:
    async with asyncio.timeout(120):
        while True:
            stored = await room.look(lambda reader: reader.get(message_id))
            assert stored is not None
            if stored.row.state in (states or ("completed", "dead", "cancelled")):
                return room.to_message(stored)
            await asyncio.sleep(0.02)


async def test_https_by_the_name_of_the_host_at_the_address_that_was_checked(
    tmp_path: Path, names: dict[str, str]
) -> None:
    authority = Authority(tmp_path)
    names[HOST] = "127.0.0.1"
    async with (
        telling(tmp_path, tls=authority.trusting()) as room,
        answering(authority.showing(HOST)) as (receiver, port),
    ):
        message = await settled(room, await send(room, f"https://{HOST}:{port}/in"))
        assert message.result["status_code"] == 200, message.failure_reason
        _, headers = receiver.last
        assert headers["host"] == f"{HOST}:{port}"


async def test_a_host_that_shows_another_name_gets_nothing(tmp_path: Path, names: dict[str, str]) -> None:
    """Not even when a host that may is delivered to at the same address, just before."""
    authority = Authority(tmp_path)
    names |= {HOST: "127.0.0.1", "other.example.org": "127.0.0.1"}
    async with (
        telling(tmp_path, tls=authority.trusting()) as room,
        answering(authority.showing(HOST)) as (receiver, port),
    ):
        assert (await settled(room, await send(room, f"https://{HOST}:{port}/"))).state == "completed"
        message = await settled(room, await send(room, f"https://other.example.org:{port}/"))
        assert (message.state, message.failure_reason) == ("dead", MISMATCH)
        assert receiver.tries == 1


async def test_an_authority_that_nobody_knows_is_not_trusted(tmp_path: Path, names: dict[str, str]) -> None:
    names[HOST] = "127.0.0.1"
    async with (
        telling(tmp_path) as room,
        answering(Authority(tmp_path).showing(HOST)) as (receiver, port),
    ):
        message = await settled(room, await send(room, f"https://{HOST}:{port}/"))
        assert message.state == "dead"
        assert (message.failure_reason or "").startswith("its certificate is not trusted (unable to get")
        assert receiver.tries == 0


async def test_an_authority_of_ones_own_is_trusted_besides_the_others(
    tmp_path: Path, names: dict[str, str]
) -> None:
    authority = Authority(tmp_path)
    names[HOST] = "127.0.0.1"
    tls = trusting(str(authority.file()))
    assert tls is not None
    assert len(tls.get_ca_certs()) > 1
    lan = networks(["127.0.0.0/8"])
    async with (
        telling(tmp_path, tls=tls, inside=lambda: lan) as room,
        answering(authority.showing(HOST)) as (receiver, port),
    ):
        message = await settled(room, await send(room, f"https://{HOST}:{port}/"))
        assert (message.state, receiver.tries) == ("completed", 1), message.failure_reason


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_a_file_of_authorities_that_cannot_be_used_is_told_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    assert trusting(str(file)) is None
    assert "webhooks.ca_file" in caplog.text
    assert trusting(None) is None


async def test_a_name_that_leads_inside_is_given_up_at_once(tmp_path: Path, names: dict[str, str]) -> None:
    names[HOST] = "127.0.0.1"
    async with telling(tmp_path, inside=nowhere) as room, answering() as (receiver, port):
        message = await settled(room, await send(room, f"https://{HOST}:{port}/", max_retries=5))
        assert (message.state, message.attempts, receiver.tries) == ("dead", 1, 0)
        assert "not public" in (message.failure_reason or "")


async def test_a_resolver_that_does_not_answer_is_asked_again(tmp_path: Path, names: dict[str, str]) -> None:
    async with telling(tmp_path) as room:
        sent = await send(room, "https://nowhere.example.org/", max_retries=5)
        message = await settled(room, sent, "delayed", "dead")
        assert message.state == "delayed", "names come back"
        assert "has no address at the moment" in (message.failure_reason or "")


async def test_what_goes_wrong_unforeseen_is_a_failure_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(url: str, **_: Any) -> Any:
        raise RuntimeError(url)

    monkeypatch.setattr(deliveries, "resolve", broken)
    async with telling(tmp_path) as room:
        message = await settled(room, await send(room, "https://example.org/"))
        assert (message.state, message.failure_reason) == ("dead", "it could not be sent (RuntimeError)")


async def test_redirects_are_not_followed(tmp_path: Path) -> None:
    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    async with telling(tmp_path) as room, serving(elsewhere) as port:
        message = await settled(room, await send(room, f"http://127.0.0.1:{port}/"))
        assert "answered with 307" in (message.failure_reason or "")


async def test_a_silent_receiver_is_given_up_and_others_get_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    monkeypatch.setattr(deliveries, "TIMEOUT_S", 1.0)
    async with telling(tmp_path) as room, answering() as (_, port), serving(say_nothing) as deaf:
        waiting = [await send(room, f"http://127.0.0.1:{deaf}/{n}") for n in range(12)]
        good = await send(room, f"http://127.0.0.1:{port}/", max_retries=50)
        assert (await settled(room, good)).state == "completed"
        ended = [await settled(room, each) for each in waiting]
        reasons = {message.failure_reason or "" for message in ended}
        assert all(re.fullmatch(r"no answer \(\w*Timeout\w*\)", reason) for reason in reasons), reasons


async def test_a_stop_leaves_no_task_behind(tmp_path: Path) -> None:
    async with postroom.open(f"sqlite:///{tmp_path / 'room.db'}", durability="relaxed") as room:
        before = asyncio.all_tasks()
        async with WebhookService(room).running(), asyncio.timeout(120):
            while not room._core.wakeups._lines:  # noqa: ASYNC110 - until the workers wait for work
                await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == before


async def test_what_is_taken_in_the_moment_of_a_stop_is_still_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        postroom.open(f"sqlite:///{tmp_path / 'room.db'}", durability="relaxed") as room,
        answering() as (receiver, port),
    ):
        await make_queue(room)
        sent = await send(room, f"http://127.0.0.1:{port}/")
        running = asyncio.create_task(DeliveryWorkers(room, SystemClock(), inside=everywhere).run())
        take = room.take

        async def take_and_stop(command: Claim, wait: float = 0) -> list[Stored]:
            taken = await take(command, wait)
            running.cancel()
            return taken

        monkeypatch.setattr(room, "take", take_and_stop)
        await asyncio.wait({running})
        assert running.cancelled()
        assert (await settled(room, sent)).state == "completed"
        assert receiver.tries == 1


def test_who_does_not_answer_gets_few_workers() -> None:
    crowd = ReceiverLimits()
    assert [crowd.enter("slow") for _ in range(10)] == [None] * 10, "nobody knows yet that it is slow"
    for _ in range(10):
        crowd.leave("slow", answered=False)
    assert [crowd.enter("slow") for _ in range(AT_ONCE)] == [None] * AT_ONCE
    pauses = [crowd.enter("slow") or 0.0 for _ in range(100)]
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < pauses[-1] == LONGEST_S
    assert crowd.enter("quick") is None, "others are not concerned"
    crowd.leave("slow", answered=True)
    assert crowd.enter("slow") is None, "it answers again"


async def test_a_webhook_that_nobody_answers_is_switched_off_with_a_word(
    tmp_path: Path, names: dict[str, str]
) -> None:
    """Or what is forgotten makes dead letters for ever."""
    names[HOST] = "127.0.0.1"

    async def hook_now(room: Room, key: str) -> Webhook:
        found = await room.look(lambda reader: reader.document("default", webhooks.KIND, key))
        assert found is not None
        return webhooks.read(found.data)

    async with telling(tmp_path, inside=nowhere) as room:
        url = f"https://{HOST}:1/"
        await settled(room, await send(room, url))
        hook = await hook_now(room, f"hook-{url}")
        for number in range(1, MOST_GIVEN_UP // 2):
            assert (await settled(room, await deliver(room, hook, number))).state == "dead"
    async with telling(tmp_path, inside=nowhere) as room:  # who was given up on is known after a restart
        for number in range(MOST_GIVEN_UP // 2, MOST_GIVEN_UP):
            assert (await hook_now(room, hook.id)).status == "active", number
            assert (await settled(room, await deliver(room, hook, number))).state == "dead"

        async def is_off() -> bool:
            return (await hook_now(room, hook.id)).status == "inactive"

        await until(is_off)
        off = await hook_now(room, hook.id)
        assert off.problem.startswith(f"switched off: {MOST_GIVEN_UP} deliveries in a row were given up")
        after = await settled(room, await deliver(room, hook, 999))
        assert after.state == "cancelled", "no dead letter any more"
        [told] = [event async for event in room.events(0) if event.details.get("problem")]
        assert told.type == "webhook.updated"
