"""What `signal-cli daemon --tcp` answers, line by line, and what people do on Signal."""

import asyncio
import base64
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import InboundEvent, Person
from postroom.testing.platforms.faults import ConnectionDropped, RateLimited
from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.line_rpc import LineClient, LineRpcPlatform, RpcError
from postroom.testing.platforms.transcript import Act, Attachment, Delivery

ACCOUNT = "+15550100"
USER_ERROR, IO_ERROR, RATE_LIMIT_ERROR = -1, -3, -5
_DATA_URI = re.compile(r"data:(?P<type>[^;,]+);(?:filename=(?P<name>[^;,]+);)?base64,(?P<data>.+)", re.DOTALL)


class FakeSignal(LineRpcPlatform):
    """Connect to `signal.port` and write one JSON-RPC request a line. Calls are named by their method;
    handing out a message is the call `receive`.

    In mode `manual` messages wait until a client subscribes; in mode `on-start`, the daemon's default,
    whatever comes while no client is connected is lost. No message is handed out twice in either mode.
    """

    name = "Signal"

    def __init__(
        self,
        *,
        receive_mode: Literal["manual", "on-start"] = "manual",
        clock: HeldClock | None = None,
    ) -> None:
        super().__init__(clock=clock)
        self.receive_mode = receive_mode
        # Envelopes that nobody will ever get.
        self.lost: list[dict[str, Any]] = []
        self.unregistered: set[str] = set()
        self._waiting: list[dict[str, Any]] = []
        self._subscribers: list[LineClient] = []
        self._attachments: dict[str, Attachment] = {}
        self._last_timestamp = 0
        self._arrived = asyncio.Event()
        self._calls: dict[str, Callable[[CallParameters], Any]] = {
            "version": lambda parameters: {"version": "0.14.6"},
            "listAccounts": lambda parameters: [{"number": ACCOUNT}],
            "send": self._send,
            "sendTyping": self._send_typing,
            "sendReaction": self._send_reaction,
            "sendReceipt": self._send_receipt,
            "remoteDelete": self._delete,
            "getAttachment": self._get_attachment,
        }

    # What people do

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        group: str | None = None,
        files: Sequence[Attachment] = (),
        reply_to: str | None = None,
    ) -> InboundEvent:
        """A person writes to the account, or into a group. `reply_to` is the timestamp they quote."""
        timestamp = self._mint()
        data: dict[str, Any] = {
            "timestamp": timestamp,
            "message": text or None,
            "expiresInSeconds": 0,
            "viewOnce": False,
        }
        if files:
            data["attachments"] = [self._describe(file) for file in files]
        if group is not None:
            data["groupInfo"] = {"groupId": group, "groupName": "Office", "revision": 1, "type": "DELIVER"}
        if reply_to is not None:
            data["quote"] = {"id": int(reply_to), "authorNumber": ACCOUNT, "text": "", "attachments": []}
        await self._arrive(person, timestamp, {"dataMessage": data})
        return InboundEvent(str(timestamp), group or person.id, str(timestamp))

    async def edit(self, person: Person, event: InboundEvent, text: str) -> InboundEvent:
        timestamp = self._mint()
        data = {"timestamp": timestamp, "message": text, "expiresInSeconds": 0, "viewOnce": False}
        edited = {"targetSentTimestamp": int(event.message_id), "dataMessage": data}
        await self._arrive(person, timestamp, {"editMessage": edited})
        return InboundEvent(str(timestamp), event.chat, event.message_id)

    async def react(self, person: Person, delivery: Delivery, emoji: str) -> InboundEvent:
        """A person reacts to a message: Signal has no buttons, and bots ask for this or for words."""
        timestamp = self._mint()
        reaction = {
            "emoji": emoji,
            "targetAuthorNumber": ACCOUNT,
            "targetSentTimestamp": int(delivery.id),
            "isRemove": False,
        }
        data = {"timestamp": timestamp, "message": None, "expiresInSeconds": 0, "reaction": reaction}
        await self._arrive(person, timestamp, {"dataMessage": data})
        return InboundEvent(str(timestamp), delivery.chat, delivery.id)

    async def _arrive(self, person: Person, timestamp: int, content: dict[str, Any]) -> None:
        envelope = {
            "source": person.id,
            "sourceNumber": person.id,
            "sourceUuid": f"00000000-0000-4000-8000-{int(person.id.lstrip('+')):012d}",
            "sourceName": person.name,
            "sourceDevice": 1,
            "timestamp": timestamp,
            "serverReceivedTimestamp": timestamp,
            "serverDeliveredTimestamp": timestamp,
            **content,
        }
        self._waiting.append({"envelope": envelope, "account": ACCOUNT})
        self._arrived.set()
        self._arrived = asyncio.Event()
        await self._hand_out()

    async def _hand_out(self) -> None:
        while self._waiting and self._subscribers:
            client = self._subscribers[-1]
            drop = self.faults.take("receive", ConnectionDropped)
            if drop == ConnectionDropped("before"):
                client.abort()
                return
            message = self._waiting.pop(0)
            if drop is not None:
                # The daemon has acknowledged it to Signal, and the client never saw it.
                self.lost.append(message)
                client.abort()
                return
            await client.notify(message)
        if self.receive_mode == "on-start" and not self._subscribers:
            self.lost += self._waiting
            self._waiting.clear()

    # What the daemon answers

    async def _welcome(self, client: LineClient) -> None:
        if self.receive_mode == "on-start":
            await self._subscribe(client)

    async def _dismiss(self, client: LineClient) -> None:
        self._unsubscribe(client)

    async def _follow_up(self, client: LineClient, method: str) -> None:
        if method == "subscribeReceive":
            await self._subscribe(client)

    async def _subscribe(self, client: LineClient) -> None:
        self._subscribers.append(client)
        await self._hand_out()

    def _unsubscribe(self, client: LineClient) -> None:
        if client in self._subscribers:
            self._subscribers.remove(client)

    async def _execute(self, client: LineClient, method: str, parameters: CallParameters) -> Any:
        parameters.ignore("account")
        match method:
            case "subscribeReceive":
                return 0
            case "unsubscribeReceive":
                parameters.ignore("subscription")
                self._unsubscribe(client)
                return {}
            case "receive":
                return await self._receive(parameters)
        call = self._calls.get(method)
        if call is None:
            raise NotImplementedByFake(method)
        result = call(parameters)
        parameters.check_read(method)
        return result

    async def _receive(self, parameters: CallParameters) -> list[dict[str, Any]]:
        """Messages now, or as soon as some come; they are acknowledged to Signal when this answers."""
        timeout, most = float(parameters.get("timeout", 3)), parameters.number("maxMessages", 100)
        parameters.check_read("receive")
        if self._subscribers:
            raise Refusal(
                USER_ERROR, "Receive command cannot be used if messages are already being received."
            )
        deadline = asyncio.create_task(self.clock.sleep(timeout))
        try:
            while not self._waiting and not deadline.done():
                arrived = asyncio.create_task(self._arrived.wait())
                await asyncio.wait({deadline, arrived}, return_when=asyncio.FIRST_COMPLETED)
                arrived.cancel()
        finally:
            deadline.cancel()
        handed, self._waiting = self._waiting[:most], self._waiting[most:]
        return handed

    def _send(self, parameters: CallParameters) -> dict[str, Any]:
        chats = self._read_targets(parameters)
        text = parameters.text("message")
        given = _as_list(parameters.get("attachments")) + _as_list(parameters.get("attachment"))
        attachments = tuple(_read_attachment(value) for value in given)
        styles = _as_list(parameters.get("textStyles")) + _as_list(parameters.get("textStyle"))
        quoted = parameters.get("quoteTimestamp")
        parameters.ignore("quoteAuthor", "quoteMessage")
        edited = parameters.get("editTimestamp")
        parameters.check_read("send")
        if not text and not attachments:
            raise Refusal(USER_ERROR, "No message and no attachments given")
        timestamp = self._mint()
        results = [self._describe_result(chat) for chat in chats]
        answer = {"timestamp": timestamp, "results": results}
        if all(result["type"] != "SUCCESS" for result in results):
            raise Refusal(USER_ERROR, "Failed to send message", data={"response": answer})
        for chat in chats:
            if chat in self.unregistered:
                continue
            if edited is not None:
                self._edit_delivery(chat, str(edited), text)
                continue
            self.transcript.add(
                Delivery(
                    id=str(timestamp),
                    chat=chat,
                    text=text,
                    at=self.clock.now(),
                    reply_to=None if quoted is None else str(quoted),
                    markup=styles or None,
                    attachments=attachments,
                )
            )
        return answer

    def _edit_delivery(self, chat: str, timestamp: str, text: str) -> None:
        delivery = self.transcript.find(chat, timestamp)
        if delivery is None:
            raise Refusal(USER_ERROR, "There is no message with this timestamp")
        delivery.edits.append(delivery.text)
        delivery.text = text
        self.transcript.note_change()

    def _read_targets(self, parameters: CallParameters) -> list[str]:
        chats = _as_list(parameters.get("recipient")) + _as_list(parameters.get("groupId"))
        if not chats:
            raise Refusal(USER_ERROR, "No recipients given")
        return chats

    def _describe_result(self, chat: str) -> dict[str, Any]:
        kind = "UNREGISTERED_FAILURE" if chat in self.unregistered else "SUCCESS"
        return {"recipientAddress": {"uuid": None, "number": chat, "username": None}, "type": kind}

    def _describe_failure(self) -> RpcError:
        return IO_ERROR, "Failed to send message: no connection", None

    def _describe_rate_limit(self, fault: RateLimited) -> RpcError:
        result = {"type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": round(fault.retry_after)}
        response = {"timestamp": self._mint(), "results": [result]}
        return RATE_LIMIT_ERROR, "Failed to send message due to rate limiting", {"response": response}

    def _send_typing(self, parameters: CallParameters) -> dict[str, Any]:
        chats = self._read_targets(parameters)
        if not parameters.flag("stop"):
            for chat in chats:
                self.transcript.add_act(Act("typing", chat, self.clock.now()))
        return {}

    def _send_reaction(self, parameters: CallParameters) -> dict[str, Any]:
        parameters.ignore("targetAuthor")
        data = {"message_id": parameters.text("targetTimestamp"), "emoji": [parameters.text("emoji")]}
        for chat in self._read_targets(parameters):
            self.transcript.add_act(Act("reaction", chat, self.clock.now(), data))
        return {"timestamp": self._mint()}

    def _send_receipt(self, parameters: CallParameters) -> dict[str, Any]:
        data = {"message_id": parameters.text("targetTimestamp"), "type": parameters.text("type", "read")}
        for chat in self._read_targets(parameters):
            self.transcript.add_act(Act("read", chat, self.clock.now(), data))
        return {"timestamp": self._mint()}

    def _delete(self, parameters: CallParameters) -> dict[str, Any]:
        timestamp = parameters.text("targetTimestamp")
        for chat in self._read_targets(parameters):
            if delivery := self.transcript.find(chat, timestamp):
                delivery.deleted = True
        self.transcript.note_change()
        return {"timestamp": self._mint()}

    def _get_attachment(self, parameters: CallParameters) -> dict[str, Any]:
        parameters.ignore("recipient", "groupId")
        file = self._attachments.get(parameters.text("id"))
        if file is None:
            raise Refusal(USER_ERROR, "Could not find attachment with ID")
        self.transcript.add_act(Act("download", "", self.clock.now(), {"name": file.name}))
        return {"data": base64.b64encode(file.content).decode()}

    def _describe(self, file: Attachment) -> dict[str, Any]:
        attachment_id = f"attachment{len(self._attachments) + 1}"
        self._attachments[attachment_id] = file
        described = {"contentType": file.media_type, "filename": file.name, "id": attachment_id}
        return {**described, "size": len(file.content)}

    def _mint(self) -> int:
        """A timestamp in milliseconds, which is a message's id: never the same twice."""
        self._last_timestamp = max(self._last_timestamp + 1, self.clock.now() // 1000)
        return self._last_timestamp


def _as_list(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(entry) for entry in value] if isinstance(value, list) else [str(value)]


def _read_attachment(given: str) -> Attachment:
    """A path on the daemon's machine, or a data URI."""
    if match := _DATA_URI.fullmatch(given):
        content = base64.b64decode(match["data"])
        return Attachment(match["name"] or "attachment", content, match["type"])
    path = Path(given)
    if not path.is_file():
        raise Refusal(USER_ERROR, f"Failed to add attachment: {given} does not exist")
    return Attachment(path.name, path.read_bytes())
