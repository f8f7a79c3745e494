"""The client-server API of Matrix, as a bot in unencrypted rooms uses it, and what people do."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from aiohttp import web

from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import InboundEvent, Person
from postroom.testing.platforms.faults import RateLimited
from postroom.testing.platforms.http import (
    HttpPlatform,
    NotImplementedByFake,
    Refusal,
    answer_json,
    read_parameters,
)
from postroom.testing.platforms.matrix.rooms import TIMELINE_LIMIT, EventStream, MatrixRoom
from postroom.testing.platforms.transcript import Act, Attachment, Delivery

BOT = "@office:fake"
TOKEN = "syt_fake_matrix_token"
DEVICE = "FAKEDEVICE"
EVENT_BYTES = 65_536
FILE_KINDS = ("m.file", "m.image", "m.audio", "m.video")


class FakeMatrix(HttpPlatform):
    """nio: `AsyncClient(matrix.url, matrix.bot)` with `access_token`. Calls are named `sync`, `send`, `join`,
    `messages`, `upload`, `download`, `typing`, `redact`.

    A person's id is their Matrix id, `@ann:fake`.
    """

    name = "Matrix"

    def __init__(self, *, token: str = TOKEN, clock: HeldClock | None = None) -> None:
        super().__init__(clock=clock)
        self.token = token
        self.bot = BOT
        self.password = "matrix-password"
        self._stream = EventStream(self.clock, BOT)
        self._direct: dict[str, str] = {}
        # Answers by transaction: a repeated one does nothing.
        self._transactions: dict[str, str] = {}
        self._media: dict[str, Attachment] = {}

    # What people do

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        chat: str | None = None,
        thread: str | None = None,
        files: Sequence[Attachment] = (),
        reply_to: str | None = None,
    ) -> InboundEvent:
        """A person writes to the bot, or into a room; their first message comes with an invitation."""
        room = self._open_direct(person) if chat is None else self._stream.rooms[chat]
        contents: list[dict[str, Any]] = [self._describe_file(file) for file in files]
        if text:
            contents.append({"msgtype": "m.text", "body": text})
        relation: dict[str, Any] = {}
        if thread is not None:
            relation |= {"rel_type": "m.thread", "event_id": thread, "is_falling_back": True}
        if reply_to is not None:
            relation["m.in_reply_to"] = {"event_id": reply_to}
        if relation:
            contents[0]["m.relates_to"] = relation
        events = [self._stream.add(room, person.id, "m.room.message", content) for content in contents]
        return InboundEvent(events[0]["event_id"], room.id, events[0]["event_id"])

    async def edit(self, person: Person, event: InboundEvent, text: str) -> InboundEvent:
        content = {
            "msgtype": "m.text",
            "body": f"* {text}",
            "m.new_content": {"msgtype": "m.text", "body": text},
            "m.relates_to": {"rel_type": "m.replace", "event_id": event.message_id},
        }
        edited = self._stream.add(self._stream.rooms[event.chat], person.id, "m.room.message", content)
        return InboundEvent(edited["event_id"], event.chat, event.message_id)

    async def react(self, person: Person, delivery: Delivery, emoji: str) -> InboundEvent:
        """A person reacts to a message: Matrix has no buttons, and bots ask for this instead."""
        relation = {"rel_type": "m.annotation", "event_id": delivery.id, "key": emoji}
        room = self._stream.rooms[delivery.chat]
        event = self._stream.add(room, person.id, "m.reaction", {"m.relates_to": relation})
        return InboundEvent(event["event_id"], delivery.chat, delivery.id)

    def add_room(self, creator: Person) -> str:
        """A room that the bot is in."""
        return self._stream.add_room(creator.id, joined=True).id

    def join(self, room: str, person: Person) -> None:
        """A person enters a room, which is then shared by more than two."""
        content = {"membership": "join"}
        self._stream.add(self._stream.rooms[room], person.id, "m.room.member", content, state_key=person.id)

    # What bots call

    def routes(self) -> Iterable[web.RouteDef]:
        api, room = "/_matrix/client/v3", "/_matrix/client/v3/rooms/{room}"
        return [
            web.get("/_matrix/client/versions", self._versions, name="versions"),
            web.post(f"{api}/login", self._login, name="login"),
            web.get(f"{api}/account/whoami", self._whoami, name="whoami"),
            web.get(f"{api}/sync", self._sync, name="sync"),
            web.post(f"{api}/join/{{room}}", self._join, name="join"),
            web.put(f"{room}/send/{{kind}}/{{transaction}}", self._send, name="send"),
            web.put(f"{room}/redact/{{event}}/{{transaction}}", self._redact, name="redact"),
            web.get(f"{room}/messages", self._messages, name="messages"),
            web.put(f"{room}/typing/{{user}}", self._type, name="typing"),
            web.post(f"{room}/read_markers", self._read, name="read_markers"),
            web.get(f"{api}/profile/{{user}}/displayname", self._display_name, name="displayname"),
            web.post("/_matrix/media/v3/upload", self._upload, name="upload"),
            web.get("/_matrix/client/v1/media/download/{server}/{media}", self._download, name="download"),
            web.get(
                "/_matrix/client/v1/media/download/{server}/{media}/{name}",
                self._download,
                name="download_as",
            ),
        ]

    def render_refusal(self, refusal: Refusal) -> web.Response:
        code = refusal.details.get("errcode", "M_UNKNOWN")
        return answer_json({"errcode": code, "error": refusal.message}, refusal.status)

    def render_rate_limit(self, fault: RateLimited) -> web.Response:
        milliseconds = round(fault.retry_after * 1000)
        answer = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many requests", "retry_after_ms": milliseconds}
        return answer_json(answer, 429)

    def _check_token(self, request: web.Request) -> None:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if (given or request.query.get("access_token")) != self.token:
            raise Refusal(401, "Invalid access token passed.", errcode="M_UNKNOWN_TOKEN")

    def _find_room(self, request: web.Request) -> MatrixRoom:
        self._check_token(request)
        room = self._stream.rooms.get(request.match_info["room"])
        if room is None or (room.membership != "join" and "send" in request.path):
            raise Refusal(403, f"User {BOT} not in room", errcode="M_FORBIDDEN")
        return room

    async def _versions(self, request: web.Request) -> web.Response:
        return answer_json({"versions": ["v1.11", "v1.12"], "unstable_features": {}})

    async def _login(self, request: web.Request) -> web.Response:
        given = await request.json()
        user = given.get("identifier", {}).get("user", "")
        if given.get("type") != "m.login.password":
            raise NotImplementedByFake(f"login by {given.get('type')}")
        if given.get("password") != self.password or user not in (BOT, BOT[1:].partition(":")[0]):
            raise Refusal(403, "Invalid username or password", errcode="M_FORBIDDEN")
        return answer_json({"user_id": BOT, "access_token": self.token, "device_id": DEVICE})

    async def _whoami(self, request: web.Request) -> web.Response:
        self._check_token(request)
        return answer_json({"user_id": BOT, "device_id": DEVICE, "is_guest": False})

    async def _sync(self, request: web.Request) -> web.Response:
        self._check_token(request)
        parameters = await read_parameters(request)
        parameters.ignore("access_token", "set_presence")
        since = self._read_place(parameters.text("since", "s0"))
        timeout, full_state = parameters.number("timeout"), parameters.flag("full_state")
        limit = _read_limit(parameters.text("filter"))
        parameters.check_read("sync")
        if "since" in parameters and not full_state:
            await self._stream.wait_beyond(since, self.clock.now() + timeout * 1000)
        rooms = self._stream.describe(since, limit, full_state=full_state)
        answer = {
            "next_batch": f"s{self._stream.position}",
            "rooms": rooms,
            "presence": {"events": []},
            "account_data": {"events": []},
            "to_device": {"events": []},
            "device_lists": {"changed": [], "left": []},
            "device_one_time_keys_count": {},
        }
        return answer_json(answer)

    def _read_place(self, token: str) -> int:
        if not token.startswith("s") or not token[1:].isdigit():
            raise Refusal(400, f"Invalid stream token {token!r}", errcode="M_INVALID_PARAM")
        return int(token[1:])

    async def _join(self, request: web.Request) -> web.Response:
        room = self._find_room(request)
        self._stream.join(room)
        return answer_json({"room_id": room.id})

    async def _send(self, request: web.Request) -> web.Response:
        room = self._find_room(request)
        body = await request.read()
        kind, content = request.match_info["kind"], json.loads(body)
        if len(body) > EVENT_BYTES:
            raise Refusal(413, "event too large", errcode="M_TOO_LARGE")
        known = self._transactions.get(request.path)
        if known is not None:
            return answer_json({"event_id": known})
        self._check_content(kind, content)
        transaction = {"transaction_id": request.match_info["transaction"]}
        event = self._stream.add(room, BOT, kind, content, unsigned=transaction)
        self._transactions[request.path] = event["event_id"]
        if kind == "m.reaction":
            relation = content["m.relates_to"]
            data = {"message_id": relation["event_id"], "emoji": [relation["key"]]}
            self.transcript.add_act(Act("reaction", room.id, self.clock.now(), data))
        else:
            self._show(room, event)
        return answer_json({"event_id": event["event_id"]})

    def _check_content(self, kind: str, content: dict[str, Any]) -> None:
        if kind not in ("m.room.message", "m.reaction"):
            raise NotImplementedByFake(f"events of type {kind}")
        if kind == "m.room.message" and content.get("msgtype") not in ("m.text", "m.notice", *FILE_KINDS):
            raise NotImplementedByFake(f"messages of type {content.get('msgtype')}")
        if content.get("msgtype") in FILE_KINDS and self._find_media(content["url"]) is None:
            raise Refusal(404, "There is no such file", errcode="M_NOT_FOUND")

    def _show(self, room: MatrixRoom, event: dict[str, Any]) -> None:
        content = event["content"]
        relation = content.get("m.relates_to", {})
        if relation.get("rel_type") == "m.replace":
            delivery = self.transcript.find(room.id, relation["event_id"])
            if delivery is None:
                raise Refusal(404, "There is no such event", errcode="M_NOT_FOUND")
            new = content["m.new_content"]
            delivery.edits.append(delivery.text)
            delivery.text, delivery.markup = new["body"], new.get("formatted_body")
            self.transcript.note_change()
            return
        file = self._find_media(content["url"]) if content["msgtype"] in FILE_KINDS else None
        attachments = () if file is None else (Attachment(content["body"], file.content, file.media_type),)
        self.transcript.add(
            Delivery(
                id=event["event_id"],
                chat=room.id,
                text="" if file else content["body"],
                at=self.clock.now(),
                thread=relation.get("event_id") if relation.get("rel_type") == "m.thread" else None,
                reply_to=relation.get("m.in_reply_to", {}).get("event_id"),
                markup=content.get("formatted_body"),
                attachments=attachments,
                extra={"msgtype": content["msgtype"]},
            )
        )

    async def _redact(self, request: web.Request) -> web.Response:
        room = self._find_room(request)
        event_id = request.match_info["event"]
        if room.find(event_id) is None:
            raise Refusal(404, "There is no such event", errcode="M_NOT_FOUND")
        event = self._stream.add(room, BOT, "m.room.redaction", {"redacts": event_id}, redacts=event_id)
        if delivery := self.transcript.find(room.id, event_id):
            delivery.deleted = True
            self.transcript.note_change()
        return answer_json({"event_id": event["event_id"]})

    async def _messages(self, request: web.Request) -> web.Response:
        room = self._find_room(request)
        parameters = await read_parameters(request)
        parameters.ignore("access_token")
        start = self._read_place(parameters.text("from", f"s{self._stream.position}"))
        end = self._read_place(parameters.text("to")) if "to" in parameters else None
        direction, limit = parameters.text("dir", "b"), parameters.number("limit", 10)
        parameters.check_read("messages")
        return answer_json(self._stream.page(room, start, direction, limit, end))

    async def _type(self, request: web.Request) -> web.Response:
        room = self._find_room(request)
        given = await request.json()
        if given["typing"]:
            self.transcript.add_act(Act("typing", room.id, self.clock.now()))
        return answer_json({})

    async def _read(self, request: web.Request) -> web.Response:
        room = self._find_room(request)
        given = await request.json()
        data = {"message_id": given.get("m.read") or given.get("m.fully_read")}
        self.transcript.add_act(Act("read", room.id, self.clock.now(), data))
        return answer_json({})

    async def _display_name(self, request: web.Request) -> web.Response:
        return answer_json({"displayname": request.match_info["user"][1:].partition(":")[0].title()})

    async def _upload(self, request: web.Request) -> web.Response:
        self._check_token(request)
        content = await request.read()
        media = self._store(Attachment(request.query.get("filename", ""), content, request.content_type))
        return answer_json({"content_uri": media})

    async def _download(self, request: web.Request) -> web.Response:
        self._check_token(request)
        file = self._media.get(request.match_info["media"])
        if file is None:
            raise Refusal(404, "There is no such file", errcode="M_NOT_FOUND")
        self.transcript.add_act(Act("download", "", self.clock.now(), {"name": file.name}))
        return web.Response(body=file.content, content_type=file.media_type)

    def _open_direct(self, person: Person) -> MatrixRoom:
        if person.id not in self._direct:
            self._direct[person.id] = self._stream.add_room(person.id, joined=False).id
        return self._stream.rooms[self._direct[person.id]]

    def _describe_file(self, file: Attachment) -> dict[str, Any]:
        kind = file.media_type.split("/", maxsplit=1)[0]
        kind = f"m.{kind}" if kind in ("image", "audio", "video") else "m.file"
        info = {"mimetype": file.media_type, "size": len(file.content)}
        return {"msgtype": kind, "body": file.name, "url": self._store(file), "info": info}

    def _store(self, file: Attachment) -> str:
        media = f"media{len(self._media) + 1}"
        self._media[media] = file
        return f"mxc://fake/{media}"

    def _find_media(self, uri: str) -> Attachment | None:
        return self._media.get(uri.removeprefix("mxc://fake/"))


def _read_limit(given: str) -> int:
    if not given:
        return TIMELINE_LIMIT
    if not given.startswith("{"):
        raise NotImplementedByFake("filters by id")
    return json.loads(given).get("room", {}).get("timeline", {}).get("limit", TIMELINE_LIMIT)
