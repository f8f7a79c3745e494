"""What the bridge to a personal account answers, line by line, and what people do on WhatsApp.

WhatsApp itself is out of reach: it speaks an encrypted protocol of its own to its own servers. So this fake
stands where the bridge stands, and the bridge has tests of its own.
"""

import asyncio
import base64
from collections.abc import Callable, Sequence
from typing import Any

from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import InboundEvent, Person
from postroom.testing.platforms.faults import RateLimited
from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.line_rpc import LineClient, LineRpcPlatform, RpcError
from postroom.testing.platforms.transcript import Act, Attachment, Delivery

ACCOUNT, HIDDEN_ACCOUNT = "15550100", "99000111"
REFUSED, NOT_CONNECTED, LOGGED_OUT, RATE_LIMITED = -1, -3, -4, -5


class FakePersonalWhatsApp(LineRpcPlatform):
    """Connect to `fake.port`. A message that was handed out is forgotten, also if nobody has stored it; with
    `linked=False` there is a code to scan first, and `scan` scans it."""

    name = "personal WhatsApp"
    side_by_side = True

    def __init__(self, *, linked: bool = True, clock: HeldClock | None = None) -> None:
        super().__init__(clock=clock)
        self.linked = linked
        self.problem: str | None = None
        self.unknown: set[str] = set()
        self._waiting: list[dict[str, Any]] = []
        self._told: dict[str, dict[str, Any]] = {}
        self._files: dict[str, Attachment] = {}
        self._arrived = asyncio.Event()
        self._numbers = 0
        self._calls: dict[str, Callable[[CallParameters], Any]] = {
            "status": self._status,
            "send": self._send,
            "send_file": self._send_file,
            "fetch": self._fetch,
            "show_typing": self._show_typing,
        }

    # What people do

    def scan(self) -> None:
        self.linked = True

    def unlink(self, problem: str = "the phone has unlinked this device") -> None:
        self.problem = problem
        self._wake()

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        group: str | None = None,
        mentions: Sequence[str] = (),
        quotes: str | None = None,
        files: Sequence[Attachment] = (),
    ) -> InboundEvent:
        """A person writes to the account, or into a group; a file is a message of its own. `quotes` is a
        message of the account that they answer."""
        for file in files:
            await self._arrive(person, "", group, mentions, quotes, file)
        return await self._arrive(person, text, group, mentions, quotes, None)

    async def write_from_phone(self, text: str, to: str = ACCOUNT) -> InboundEvent:
        """The owner writes from the phone of the account itself."""
        owner = Person(ACCOUNT, "The owner")
        return await self._arrive(owner, text, None, (), None, None, chat=f"{to}@s.whatsapp.net")

    def redeliver(self, event: InboundEvent) -> None:
        self._waiting.append(self._told[event.id])
        self._wake()

    async def _arrive(
        self,
        person: Person,
        text: str,
        group: str | None,
        mentions: Sequence[str],
        quotes: str | None,
        file: Attachment | None,
        chat: str | None = None,
    ) -> InboundEvent:
        number = self._mint()
        message: dict[str, Any] = {
            "id": number,
            "chat": chat or (f"{group}@g.us" if group else f"{person.id}@s.whatsapp.net"),
            "group": group is not None,
            "from_me": person.id == ACCOUNT,
            "sender": person.id,
            "sender_jid": f"{person.id}@s.whatsapp.net",
            "name": person.name,
            "sent_at": self.clock.now() // 1_000_000,
            "text": text,
            "mentions": list(mentions),
        }
        if quotes is not None:
            message["quoted"] = {"id": quotes, "sender": ACCOUNT}
        if file is not None:
            self._files[number] = file
            message["file"] = {"name": file.name, "size": len(file.content), "handle": number}
        self._told[number] = message
        self._waiting.append(message)
        self._wake()
        return InboundEvent(number, message["chat"], number)

    # What the bridge answers

    async def _execute(self, client: LineClient, method: str, parameters: CallParameters) -> Any:
        if method == "receive":
            return await self._receive(parameters)
        call = self._calls.get(method)
        if call is None:
            raise NotImplementedByFake(method)
        result = call(parameters)
        parameters.check_read(method)
        return result

    async def _receive(self, parameters: CallParameters) -> list[dict[str, Any]]:
        timeout = float(parameters.get("timeout"))
        parameters.check_read("receive")
        deadline = asyncio.create_task(self.clock.sleep(timeout))
        try:
            while not self._waiting and self.problem is None and not deadline.done():
                arrived = asyncio.create_task(self._arrived.wait())
                await asyncio.wait({deadline, arrived}, return_when=asyncio.FIRST_COMPLETED)
                arrived.cancel()
        finally:
            deadline.cancel()
        if self.problem is not None:
            raise Refusal(LOGGED_OUT, self.problem)
        return [self._waiting.pop(0)] if self._waiting else []

    def _status(self, parameters: CallParameters) -> dict[str, Any]:
        connected = self.linked and self.problem is None
        return {
            "connected": connected,
            "qr": None if self.linked else "2@the-code-that-a-phone-scans,key,identity",
            "problem": self.problem,
            "account": ACCOUNT if connected else "",
            "hidden_account": HIDDEN_ACCOUNT if connected else "",
        }

    def _send(self, parameters: CallParameters) -> dict[str, Any]:
        quotes = parameters.get("quotes")
        return self._deliver(parameters.text("chat"), parameters.text("text"), quotes, ())

    def _send_file(self, parameters: CallParameters) -> dict[str, Any]:
        content = base64.b64decode(parameters.text("data"))
        file = Attachment(parameters.text("name"), content, parameters.text("media_type"))
        return self._deliver(parameters.text("chat"), "", None, (file,))

    def _deliver(
        self, chat: str, text: str, quotes: str | None, attachments: tuple[Attachment, ...]
    ) -> dict[str, Any]:
        if chat in self.unknown:
            raise Refusal(REFUSED, "server returned error 463")
        delivery = Delivery(
            id=self._mint(),
            chat=chat,
            text=text,
            at=self.clock.now(),
            reply_to=None if quotes is None else quotes.partition("/")[0],
            attachments=attachments,
        )
        self.transcript.add(delivery)
        return {"id": delivery.id}

    def _fetch(self, parameters: CallParameters) -> dict[str, Any]:
        file = self._files.get(parameters.text("file"))
        if file is None:
            raise Refusal(REFUSED, "the file is not there any more")
        self.transcript.add_act(Act("download", "", self.clock.now(), {"name": file.name}))
        return {"data": base64.b64encode(file.content).decode()}

    def _show_typing(self, parameters: CallParameters) -> dict[str, Any]:
        self.transcript.add_act(Act("typing", parameters.text("chat"), self.clock.now()))
        return {}

    def _describe_rate_limit(self, fault: RateLimited) -> RpcError:
        return RATE_LIMITED, "server returned error 429", None

    def _describe_failure(self) -> RpcError:
        return NOT_CONNECTED, "websocket not connected", None

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()

    def _mint(self) -> str:
        self._numbers += 1
        return f"3EB0{self._numbers:016X}"
