"""discord.py against the fake Discord: gateway, REST, interactions, and what goes wrong with each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import discord
import discord.gateway
import discord.http
import pytest
import yarl

from postroom.testing.platforms.base import FakePlatformFailure, Person
from postroom.testing.platforms.discord import FakeDiscord
from postroom.testing.platforms.faults import ConnectionDropped, RateLimited, ServerFailed
from postroom.testing.platforms.transcript import GIVE_UP_SECONDS, Attachment

ANN = Person("2001", "Ann Archer", "ann")
BOB = Person("2002", "Bob")


class Recorder(discord.Client):
    """A bot that remembers what it was told."""

    def __init__(self, intents: discord.Intents) -> None:
        super().__init__(intents=intents, max_ratelimit_timeout=30, guild_ready_timeout=0.05)
        self.tree = discord.app_commands.CommandTree(self)
        self.messages: asyncio.Queue[discord.Message] = asyncio.Queue()
        self.interactions: asyncio.Queue[discord.Interaction] = asyncio.Queue()

    async def on_message(self, message: discord.Message) -> None:
        if message.author != self.user:
            self.messages.put_nowait(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.interactions.put_nowait(interaction)

    async def next_message(self) -> discord.Message:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            return await self.messages.get()

    async def next_interaction(self) -> discord.Interaction:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            return await self.interactions.get()


def point_library_at(fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord.http.Route, "BASE", fake.api_url)
    gateway = yarl.URL(fake.gateway_url)
    monkeypatch.setattr(discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", gateway)


@pytest.fixture
async def fake(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as fake:
        point_library_at(fake, monkeypatch)
        yield fake


@pytest.fixture
def intents() -> discord.Intents:
    intents = discord.Intents.default()
    intents.message_content = True
    return intents


@asynccontextmanager
async def run_bot(fake: FakeDiscord, intents: discord.Intents) -> AsyncIterator[Recorder]:
    async with Recorder(intents) as client:
        ready = asyncio.create_task(client.wait_for("ready", timeout=GIVE_UP_SECONDS))
        running = asyncio.create_task(client.start(fake.token))
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            ready.cancel()
            await running
        await ready
        yield client
    await asyncio.wait({running})


@pytest.fixture
async def bot(fake: FakeDiscord, intents: discord.Intents) -> AsyncIterator[Recorder]:
    async with run_bot(fake, intents) as client:
        yield client


async def test_a_bot_hears_private_messages_and_answers_once(fake: FakeDiscord, bot: Recorder) -> None:
    event = await fake.write(ANN, "hello")
    message = await bot.next_message()
    assert (message.content, message.author.id, str(message.id)) == ("hello", 2001, event.message_id)
    assert isinstance(message.channel, discord.DMChannel)
    await message.reply("hello **Ann**")
    delivery = fake.transcript.exactly_one("hello **Ann**", chat=event.chat)
    assert delivery.reply_to == event.message_id


async def test_a_bot_opens_a_private_channel_by_itself(fake: FakeDiscord, bot: Recorder) -> None:
    await fake.add_server("Office", ANN)
    channel = await bot.create_dm(discord.Object(int(ANN.id)))
    await channel.send("first")
    fake.transcript.exactly_one("first")
    with pytest.raises(discord.HTTPException) as unknown:
        await bot.create_dm(discord.Object(int(BOB.id)))
    assert unknown.value.code == 50033


async def test_servers_threads_mentions_and_files(fake: FakeDiscord, bot: Recorder) -> None:
    channel = await fake.add_server("Office", ANN)
    picture = Attachment("chart.png", b"png", "image/png")
    await fake.write(ANN, "<@1140000000000000001> look", chat=channel, files=[picture])
    message = await bot.next_message()
    assert message.guild is not None
    assert bot.user in message.mentions
    assert await message.attachments[0].read() == b"png"
    thread = await message.create_thread(name="charts")
    await thread.send("seen", file=discord.File(__file__, filename="me.py"))
    delivery = fake.transcript.exactly_one("seen")
    assert delivery.thread == str(thread.id)
    assert delivery.attachments[0].name == "me.py"
    assert b"discord.py against" in delivery.attachments[0].content
    await fake.write(ANN, "in the thread", chat=str(thread.id))
    assert (await bot.next_message()).channel.id == thread.id
    async with thread.typing():
        pass
    await message.add_reaction("👀")
    assert [act.kind for act in fake.transcript.acts] == ["download", "typing", "reaction"]


async def test_edits_and_deletions(fake: FakeDiscord, bot: Recorder) -> None:
    await fake.write(ANN, "go")
    channel = (await bot.next_message()).channel
    sent = await channel.send("working")
    await sent.edit(content="done")
    delivery = fake.transcript.exactly_one("done")
    assert delivery.edits == ["working"]
    await sent.delete()
    assert fake.transcript.texts() == []
    with pytest.raises(discord.NotFound) as gone:
        await sent.edit(content="again")
    assert gone.value.code == 10008


async def test_limits_are_discords(fake: FakeDiscord, bot: Recorder) -> None:
    await fake.write(ANN, "go")
    channel = (await bot.next_message()).channel
    await channel.send("x" * 2000)
    for content, code in (("x" * 2001, 50035), ("  ", 50006)):
        with pytest.raises(discord.HTTPException) as refused:
            await channel.send(content)
        assert refused.value.code == code
    with pytest.raises(discord.HTTPException) as unknown:
        await bot.fetch_channel(99)
    assert unknown.value.code == 10003
    fake.refuse_messages_of_bot(ANN)
    with pytest.raises(discord.Forbidden) as closed:
        await channel.send("hello")
    assert closed.value.code == 50007


async def test_a_button_is_acknowledged_once(fake: FakeDiscord, bot: Recorder) -> None:
    await fake.write(ANN, "deploy")
    channel = (await bot.next_message()).channel
    view = discord.ui.View(timeout=None)
    for label in ("Yes", "No"):
        view.add_item(discord.ui.Button(label=label, custom_id=f"review:{label}"))
    await channel.send("Deploy?", view=view)
    delivery = fake.transcript.exactly_one("Deploy?")
    await fake.press(ANN, delivery, "Yes")
    pressed = await bot.next_interaction()
    assert pressed.data is not None
    assert (pressed.data.get("custom_id"), pressed.user.id) == ("review:Yes", 2001)
    await pressed.response.edit_message(content="Deployed.", view=None)
    assert (delivery.text, delivery.buttons) == ("Deployed.", ())
    await pressed.followup.send("and tagged")
    fake.transcript.exactly_one("and tagged")

    await channel.send("Again?", view=view)
    again = fake.transcript.exactly_one("Again?")
    await fake.press(ANN, again, "No")
    late = await bot.next_interaction()
    fake.clock.advance(4)
    with pytest.raises(discord.NotFound) as expired:
        await late.response.defer()
    assert expired.value.code == 10062
    await fake.press(ANN, again, "No")
    twice = await bot.next_interaction()
    await twice.response.defer()
    other = discord.Interaction(data=await raw_of(fake), state=bot._connection)
    with pytest.raises(discord.HTTPException) as repeated:
        await other.response.defer()
    assert repeated.value.code == 40060


async def raw_of(fake: FakeDiscord) -> Any:
    """The last interaction as it stood on the wire: another process of the same bot would answer this."""
    events = next(iter(fake.gateway._sessions.values())).events
    return [data for _, event, data in events if event == "INTERACTION_CREATE"][-1]


async def test_slash_commands(fake: FakeDiscord, bot: Recorder) -> None:
    used: list[str] = []

    @bot.tree.command(name="agent", description="Talk to an agent")
    async def agent(interaction: discord.Interaction, name: str) -> None:
        used.append(name)
        await interaction.response.defer(thinking=True)
        await interaction.edit_original_response(content=f"now with {name}")

    await bot.tree.sync()
    with pytest.raises(AssertionError, match="no command /team"):
        await fake.command(ANN, "team")
    await fake.command(ANN, "agent", {"name": "coder"})
    await fake.transcript.wait_for("now with coder")
    assert used == ["coder"]
    fake.clock.advance(16 * 60)
    with pytest.raises(discord.HTTPException) as expired:
        await (await bot.next_interaction()).followup.send("too late")
    assert expired.value.code == 50027


async def test_a_resumed_session_hears_what_happened_meanwhile(fake: FakeDiscord, bot: Recorder) -> None:
    resumed = asyncio.create_task(bot.wait_for("resumed", timeout=GIVE_UP_SECONDS))
    fake.gateway.drop_connections()
    await fake.gateway.wait_until_connected(False)
    await fake.write(ANN, "while you were away")
    assert (await bot.next_message()).content == "while you were away"
    await resumed
    assert (fake.gateway.identified, fake.gateway.resumed) == (1, 1)
    assert bot.messages.empty()


async def test_a_lost_session_hears_nothing_of_it_but_may_fetch(fake: FakeDiscord, bot: Recorder) -> None:
    first = await fake.write(ANN, "one")
    channel = (await bot.next_message()).channel
    ready = asyncio.create_task(bot.wait_for("ready", timeout=GIVE_UP_SECONDS))
    fake.gateway.forget_sessions()
    await fake.write(ANN, "two")
    await fake.write(ANN, "three")
    await ready
    await fake.write(ANN, "four")
    assert (await bot.next_message()).content == "four"
    after = discord.Object(int(first.message_id))
    missed = [message.content async for message in channel.history(after=after, oldest_first=True)]
    assert missed == ["two", "three", "four"]


async def test_the_gateway_may_ask_to_reconnect_and_may_repeat(fake: FakeDiscord, bot: Recorder) -> None:
    resumed = asyncio.create_task(bot.wait_for("resumed", timeout=GIVE_UP_SECONDS))
    await fake.gateway.ask_to_reconnect()
    await resumed
    event = await fake.write(ANN, "once")
    await fake.redeliver(event)
    assert [(await bot.next_message()).id for _ in range(2)] == [int(event.message_id)] * 2


async def test_contents_are_hidden_from_bots_without_the_intent(fake: FakeDiscord) -> None:
    async with run_bot(fake, discord.Intents.default()) as client:
        channel = await fake.add_server("Office", ANN)
        await fake.write(ANN, "secret", chat=channel)
        await fake.write(ANN, "to you alone")
        assert [(await client.next_message()).content for _ in range(2)] == ["", "to you alone"]


@pytest.mark.parametrize(("token", "granted", "error"), [
    ("wrong", True, discord.LoginFailure), (None, False, discord.PrivilegedIntentsRequired),
])  # fmt: skip
async def test_bad_tokens_and_intents_are_refused(
    fake: FakeDiscord, intents: discord.Intents, token: str | None, granted: bool, error: type[Exception]
) -> None:
    fake.gateway.privileged_intents = granted
    async with Recorder(intents) as client:
        with pytest.raises(error):
            await client.start(token or fake.token)


async def test_a_nonce_makes_a_repeated_send_harmless(fake: FakeDiscord, bot: Recorder) -> None:
    await fake.write(ANN, "go")
    channel = (await bot.next_message()).channel
    fake.faults.plan("create_message", ConnectionDropped("after"))
    with pytest.raises(aiohttp.ClientError):
        await channel.send("once", nonce=7)
    again = await channel.send("once", nonce=7)
    assert str(again.id) == fake.transcript.exactly_one("once").id
    await channel.send("once", nonce=8)
    assert fake.transcript.texts() == ["once", "once"]


async def test_rate_limits_and_failures_reach_the_library(fake: FakeDiscord, bot: Recorder) -> None:
    await fake.write(ANN, "go")
    channel = (await bot.next_message()).channel
    fake.faults.plan("create_message", RateLimited(0.01), RateLimited(600), ServerFailed(503))
    with pytest.raises(discord.RateLimited) as limited:
        await channel.send("one")
    assert limited.value.retry_after == 600
    with pytest.raises(discord.DiscordServerError):
        await channel.send("one")
    assert fake.transcript.texts() == []
    await channel.send("one")
    fake.transcript.exactly_one("one")


async def use_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeDiscord() as fake:
        point_library_at(fake, monkeypatch)
        async with Recorder(discord.Intents.none()) as client:
            await client.login(fake.token)
            event = await fake.write(ANN, "go")
            channel = await client.fetch_channel(int(event.chat))
            assert isinstance(channel, discord.DMChannel)
            for attempt in (client.fetch_guild(1), channel.send(embed=discord.Embed(title="x"))):
                with pytest.raises(discord.DiscordServerError, match="does not implement"):
                    await attempt


async def test_what_is_not_implemented_is_refused_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FakePlatformFailure) as caught:
        await use_what_is_missing(monkeypatch)
    assert "GET /api/v10/guilds/1" in str(caught.value)
    assert "messages with embeds" in str(caught.value)
