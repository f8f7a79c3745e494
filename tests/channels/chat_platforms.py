"""Every platform the office speaks to, as tests drive it: its fake, its options, its people."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

import postroom
from postroom.channels.channel import WebhookRequest
from postroom.channels.chat_rules import ChatRules
from postroom.channels.intake_queue import CURSOR
from postroom.channels.kinds import find_kind
from postroom.channels.runner import ChannelRunner, ChannelSetup
from postroom.clock import SystemClock
from postroom.office.pairing import Pairings
from postroom.providers.protocol import TurnRequest
from postroom.services.chat_commands import ChatCommands
from postroom.services.container import Services
from postroom.settings.model import parse
from postroom.testing import (
    Attachment,
    Delivery,
    FakeDiscord,
    FakeMail,
    FakeMatrix,
    FakePersonalWhatsApp,
    FakeSignal,
    FakeSlack,
    FakeTelegram,
    FakeWebhook,
    FakeWhatsApp,
    HeldClock,
    InboundEvent,
    Person,
)
from tests.acceptance.office import Puppet, Staffed, document, opened, until

VERIFIED = {"Authentication-Results": "mx.example.org; dmarc=pass header.from=example.org"}


@dataclass
class ChatPlatform:
    """`hook`: messages are pushed to us. `sends`: the names of the calls that send a text."""

    name: str
    make: Callable[[HeldClock], Any]
    options: Callable[[Any], dict[str, Any]]
    people: tuple[Person, ...]
    sends: str
    hook: Callable[[Any, str], Awaitable[None]] | None = None
    writing: dict[str, Any] = field(default_factory=dict)
    buttons: bool = True
    sign: str = "/"
    # Calls that can fail without anybody knowing what came of them are repeated under their key.
    repeatable: bool = False

    async def write(
        self, fake: Any, person: Person, text: str = "", *, files: Sequence[Attachment] = ()
    ) -> InboundEvent:
        return await fake.write(person, text, files=files, **self.writing)


async def _verify_whatsapp(fake: FakeWhatsApp, url: str) -> None:
    await fake.subscribe(url, "verify-me")


PLATFORMS = {
    platform.name: platform
    for platform in (
        ChatPlatform(
            name="telegram",
            make=lambda clock: FakeTelegram(clock=clock),
            options=lambda fake: {"bot_token": fake.token, "base_url": fake.url},
            people=(Person("1001", "Ann Archer", "ann"), Person("1002", "Bob")),
            sends="sendMessage",
        ),
        ChatPlatform(
            name="discord",
            make=lambda clock: FakeDiscord(clock=clock),
            options=lambda fake: {
                "bot_token": fake.token,
                "base_url": fake.api_url,
                "gateway_url": fake.gateway_url,
            },
            people=(Person("2001", "Ann Archer", "ann"), Person("2002", "Bob")),
            sends="create_message",
            repeatable=True,
        ),
        ChatPlatform(
            name="whatsapp",
            make=lambda clock: FakeWhatsApp(clock=clock),
            options=lambda fake: {
                "access_token": fake.token,
                "phone_number_id": fake.phone_id,
                "app_secret": fake.app_secret,
                "verify_token": "verify-me",
                "base_url": fake.api_url,
            },
            people=(Person("491700001", "Ann Archer"), Person("491700002", "Bob")),
            sends="send_message",
            hook=_verify_whatsapp,
        ),
        ChatPlatform(
            name="slack",
            make=lambda clock: FakeSlack(clock=clock),
            options=lambda fake: {
                "bot_token": fake.bot_token,
                "app_token": fake.app_token,
                "base_url": fake.api_url,
            },
            people=(Person("U1001", "Ann Archer", "ann"), Person("U1002", "Bob")),
            sends="chat.postMessage",
            sign="!",
        ),
        ChatPlatform(
            name="slack-requests",
            make=lambda clock: FakeSlack(clock=clock),
            options=lambda fake: {
                "platform": "slack",
                "bot_token": fake.bot_token,
                "signing_secret": fake.signing_secret,
                "base_url": fake.api_url,
            },
            people=(Person("U1001", "Ann Archer", "ann"), Person("U1002", "Bob")),
            sends="chat.postMessage",
            hook=lambda fake, url: fake.subscribe(url),
            sign="!",
        ),
        ChatPlatform(
            name="matrix",
            make=lambda clock: FakeMatrix(clock=clock),
            options=lambda fake: {
                "homeserver": fake.url,
                "user": fake.bot,
                "access_token": fake.token,
            },
            people=(Person("@ann:fake", "Ann Archer"), Person("@bob:fake", "Bob")),
            sends="send",
            buttons=False,
            repeatable=True,
        ),
        ChatPlatform(
            name="signal",
            make=lambda clock: FakeSignal(clock=clock),
            options=lambda fake: {"account": "+15550000001", "port": fake.port},
            people=(Person("+491700001", "Ann Archer"), Person("+491700002", "Bob")),
            sends="send",
            buttons=False,
        ),
        ChatPlatform(
            name="whatsapp_personal",
            make=lambda clock: FakePersonalWhatsApp(clock=clock),
            options=lambda fake: {"bridge": f"127.0.0.1:{fake.port}"},
            people=(Person("491700001", "Ann Archer"), Person("491700002", "Bob")),
            sends="send",
            buttons=False,
        ),
        ChatPlatform(
            name="email",
            make=lambda clock: FakeMail(clock=clock),
            options=lambda fake: {
                "address": fake.address,
                "password": fake.password,
                "imap_host": "127.0.0.1",
                "imap_port": fake.imap_port,
                "smtp_host": "127.0.0.1",
                "smtp_port": fake.smtp_port,
                "security": "none",
            },
            people=(Person("ann@example.org", "Ann Archer"), Person("bob@example.org", "Bob")),
            sends="SMTP DATA",
            writing={"headers": VERIFIED},
            buttons=False,
        ),
        ChatPlatform(
            name="webhook",
            make=lambda clock: FakeWebhook(clock=clock),
            options=lambda fake: {"secret": fake.secret, "url": fake.answers_url},
            people=(Person("ann", "Ann Archer"), Person("bob", "Bob")),
            sends="answer",
            hook=lambda fake, url: fake.subscribe(url),
            repeatable=True,
        ),
    )
}


class ChatOffice:
    """An office with one channel to a fake platform, in this process."""

    def __init__(
        self, platform: ChatPlatform, fake: Any, staffed: Staffed, runner: ChannelRunner, puppet: Puppet
    ) -> None:
        self.platform = platform
        self.fake = fake
        self.room = staffed.room
        self.office = staffed.office
        self.folder = staffed.folder
        self.runner = runner
        self.puppet = puppet
        self.pairings = Pairings(staffed.room, SystemClock())
        self.ann, self.bob = platform.people

    async def write(
        self, text: str = "", person: Person | None = None, files: Sequence[Attachment] = ()
    ) -> InboundEvent:
        return await self.platform.write(self.fake, person or self.ann, text, files=files)

    async def command(self, words: str, person: Person | None = None) -> InboundEvent:
        return await self.write(f"{self.platform.sign}{words}", person)

    async def hear(self, containing: str, count: int = 1) -> list[Delivery]:
        return await self.fake.transcript.wait_for(containing, count=count)

    async def pair(self, person: Person | None = None) -> None:
        person = person or self.ann
        await self.write("hello?", person)

        async def waits() -> bool:
            return any(each.sender_id == person.id for each in await self.pairings.waiting())

        await until(waits)
        code = next(each.code for each in await self.pairings.waiting() if each.sender_id == person.id)
        await self.hear(code)
        await self.pairings.approve(code)


class _Control:
    """What commands in chats stand on."""

    def __init__(self, office: Any, settings: Any) -> None:
        self.office = office
        self.settings = settings
        self.plugins = None

    async def apply(self) -> None:
        return


@asynccontextmanager
async def take_pushes(runner: ChannelRunner, port: int = 0) -> AsyncIterator[str]:
    """A URL whose requests reach the channel, as the server's own do."""

    async def accept(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        pushed = WebhookRequest(
            method=request.method, headers=headers, query=dict(request.query), body=await request.read()
        )
        answer = await runner.accept_webhook(pushed)
        return web.Response(status=answer.status, text=answer.text)

    app = web.Application()
    app.router.add_route("*", "/hook", accept)
    serving = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await serving.setup()
    site = web.TCPSite(serving, "127.0.0.1", port, reuse_address=True)
    await site.start()
    try:
        yield f"http://127.0.0.1:{serving.addresses[0][1]}/hook"
    finally:
        await serving.cleanup()


async def wait_until_connected(platform: ChatPlatform, fake: Any) -> None:
    """What is written before a socket is open for the first time is not for the office."""
    match platform.name:
        case "discord":
            await until(lambda: fake.gateway.connected)
        case "slack":
            await until(lambda: fake.socket.connected)


async def wait_until_looked_at(platform: ChatPlatform, room: postroom.Room) -> None:
    """What lies in a mailbox before it is first looked at is not for the office."""

    async def is_looked_at() -> bool:
        return await room.document(CURSOR, platform.name) is not None

    if platform.name == "email":
        await until(is_looked_at)


@asynccontextmanager
async def open_chat_office(
    folder: Path,
    platform: ChatPlatform,
    fake: Any,
    act: Callable[[TurnRequest], Any],
    *,
    options: dict[str, Any] | None = None,
    rules: ChatRules | None = None,
    sleep: Any = None,
    port: int = 0,
    lease_s: float = 15.0,
    **changes: Any,
) -> AsyncIterator[ChatOffice]:
    puppet = Puppet(act)
    agents = {name: {"name": name.title(), "provider": "puppet", "model": ""} for name in ("lead", "coder")}
    changes = {
        "agents": agents,
        "teams": {"dev": {"name": "Dev", "agents": ["lead", "coder"], "leader_agent": "lead"}},
        **changes,
    }
    async with (
        postroom.open(f"sqlite:///{folder / 'room.db'}", durability="relaxed") as room,
        opened(room, folder, puppets={"puppet": puppet}, **changes) as staffed,
    ):
        given = {**platform.options(fake), **(options or {})}
        name = platform.name
        channel = find_kind(str(given.get("platform") or name)).build(name, given)
        control = _Control(staffed.office, parse(document(folder, changes)))
        reviews = Services(room).reviews
        pairings = Pairings(room, SystemClock())
        setup = ChannelSetup(
            admit=pairings.admit,
            take=staffed.office.take_in,
            files=staffed.office.files,
            rules=rules or ChatRules(agent_of_guests=lambda: staffed.office.directory.default),
            answer=ChatCommands(room, control, reviews, SystemClock()).answer,  # type: ignore[arg-type]
            find_role=pairings.find_role,
            interrupt=staffed.office.interrupt,
            steer=staffed.office.steer,
            lease_s=lease_s,
        )
        runner = ChannelRunner(room, name, channel, setup, SystemClock(), sleep=sleep or asyncio.sleep)
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: runner.status.receiving or runner.status.problem or running.done())
            assert runner.status.problem is None, runner.status.problem
            await wait_until_looked_at(platform, room)
            if fake is not None:
                await wait_until_connected(platform, fake)
            async with take_pushes(runner, port) as url:
                if platform.hook is not None:
                    await platform.hook(fake, url)
                yield ChatOffice(platform, fake, staffed, runner, puppet)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
