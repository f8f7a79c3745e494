"""python -m postroom.channels.whatsapp_personal.bridge SESSION: neonize, asked by JSON-RPC in lines on stdin.

It keeps nothing but the session, hands out one message at a time, and ends with stdin. What is handed out is
acknowledged by asking for the next one: until then WhatsApp's thread waits.
"""

import base64
import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

from neonize.client import NewClient
from neonize.events import (
    ConnectedEv,
    DisconnectedEv,
    LoggedOutEv,
    MessageEv,
    StreamReplacedEv,
    TemporaryBanEv,
)
from neonize.exc import NeonizeError
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import (
    ContextInfo,
    ExtendedTextMessage,
    Message,
)
from neonize.utils.enum import ChatPresence, ChatPresenceMedia

from postroom.channels.whatsapp_personal.messages import describe_message, read_jid
from postroom.channels.whatsapp_personal.problems import BridgeProblem, classify_problem

AT_ONCE = 8
PAUSE_S = 5.0
METHOD_NOT_FOUND = -32601
LOGGED_OUT = "the phone has unlinked this device; link it again: postroom channel reset, then channel setup"


class BridgeRefusal(Exception):
    def __init__(self, problem: BridgeProblem, said: str) -> None:
        super().__init__(said)
        self.problem = problem


class HandedMessage:
    """A message that waits to be asked for, and then until it is stored."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.message = message
        self.stored = threading.Event()


class Bridge:
    def __init__(self, client: NewClient) -> None:
        self._client = client
        self._waiting: queue.Queue[HandedMessage] = queue.Queue()
        self._handed: HandedMessage | None = None
        self._receiving = threading.Lock()
        self._qr: str | None = None
        self._connected = False
        self._problem: str | None = None
        client.event.qr(lambda _, code: self._show(code))
        client.event(ConnectedEv)(lambda _, event: self._connect())
        client.event(DisconnectedEv)(lambda _, event: self._disconnect())
        client.event(LoggedOutEv)(lambda _, event: self._fail(LOGGED_OUT))
        client.event(StreamReplacedEv)(lambda _, event: self._fail("another program uses the same session"))
        client.event(TemporaryBanEv)(
            lambda _, event: self._fail("WhatsApp has closed the account for some time")
        )
        client.event(MessageEv)(lambda _, event: self._take(event))
        self.methods: dict[str, Callable[..., Any]] = {
            "status": self.status,
            "receive": self.receive,
            "send": self.send,
            "send_file": self.send_file,
            "fetch": self.fetch,
            "show_typing": self.show_typing,
        }

    def stay_connected(self) -> None:
        """For ever: neonize returns when it cannot connect, and when nobody has scanned the code in time."""
        while True:
            try:
                self._client.connect()
            except NeonizeError as error:
                print(f"WhatsApp cannot be reached: {error}", file=sys.stderr)
            self._connected, self._qr = False, None
            time.sleep(PAUSE_S)

    def status(self) -> dict[str, Any]:
        me = self._client.get_me() if self._connected else None
        return {
            "connected": self._connected,
            "qr": self._qr,
            "problem": self._problem,
            "account": "" if me is None else me.JID.User,
            "hidden_account": "" if me is None else me.LID.User,
        }

    def receive(self, timeout: float) -> list[dict[str, Any]]:
        with self._receiving:
            if self._problem is not None:
                raise BridgeRefusal(BridgeProblem.LOGGED_OUT, self._problem)
            if self._handed is not None:
                self._handed.stored.set()
                self._handed = None
            try:
                self._handed = self._waiting.get(timeout=timeout)
            except queue.Empty:
                return []
            return [self._handed.message]

    def send(self, chat: str, text: str, quotes: str | None = None) -> dict[str, Any]:
        message = Message(conversation=text)
        if quotes:
            quoted, _, author = quotes.partition("/")
            context = ContextInfo(stanzaID=quoted, participant=author, quotedMessage=Message(conversation=""))
            message = Message(extendedTextMessage=ExtendedTextMessage(text=text, contextInfo=context))
        return {"id": self._client.send_message(read_jid(chat), message).ID}

    def send_file(self, chat: str, name: str, media_type: str, data: str) -> dict[str, Any]:
        message = self._client.build_document_message(
            base64.b64decode(data), title=name, filename=name, mimetype=media_type
        )
        return {"id": self._client.send_message(read_jid(chat), message).ID}

    def fetch(self, file: str) -> dict[str, Any]:
        content = self._client.download_any(Message.FromString(base64.b64decode(file)))
        return {"data": base64.b64encode(content).decode()}

    def show_typing(self, chat: str) -> dict[str, Any]:
        state, media = ChatPresence.CHAT_PRESENCE_COMPOSING, ChatPresenceMedia.CHAT_PRESENCE_MEDIA_TEXT
        self._client.send_chat_presence(read_jid(chat), state, media)
        return {}

    def _show(self, code: bytes) -> None:
        self._qr = code.decode()

    def _connect(self) -> None:
        self._connected, self._qr = True, None

    def _disconnect(self) -> None:
        self._connected = False

    def _fail(self, problem: str) -> None:
        self._connected, self._problem = False, problem

    def _take(self, event: MessageEv) -> None:
        message = describe_message(event)
        if message is not None:
            told = HandedMessage(message)
            self._waiting.put(told)
            told.stored.wait()


def serve(bridge: Bridge, requests: BinaryIO, answers: BinaryIO) -> None:
    """Until there are no more requests."""
    writing = threading.Lock()

    def answer(line: bytes) -> None:
        request = json.loads(line)
        said = {"jsonrpc": "2.0", "id": request.get("id"), **_execute(bridge, request)}
        with writing:
            answers.write(json.dumps(said).encode() + b"\n")
            answers.flush()

    pool = ThreadPoolExecutor(AT_ONCE)
    for line in requests:
        pool.submit(answer, line)


def _execute(bridge: Bridge, request: dict[str, Any]) -> dict[str, Any]:
    method = bridge.methods.get(request["method"])
    if method is None:
        return {"error": {"code": METHOD_NOT_FOUND, "message": f"there is no {request['method']}"}}
    try:
        return {"result": method(**request.get("params", {}))}
    except BridgeRefusal as refusal:
        return {"error": {"code": int(refusal.problem), "message": str(refusal)}}
    except NeonizeError as error:
        return {"error": {"code": int(classify_problem(str(error))), "message": str(error)}}
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return {"error": {"code": int(BridgeProblem.UNKNOWN), "message": said}}


def main() -> None:
    # neonize writes to stdout too, and only we may answer there.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logging.getLogger().setLevel(logging.WARNING)
    bridge = Bridge(NewClient(sys.argv[1], uuid="postroom"))
    threading.Thread(target=bridge.stay_connected, daemon=True).start()
    serve(bridge, sys.stdin.buffer, answers)
    # Threads of Go go on for ever, and what waits to be handed out was not acknowledged.
    os._exit(0)


if __name__ == "__main__":
    main()
