"""One account on Signal, through signal-cli in manual receive mode.

The daemon forgets a message when it has told it: so one at a time is asked for, and stored before the next.
"""

import asyncio
import base64
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink
from postroom.channels.errors import (
    ChannelMisconfigured,
    FileUnavailable,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.line_rpc import LineRpc, RpcLost, RpcRefusal, RpcUnreachable, connect_to
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.channels.signal.markup import CAPABILITIES, render_styles

RECEIVE_S = 30
PAUSE_S = 30.0
USER_ERROR, IO_ERROR, UNTRUSTED, RATE_LIMITED = -1, -3, -4, -5
METHOD_NOT_FOUND = -32601


class SignalChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        self._account = str(options.get("account") or "")
        if not self._account.startswith("+"):
            reason = "account must be the phone number of the account, with its +."
            raise ChannelMisconfigured(channel=name, reason=reason)
        host, port = str(options.get("host") or "127.0.0.1"), int(options.get("port") or 7583)
        # Waiting for messages must not hold up what is sent.
        self._receiving = LineRpc(connect_to(host, port))
        self._sending = LineRpc(connect_to(host, port))
        self._one_at_a_time = asyncio.Lock()

    async def close(self) -> None:
        await self._receiving.close()
        await self._sending.close()

    async def receive(self, store: EnvelopeStore) -> None:
        while True:
            try:
                told = await self._receiving.call(
                    "receive", account=self._account, timeout=RECEIVE_S, maxMessages=1
                )
            except RpcRefusal as refusal:
                if refusal.code != USER_ERROR:
                    raise
                reason = f"signal-cli refuses: {refusal}. Start its daemon with --receive-mode=manual."
                raise ChannelMisconfigured(channel=self._name, reason=reason) from None
            for message in told or ():
                envelope = message.get("envelope") or {}
                sender, sent = find_sender(envelope), envelope.get("timestamp")
                if sender and sent:
                    await store([Envelope(f"{sender}:{sent}", envelope)])

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_envelope(envelope.raw, self._account)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        request: dict[str, Any] = {"account": self._account, **_target(address.chat)}
        if file is not None:
            request["attachments"] = [await asyncio.to_thread(_as_data_uri, piece, file)]
        else:
            request |= {"message": piece.text.plain() if not piece.text.spans else piece.text.text}
            if styles := render_styles(piece.text):
                request["textStyles"] = styles
        if address.reply_to:
            author, _, sent = address.reply_to.rpartition(":")
            request |= {"quoteTimestamp": int(sent), "quoteAuthor": author}
        answer = await self._ask("send", **request)
        return f"{self._account}:{answer['timestamp']}"

    async def edit(self, address: Address, platform_id: str, piece: Piece) -> None:
        sent = int(platform_id.rpartition(":")[2])
        await self._ask(
            "send",
            account=self._account,
            message=piece.text.plain(),
            editTimestamp=sent,
            **_target(address.chat),
        )

    async def _ask(self, method: str, **request: Any) -> Any:
        try:
            async with self._one_at_a_time:
                return await self._sending.call(method, **request)
        except RpcUnreachable as error:
            raise NotSent(f"signal-cli could not be reached ({error}).") from error
        except RpcLost as error:
            raise MaybeSent("The connection to signal-cli broke before it answered.") from error
        except RpcRefusal as refusal:
            raise _explain(refusal) from refusal

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        handle, _, sender = file.handle.partition("|")
        try:
            found = await self._ask("getAttachment", account=self._account, id=handle, recipient=sender)
        except SendProblem as problem:
            raise FileUnavailable(name=file.name, reason=problem.reason) from None
        target.write(base64.b64decode(found["data"]))

    async def show_typing(self, address: Address) -> None:
        await self._ask("sendTyping", account=self._account, **_target(address.chat))


def find_sender(envelope: dict[str, Any]) -> str | None:
    return envelope.get("sourceNumber") or envelope.get("sourceUuid") or envelope.get("source")


def read_envelope(envelope: dict[str, Any], account: str) -> ReceivedMessage | None:
    data, sender = envelope.get("dataMessage"), find_sender(envelope)
    if not data or not sender or data.get("reaction"):
        return None
    text, files = data.get("message") or "", data.get("attachments") or ()
    if not text and not files:
        return None
    group = (data.get("groupInfo") or {}).get("groupId")
    quoted = (data.get("quote") or {}).get("authorNumber") == account
    mentioned = any(mention.get("number") == account for mention in data.get("mentions") or ())
    return ReceivedMessage(
        message_id=f"{sender}:{data['timestamp']}",
        chat=group or sender,
        sender_id=sender,
        sender=envelope.get("sourceName") or sender,
        text=text,
        files=tuple(
            ReceivedFile(
                handle=f"{file['id']}|{sender}",
                name=file.get("filename") or f"attachment_{file['id']}",
                size=file.get("size"),
            )
            for file in files
        ),
        addressed=group is None or mentioned or quoted,
    )


def _target(chat: str) -> dict[str, Any]:
    """People have numbers or UUIDs; anything else is a group."""
    is_person = chat.startswith("+") or chat.count("-") == 4
    return {"recipient": [chat]} if is_person else {"groupId": chat}


def _as_data_uri(piece: Piece, file: BinaryIO) -> str:
    """The daemon may run elsewhere, where our paths mean nothing."""
    name = Path(piece.path or "file").name
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"data:{media_type};filename={name};base64,{base64.b64encode(file.read()).decode()}"


def _explain(refusal: RpcRefusal) -> SendProblem:
    results = ((refusal.data or {}).get("response") or {}).get("results") or [{}]
    if refusal.code == RATE_LIMITED:
        wait = max(float(result.get("retryAfterSeconds") or 0) for result in results) or PAUSE_S
        return RetryAfter("Signal asks to wait.", wait, whole_channel=True)
    if any(result.get("type") == "UNREGISTERED_FAILURE" for result in results):
        return Undeliverable("They are not on Signal any more.")
    if refusal.code == IO_ERROR:
        return NotSent(f"signal-cli has no connection: {refusal}")
    return Undeliverable(f"signal-cli refused it: {refusal}")
