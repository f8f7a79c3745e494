"""Telegram's queue of updates: each stays until a poller asks beyond it or the webhook accepts it."""

import asyncio
import json
from typing import Any

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.faults import FaultPlan
from postroom.testing.platforms.http import CallParameters, Refusal
from postroom.testing.platforms.webhook_sender import PushedEvent, WebhookAttempt, WebhookSender

KEPT = 24 * 3600 * SECOND
# Kinds that a bot gets only when it names them.
ONLY_WHEN_NAMED = {"chat_member", "message_reaction", "message_reaction_count"}
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)
OTHER_POLLER = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"


class PendingUpdates:
    def __init__(self, clock: HeldClock, faults: FaultPlan, inspect: Any) -> None:
        self._clock = clock
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._next_id = 700_000_001
        self._poller: asyncio.Future[None] | None = None
        self._allowed: set[str] | None = None
        self._secret = ""
        # The real pause grows with the failures; a minute of the held clock stands for all of it.
        self.webhook = WebhookSender(
            clock, faults, self._sign, delays=[60], endless=True, lifetime=24 * 3600, answer_within=60,
            in_order=True, inspect=self._confirm_by_webhook,
        )  # fmt: skip
        self._inspect = inspect

    @property
    def unconfirmed(self) -> list[int]:
        """The ids of updates that Telegram would send again."""
        self._forget_old()
        return [update["update_id"] for _, update in self._waiting]

    def add(self, kind: str, content: dict[str, Any]) -> int:
        update_id = self._next_id
        self._next_id += 1
        if (self._allowed and kind not in self._allowed) or (not self._allowed and kind in ONLY_WHEN_NAMED):
            return update_id
        self.put({"update_id": update_id, kind: content})
        return update_id

    def put(self, update: dict[str, Any]) -> None:
        """Also an update that was confirmed before."""
        self._waiting.append((self._clock.now(), update))
        self._waiting.sort(key=lambda entry: entry[1]["update_id"])
        if self.webhook.url is not None:
            self.webhook.push(PushedEvent(str(update["update_id"]), json.dumps(update).encode()))
        self._wake()

    async def get_updates(self, parameters: CallParameters) -> list[dict[str, Any]]:
        offset = parameters.number("offset")
        limit = parameters.number("limit", 100)
        timeout = parameters.number("timeout")
        if "allowed_updates" in parameters:
            self._allowed = set(parameters.structure("allowed_updates"))
        if self.webhook.url is not None:
            raise Refusal(409, WEBHOOK_ACTIVE)
        if not 1 <= limit <= 100:
            limit = 100
        self._end_other_poller()
        self._confirm(offset)
        deadline = self._clock.now() + timeout * SECOND
        while not (found := self._pending(limit)) and self._clock.now() < deadline:
            await self._wait(deadline)
        return found

    def set_webhook(self, parameters: CallParameters) -> bool:
        url = parameters.text("url")
        self._secret = parameters.text("secret_token")
        parameters.ignore("max_connections")
        if "allowed_updates" in parameters:
            self._allowed = set(parameters.structure("allowed_updates"))
        if parameters.flag("drop_pending_updates"):
            self._waiting.clear()
        self.webhook.url = url or None
        self._end_other_poller()
        if url:
            for _, update in self._waiting:
                self.webhook.push(PushedEvent(str(update["update_id"]), json.dumps(update).encode()))
        return True

    def describe_webhook(self) -> dict[str, Any]:
        failed = [attempt for attempt in self.webhook.attempts if not attempt.accepted]
        info: dict[str, Any] = {
            "url": self.webhook.url or "",
            "has_custom_certificate": False,
            "pending_update_count": len(self.unconfirmed),
        }
        if failed:
            info["last_error_date"] = failed[-1].at // SECOND
            info["last_error_message"] = f"Wrong response from the webhook: {failed[-1].status}"
        return info

    def _sign(self, body: bytes, number: int, wrong: bool) -> dict[str, str]:
        return {SECRET_HEADER: "wrong" if wrong else self._secret} if self._secret else {}

    def _confirm_by_webhook(self, attempt: WebhookAttempt) -> None:
        self._inspect(attempt)
        if attempt.accepted:
            self._waiting = [w for w in self._waiting if str(w[1]["update_id"]) != attempt.event_id]

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            self._waiting = self._waiting[offset:]
        elif offset:
            self._waiting = [entry for entry in self._waiting if entry[1]["update_id"] >= offset]

    def _forget_old(self) -> None:
        self._waiting = [entry for entry in self._waiting if self._clock.now() - entry[0] < KEPT]

    def _pending(self, limit: int) -> list[dict[str, Any]]:
        self._forget_old()
        return [update for _, update in self._waiting[:limit]]

    async def _wait(self, deadline: int) -> None:
        """Until something came, the time is over, or another poller takes this one's place."""
        poller = self._poller = asyncio.get_running_loop().create_future()
        timer = asyncio.create_task(self._clock.wait_until(deadline))
        try:
            await asyncio.wait({poller, timer}, return_when=asyncio.FIRST_COMPLETED)
            if poller.done():
                poller.result()
        finally:
            timer.cancel()
            if self._poller is poller:
                self._poller = None

    def _wake(self) -> None:
        if self._poller is not None and not self._poller.done():
            self._poller.set_result(None)

    def _end_other_poller(self) -> None:
        if self._poller is not None and not self._poller.done():
            self._poller.set_exception(Refusal(409, OTHER_POLLER))
