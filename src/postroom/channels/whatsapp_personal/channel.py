"""A personal account on WhatsApp, through the bridge that is linked with its phone.

WhatsApp does not repeat what a linked device was told: so the bridge hands out one message at a time, and
waits with the next until this one is stored.
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
    ChannelUnlinked,
    FileUnavailable,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.line_rpc import LineRpc, RpcLost, RpcRefusal, RpcUnreachable, connect_to
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.channels.whatsapp.markup import render
from postroom.channels.whatsapp_personal.bridge_process import BridgeProcess
from postroom.channels.whatsapp_personal.events import Account, read_message
from postroom.channels.whatsapp_personal.markup import CAPABILITIES
from postroom.channels.whatsapp_personal.problems import BridgeProblem
from postroom.settings.paths import home_folder

RECEIVE_S = 30
LINK_S = 30.0
LOOK_S = 0.5
PAUSE_S = 60.0


class PersonalWhatsAppChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        self._account = Account()
        self._bridge: BridgeProcess | None = None
        if address := options.get("bridge"):
            host, _, port = str(address).rpartition(":")
            if not host or not port.isdigit():
                raise ChannelMisconfigured(channel=name, reason="bridge must be HOST:PORT.")
            self._rpc = LineRpc(connect_to(host, int(port)))
        else:
            session = options.get("session")
            file = Path(str(session)) if session else home_folder() / "channels" / f"{name}.db"
            self._bridge = BridgeProcess(file)
            self._rpc = LineRpc(self._bridge.start)

    async def open(self) -> None:
        """Until the phone has linked this device there is nothing to receive: `pairing` is what it scans."""
        status = await self._wait_for_status()
        self.pairing = status.get("qr")
        if status.get("problem"):
            raise ChannelMisconfigured(channel=self._name, reason=f"{status['problem']}.")
        if self.pairing is not None:
            raise ChannelUnlinked(channel=self._name)
        if not status["connected"]:
            raise ConnectionError("WhatsApp does not answer")
        self._account = Account(status["account"], status.get("hidden_account") or "")

    async def _wait_for_status(self) -> dict[str, Any]:
        deadline = asyncio.get_running_loop().time() + LINK_S
        while True:
            status = await self._rpc.call("status")
            told = status["connected"] or status.get("qr") or status.get("problem")
            if told or asyncio.get_running_loop().time() > deadline:
                return status
            await asyncio.sleep(LOOK_S)

    async def close(self) -> None:
        await self._rpc.close()
        if self._bridge is not None:
            await self._bridge.stop()

    async def receive(self, store: EnvelopeStore) -> None:
        # After a failure there may be another bridge, and another state of the account.
        await self.open()
        while True:
            try:
                told = await self._rpc.call("receive", timeout=RECEIVE_S)
            except RpcRefusal as refusal:
                raise ChannelMisconfigured(channel=self._name, reason=f"{refusal}.") from None
            for message in told:
                await store([Envelope(f"{message['chat']}:{message['id']}", message)])

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_message(envelope.raw, self._account)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        if file is not None:
            content = await asyncio.to_thread(file.read)
            name = Path(piece.path or "file").name
            sent = await self._ask(
                "send_file",
                chat=address.chat,
                name=name,
                media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
                data=base64.b64encode(content).decode(),
            )
        else:
            text = render(piece.text)
            sent = await self._ask("send", chat=address.chat, text=text, quotes=address.reply_to)
        return str(sent["id"])

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        try:
            found = await self._ask("fetch", file=file.handle)
        except SendProblem as problem:
            raise FileUnavailable(name=file.name, reason=problem.reason) from None
        target.write(base64.b64decode(found["data"]))

    async def show_typing(self, address: Address) -> None:
        await self._ask("show_typing", chat=address.chat)

    async def _ask(self, method: str, **request: Any) -> Any:
        try:
            return await self._rpc.call(method, **request)
        except RpcUnreachable as error:
            raise NotSent(f"The bridge to WhatsApp does not run ({error}).") from error
        except RpcLost as error:
            raise MaybeSent("The bridge to WhatsApp ended before it answered.") from error
        except RpcRefusal as refusal:
            raise _explain(refusal) from refusal


def _explain(refusal: RpcRefusal) -> SendProblem:
    match refusal.code:
        case BridgeProblem.NOT_CONNECTED:
            return NotSent(f"WhatsApp could not be reached ({refusal}).")
        case BridgeProblem.RATE_LIMITED:
            return RetryAfter("WhatsApp asks to wait.", PAUSE_S, whole_channel=True)
        case BridgeProblem.REFUSED:
            return Undeliverable(f"WhatsApp refused it: {refusal}.")
    return MaybeSent(f"WhatsApp did not say whether it has it ({refusal}).")
