"""Discord's REST calls, and what people do on Discord."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiohttp import web

from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import InboundEvent, Person
from postroom.testing.platforms.discord.gateway import (
    DIRECT_MESSAGES,
    GUILD_MESSAGES,
    GUILDS,
    Gateway,
    gateway_address,
)
from postroom.testing.platforms.discord.interactions import COMMAND, COMPONENT, Interactions, OpenInteraction
from postroom.testing.platforms.discord.messages import ChannelMessages
from postroom.testing.platforms.discord.objects import (
    ALL_PERMISSIONS,
    PRIVATE,
    TEXT,
    THREAD,
    DiscordChannel,
    DiscordServer,
    SnowflakeMint,
    render_member,
    render_server,
    render_user,
)
from postroom.testing.platforms.faults import RateLimited
from postroom.testing.platforms.http import (
    CallParameters,
    HttpPlatform,
    Refusal,
    answer_json,
    read_parameters,
)
from postroom.testing.platforms.transcript import Act, Attachment, Delivery

TOKEN = "MTE0.Fake.discord-token"
APPLICATION = "1140000000000000001"
TEXT_OPTION = 3


class FakeDiscord(HttpPlatform):
    """discord.py: `discord.http.Route.BASE = discord.api_url` and, for the gateway,
    `discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(discord.gateway_url)`.
    Calls are named as in Discord's documentation: `create_message`, `edit_message`, `create_dm`.
    """

    name = "Discord"

    def __init__(self, *, token: str = TOKEN, clock: HeldClock | None = None) -> None:
        super().__init__(clock=clock)
        self.token = token
        self.bot = {
            "id": APPLICATION,
            "username": "office",
            "global_name": None,
            "discriminator": "0001",
            "avatar": None,
            "bot": True,
            "flags": 0,
            "verified": True,
            "mfa_enabled": False,
        }
        self.gateway = Gateway(token, lambda: self.gateway_url, self._list_greetings, self.record_failure)
        # Slash commands: of the whole application under None, else under the server's id.
        self.commands: dict[str | None, list[dict[str, Any]]] = {}
        self._mint = SnowflakeMint(self.clock)
        self._servers: dict[str, DiscordServer] = {}
        self._channels: dict[str, DiscordChannel] = {}
        self._messages = ChannelMessages(self.clock, self._mint, self.transcript, self.bot)
        self._interactions = Interactions(self.clock, self._mint, self.transcript, self._messages)

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        return gateway_address(self.port)

    # What people do

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        chat: str | None = None,
        files: Sequence[Attachment] = (),
        reply_to: str | None = None,
    ) -> InboundEvent:
        """A person writes to the bot, or into a channel or thread of a server. `<@id>` mentions the bot."""
        channel = self._open_private(person) if chat is None else self._channels[chat]
        original = None if reply_to is None else self._messages.get(channel.id, reply_to)
        mentioned = f"<@{APPLICATION}>" in text or (original is not None and original["author"] is self.bot)
        message = self._messages.add(
            channel, render_user(person), text, files, original, mentions=[self.bot] if mentioned else ()
        )
        await self._announce("MESSAGE_CREATE", channel, message, readable=mentioned)
        return InboundEvent(message["id"], channel.id, message["id"])

    async def edit(self, person: Person, event: InboundEvent, text: str) -> InboundEvent:
        message = self._messages.get(event.chat, event.message_id)
        message |= {"content": text, "edited_timestamp": message["timestamp"]}
        await self._announce("MESSAGE_UPDATE", self._channels[event.chat], message, readable=False)
        return event

    async def press(self, person: Person, delivery: Delivery, label: str) -> InboundEvent:
        """A person presses a button below a message of the bot."""
        channel = self._channels[delivery.chat]
        interaction = self._interactions.begin(channel, COMPONENT, delivery.id)
        data = {"component_type": 2, "custom_id": delivery.button(label).value, "id": 1}
        message = self._messages.get(channel.id, delivery.id)
        await self._announce_interaction(interaction, person, data, message=message)
        return InboundEvent(interaction.id, channel.id, delivery.id)

    async def command(
        self, person: Person, name: str, options: Mapping[str, str] | None = None, *, chat: str | None = None
    ) -> InboundEvent:
        """A person uses a slash command that the bot has registered; options are texts."""
        channel = self._open_private(person) if chat is None else self._channels[chat]
        known = [command for commands in self.commands.values() for command in commands]
        registered = next((command for command in known if command["name"] == name), None)
        if registered is None:
            raise AssertionError(f"there is no command /{name}, only {[c['name'] for c in known]}")
        interaction = self._interactions.begin(channel, COMMAND)
        given = [{"name": key, "type": TEXT_OPTION, "value": value} for key, value in (options or {}).items()]
        data = {"id": registered["id"], "name": name, "type": 1, "options": given}
        await self._announce_interaction(interaction, person, data)
        return InboundEvent(interaction.id, channel.id, interaction.id)

    async def add_server(self, name: str, *members: Person) -> str:
        """A server that the bot is in, and the id of its channel."""
        server = DiscordServer(self._mint.mint(), name, {member.id: member for member in members})
        self._servers[server.id] = server
        channel = DiscordChannel(self._mint.mint(), TEXT, "general", server)
        self._channels[channel.id] = channel
        await self.gateway.dispatch("GUILD_CREATE", self._render_server(server), GUILDS)
        return channel.id

    async def add_thread(self, chat: str, name: str) -> str:
        """A person opens a thread in a channel of a server; the id under which it is written to."""
        parent = self._channels[chat]
        thread = DiscordChannel(self._mint.mint(), THREAD, name, parent.server, parent=parent.id)
        return (await self._open_thread(thread))["id"]

    def refuse_messages_of_bot(self, person: Person) -> None:
        """The person takes no direct messages from the bot."""
        self._open_private(person).closed = True

    async def redeliver(self, event: InboundEvent) -> None:
        """The gateway tells a message again, under a new number, as it may after a resume."""
        message = self._messages.get(event.chat, event.message_id)
        await self._announce("MESSAGE_CREATE", self._channels[event.chat], message, readable=True)

    # What bots call

    def routes(self) -> Iterable[web.RouteDef]:
        api, hooks = "/api/v10", "/api/v10/webhooks/{application}/{token}"
        channel, message = f"{api}/channels/{{channel}}", f"{api}/channels/{{channel}}/messages/{{message}}"
        application = f"{api}/applications/{{application}}"
        return [
            web.get("/gateway", self.gateway.serve, name="gateway"),
            web.get("/attachments/{path:.+}", self._download, name="download"),
            web.get(f"{api}/gateway/bot", self._get_gateway, name="get_gateway_bot"),
            web.get(f"{api}/users/@me", self._get_me, name="get_current_user"),
            web.get(f"{api}/oauth2/applications/@me", self._get_application, name="get_application"),
            web.post(f"{api}/users/@me/channels", self._create_dm, name="create_dm"),
            web.get(channel, self._get_channel, name="get_channel"),
            web.get(f"{channel}/messages", self._get_messages, name="get_messages"),
            web.post(f"{channel}/messages", self._create_message, name="create_message"),
            web.get(message, self._get_message, name="get_message"),
            web.patch(message, self._edit_message, name="edit_message"),
            web.delete(message, self._delete_message, name="delete_message"),
            web.put(f"{message}/reactions/{{emoji}}/@me", self._react, name="create_reaction"),
            web.post(f"{message}/threads", self._start_thread, name="start_thread"),
            web.post(f"{channel}/typing", self._type, name="trigger_typing"),
            web.put(f"{application}/commands", self._set_commands, name="set_commands"),
            web.put(
                f"{application}/guilds/{{guild}}/commands", self._set_commands, name="set_guild_commands"
            ),
            web.post(
                f"{api}/interactions/{{interaction}}/{{token}}/callback",
                self._respond,
                name="interaction_response",
            ),
            web.post(hooks, self._follow_up, name="followup_message"),
            web.patch(f"{hooks}/messages/@original", self._edit_original, name="edit_original_response"),
        ]

    def render_refusal(self, refusal: Refusal) -> web.Response:
        answer = {"message": refusal.message, "code": refusal.details.get("code", 0)}
        if "errors" in refusal.details:
            answer["errors"] = refusal.details["errors"]
        return answer_json(answer, status=refusal.status)

    def render_rate_limit(self, fault: RateLimited) -> web.Response:
        # Without `Via` discord.py takes the answer for a ban by what stands before Discord.
        headers = {
            "Via": "1.1 google",
            "Retry-After": str(fault.retry_after),
            "X-RateLimit-Scope": "user",
            "X-RateLimit-Reset-After": str(fault.retry_after),
        }
        answer = {
            "message": "You are being rate limited.",
            "retry_after": fault.retry_after,
            "global": False,
        }
        return answer_json(answer, status=429, headers=headers)

    async def _open(self, port: int) -> int:
        port = await super()._open(port)
        self._messages.cdn = f"http://127.0.0.1:{port}"
        return port

    def _check_token(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bot {self.token}":
            raise Refusal(401, "401: Unauthorized")

    async def _read(self, request: web.Request) -> CallParameters:
        """JSON, or the field `payload_json` of a form beside the files."""
        parameters = await read_parameters(request)
        if "payload_json" in parameters:
            return CallParameters(parameters.structure("payload_json"), parameters.files)
        return parameters

    def _find_channel(self, request: web.Request) -> DiscordChannel:
        self._check_token(request)
        channel = self._channels.get(request.match_info["channel"])
        if channel is None:
            raise Refusal(404, "Unknown Channel", code=10003)
        return channel

    async def _get_gateway(self, request: web.Request) -> web.Response:
        self._check_token(request)
        limit = {"total": 1000, "remaining": 999, "reset_after": 14_400_000, "max_concurrency": 1}
        return answer_json({"url": self.gateway_url, "shards": 1, "session_start_limit": limit})

    async def _get_me(self, request: web.Request) -> web.Response:
        self._check_token(request)
        return answer_json(self.bot)

    async def _get_application(self, request: web.Request) -> web.Response:
        self._check_token(request)
        described = {
            "id": APPLICATION,
            "name": "office",
            "description": "",
            "icon": None,
            "bot_public": False,
            "bot_require_code_grant": False,
            "owner": render_user(Person("1", "Owner")),
            "verify_key": "0" * 64,
            "flags": 0,
        }
        return answer_json(described)

    async def _create_dm(self, request: web.Request) -> web.Response:
        self._check_token(request)
        parameters = await self._read(request)
        wanted = parameters.text("recipient_id")
        people = [member for server in self._servers.values() for member in server.members.values()]
        people += [channel.recipient for channel in self._channels.values() if channel.recipient]
        person = next((person for person in people if person.id == wanted), None)
        if person is None:
            raise Refusal(400, "Invalid Recipient(s)", code=50033)
        return answer_json(self._open_private(person).render(APPLICATION, self.clock.now()))

    async def _get_channel(self, request: web.Request) -> web.Response:
        return answer_json(self._find_channel(request).render(APPLICATION, self.clock.now()))

    async def _get_messages(self, request: web.Request) -> web.Response:
        channel = self._find_channel(request)
        parameters = await self._read(request)
        history = self._messages.history(channel.id, parameters)
        parameters.check_read("get_messages")
        return answer_json(history)

    async def _get_message(self, request: web.Request) -> web.Response:
        channel = self._find_channel(request)
        return answer_json(self._messages.get(channel.id, request.match_info["message"]))

    async def _create_message(self, request: web.Request) -> web.Response:
        channel = self._find_channel(request)
        message, new = self._messages.send(channel, await self._read(request))
        if new:
            await self._announce("MESSAGE_CREATE", channel, message, readable=True)
        return answer_json(message)

    async def _edit_message(self, request: web.Request) -> web.Response:
        channel = self._find_channel(request)
        parameters = await self._read(request)
        return answer_json(self._messages.edit(channel.id, request.match_info["message"], parameters))

    async def _delete_message(self, request: web.Request) -> web.Response:
        channel = self._find_channel(request)
        self._messages.delete(channel.id, request.match_info["message"])
        return web.Response(status=204)

    async def _react(self, request: web.Request) -> web.Response:
        channel = self._find_channel(request)
        message = self._messages.get(channel.id, request.match_info["message"])
        data = {"message_id": message["id"], "emoji": [request.match_info["emoji"]]}
        self.transcript.add_act(Act("reaction", channel.id, self.clock.now(), data))
        return web.Response(status=204)

    async def _type(self, request: web.Request) -> web.Response:
        channel = self._find_channel(request)
        self.transcript.add_act(Act("typing", channel.id, self.clock.now()))
        return web.Response(status=204)

    async def _start_thread(self, request: web.Request) -> web.Response:
        parent = self._find_channel(request)
        parameters = await self._read(request)
        message = self._messages.get(parent.id, request.match_info["message"])
        name = parameters.text("name")
        parameters.ignore("auto_archive_duration", "rate_limit_per_user")
        parameters.check_read("start_thread")
        if message["id"] in self._channels:
            raise Refusal(400, "A thread has already been created for this message", code=160004)
        # A thread that begins at a message has the message's id.
        thread = DiscordChannel(message["id"], THREAD, name, parent.server, parent=parent.id)
        return answer_json(await self._open_thread(thread), status=201)

    async def _open_thread(self, thread: DiscordChannel) -> dict[str, Any]:
        self._channels[thread.id] = thread
        rendered = thread.render(APPLICATION, self.clock.now())
        await self.gateway.dispatch("THREAD_CREATE", {**rendered, "newly_created": True}, GUILDS)
        return rendered

    async def _set_commands(self, request: web.Request) -> web.Response:
        self._check_token(request)
        guild = request.match_info.get("guild")
        commands = [
            {
                "type": 1,
                "options": [],
                "default_member_permissions": None,
                **command,
                "id": self._mint.mint(),
                "application_id": APPLICATION,
                "version": "1",
            }
            for command in await request.json()
        ]
        self.commands[guild] = commands
        return answer_json(commands)

    async def _respond(self, request: web.Request) -> web.Response:
        interaction, token = request.match_info["interaction"], request.match_info["token"]
        parameters = await self._read(request)
        answer = self._interactions.respond(interaction, token, parameters)
        parameters.check_read("interaction_response")
        if request.query.get("with_response") in ("1", "true"):
            return answer_json(answer)
        return web.Response(status=204)

    async def _follow_up(self, request: web.Request) -> web.Response:
        message = self._interactions.follow_up(request.match_info["token"], await self._read(request))
        return answer_json(message)

    async def _edit_original(self, request: web.Request) -> web.Response:
        message = self._interactions.edit_original(request.match_info["token"], await self._read(request))
        return answer_json(message)

    async def _download(self, request: web.Request) -> web.Response:
        attachment = self._messages.file_at(request.match_info["path"])
        if attachment is None:
            raise Refusal(404, "404: Not Found")
        self.transcript.add_act(Act("download", "", self.clock.now(), {"name": attachment.name}))
        return web.Response(body=attachment.content, content_type=attachment.media_type)

    def _open_private(self, person: Person) -> DiscordChannel:
        for channel in self._channels.values():
            if channel.recipient is not None and channel.recipient.id == person.id:
                return channel
        channel = DiscordChannel(self._mint.mint(), PRIVATE, "", recipient=person)
        self._channels[channel.id] = channel
        return channel

    def _render_server(self, server: DiscordServer) -> dict[str, Any]:
        channels = [channel for channel in self._channels.values() if channel.server is server]
        return render_server(server, channels, self.bot, self.clock.now())

    def _list_greetings(self) -> list[tuple[str, Any]]:
        unavailable = [{"id": server, "unavailable": True} for server in self._servers]
        ready = {
            "v": 10,
            "user": self.bot,
            "guilds": unavailable,
            "private_channels": [],
            "application": {"id": APPLICATION, "flags": 0},
        }
        servers = [("GUILD_CREATE", self._render_server(server)) for server in self._servers.values()]
        return [("READY", ready), *servers]

    async def _announce(
        self, event: str, channel: DiscordChannel, message: dict[str, Any], *, readable: bool
    ) -> None:
        """`readable`: the bot may read it also without the intent for contents."""
        if channel.server is None:
            shown = {**message, "channel_type": PRIVATE}
            await self.gateway.dispatch(event, shown, DIRECT_MESSAGES)
            return
        member = render_member(message["author"], self.clock.now())
        del member["user"]
        shown = {**message, "guild_id": channel.server.id, "member": member, "channel_type": channel.type}
        censored = None if readable else {**shown, "content": "", "attachments": [], "components": []}
        await self.gateway.dispatch(event, shown, GUILD_MESSAGES, censored=censored)

    async def _announce_interaction(
        self,
        interaction: OpenInteraction,
        person: Person,
        data: dict[str, Any],
        message: dict[str, Any] | None = None,
    ) -> None:
        channel = interaction.channel
        told: dict[str, Any] = {
            "id": interaction.id,
            "application_id": APPLICATION,
            "type": interaction.kind,
            "data": data,
            "token": interaction.token,
            "version": 1,
            "channel_id": channel.id,
            "channel": channel.render(APPLICATION, self.clock.now()),
            "locale": "en-US",
            "app_permissions": ALL_PERMISSIONS,
            "attachment_size_limit": 10 * 1024 * 1024,
            "entitlements": [],
            "authorizing_integration_owners": {},
        }
        if message is not None:
            told["message"] = message
        if channel.server is None:
            told |= {"user": render_user(person), "context": 1}
        else:
            told["guild_id"] = channel.server.id
            told["guild"] = {"id": channel.server.id, "locale": "en-US", "features": []}
            told |= {"member": render_member(render_user(person), self.clock.now()), "context": 0}
        await self.gateway.dispatch("INTERACTION_CREATE", told)
