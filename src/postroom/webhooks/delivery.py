"""Deliveries: claimed like any message, sent as signed requests, retried by the queue, given up at last."""

import asyncio
import logging
import ssl
import time
from typing import Any

import httpx2
import msgspec

from postroom.clock import SECOND, Clock
from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel import jsontext, service_commands, webhooks
from postroom.kernel.reader import Reader
from postroom.kernel.rows import Stored
from postroom.kernel.webhooks import Webhook
from postroom.runtime import Room
from postroom.webhooks import signing
from postroom.webhooks.addresses import AddressRefused, AddressUnknown, Inside, nowhere, resolve
from postroom.webhooks.concurrency import ReceiverLimits
from postroom.webhooks.entitlement import Entitlement

log = logging.getLogger("postroom.webhooks")

TIMEOUT_S = 10.0
LEASE_S = 60.0
AT_ONCE = 10
WAIT_S = 5.0
# So many given up in a row, each after all its tries, and the webhook is switched off.
MOST_GIVEN_UP = 20
# Documents that count them, so that a restart forgets none.
GIVEN_UP = "webhook_given_up"


class DeliveryWorkers:
    """`inside` tells the networks that webhooks may lead to although they are not public.

    `tls` says whom to trust, instead of the authorities everybody trusts.
    """

    def __init__(
        self, room: Room, clock: Clock, *, inside: Inside = nowhere, tls: ssl.SSLContext | None = None
    ) -> None:
        self._room = room
        self._clock = clock
        self._inside = inside
        self._tls = tls
        self._stop = asyncio.Event()
        self._busy: set[asyncio.Task[None]] = set()
        self._crowd = ReceiverLimits()
        self._entitlement = Entitlement(room)
        self._counting = asyncio.Lock()

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> None:
        # No connection is used twice: at one address may be several hosts, and each must show its own name.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx2.AsyncClient(
            verify=self._tls or True, timeout=TIMEOUT_S, limits=limits, trust_env=False
        ) as client:
            try:
                while not self._stop.is_set():
                    await self._round(client)
            finally:
                await self._finish()

    async def _finish(self) -> None:
        """Those under way have the time of one request; then nobody is left."""
        if self._busy:
            _, late = await asyncio.wait(self._busy, timeout=TIMEOUT_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _round(self, client: httpx2.AsyncClient) -> None:
        free = AT_ONCE - len(self._busy)
        if free <= 0:
            await asyncio.wait(self._busy, return_when=asyncio.FIRST_COMPLETED)
            return
        claim = c.Claim(
            queues=(webhooks.QUEUE,),
            limit=free,
            lease_s=LEASE_S,
            worker="couriers",
            actor="webhooks",
            tenant=webhooks.TENANT,
        )
        taking = asyncio.ensure_future(self._room.take(claim, WAIT_S))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((taking, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            taking.cancel()
            [taken] = await asyncio.gather(taking, return_exceptions=True)
            # Also what was taken in the moment of a cancellation: nobody else has it before its lease ends.
            if isinstance(taken, list):
                self._send_out(client, taken)
        if isinstance(taken, Exception):
            raise taken

    def _send_out(self, client: httpx2.AsyncClient, taken: list[Stored]) -> None:
        for stored in taken:
            task = asyncio.create_task(self._carry(client, stored))
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)

    async def _carry(self, client: httpx2.AsyncClient, stored: Stored) -> None:
        row = stored.row
        held: dict[str, Any] = {
            "message_id": row.id,
            "token": row.token,
            "actor": "webhooks",
            "tenant": webhooks.TENANT,
        }
        labels: dict[str, Any] = jsontext.decode_any(stored.content.labels, {})
        try:
            told = stored.content.body or b""
            hook, given_up = await self._room.look(lambda reader: self._find_hook(reader, labels, told))
            if hook is None:
                reason = "the webhook is gone, inactive, or may not be told of this any more"
                await self._room.run(c.Cancel(message_id=row.id, reason=reason, **_who()))
                return
            put_off_s = self._crowd.enter(hook.id)
            if put_off_s is not None:
                await self._room.run(c.Snooze(seconds=put_off_s, reason="its receiver is slow", **held))
                return
            outcome = await self._tried(client, hook, told)
            self._crowd.leave(hook.id, answered="status_code" in outcome)
            if outcome.pop("delivered"):
                await self._room.run(c.Complete(result=outcome, **held))
                if given_up:
                    await self._room.run(_count(hook, 0))
                return
            problem = outcome["problem"]
            if row.attempts < hook.max_retries and not outcome.get("final"):
                await self._room.run(c.Fail(reason=problem, **held))
                return
            await self._give_up(hook, c.Fail(reason=problem, retry=False, **held))
        except PostroomError as error:
            log.warning("a delivery could not be settled: %s", error)

    async def _give_up(self, hook: Webhook, fail: c.Fail) -> None:
        """A webhook that nobody answers any more is switched off, or it would make dead letters for ever."""
        async with self._counting:
            count = 1 + await self._room.look(lambda reader: _given_up(reader, hook))
            await self._room.run(c.Unit(commands=(fail, _count(hook, count)), **_who()))
        if count >= MOST_GIVEN_UP:
            await self._switch_off(hook, count, fail.reason)

    async def _switch_off(self, hook: Webhook, count: int, problem: str) -> None:
        why = f"switched off: {count} deliveries in a row were given up, the last one because: {problem}"
        found = await self._room.look(lambda reader: reader.document(hook.tenant, webhooks.KIND, hook.id))
        now = webhooks.read(found.data) if found is not None and not found.gone else None
        if now is None or now.updated_at != hook.updated_at or now.status != "active":
            return  # somebody has changed it meanwhile
        off = msgspec.structs.replace(now, status="inactive", problem=why, updated_at=self._clock.now())
        command = service_commands.PutServiceDocument(
            kind=webhooks.KIND,
            key=hook.id,
            data=msgspec.to_builtins(off),
            note={"id": hook.id, "problem": why},
            actor="webhooks",
            tenant=hook.tenant,
        )
        await self._room.run(c.Unit(commands=(command, _count(hook, 0)), **_who()))
        log.error("the webhook %s is %s", hook.id, why)

    def _find_hook(self, reader: Reader, labels: dict[str, Any], told: bytes) -> tuple[Webhook | None, int]:
        """Where this may be sent now, and how many deliveries were given up there since one arrived."""
        tenant = str(labels.get("tenant"))
        found = reader.document(tenant, webhooks.KIND, str(labels.get("webhook")))
        hook = webhooks.read(found.data) if found is not None and not found.gone else None
        if hook is None or hook.status != "active":
            return None, 0
        given_up = _given_up(reader, hook)
        about = webhooks.payload_of(told)
        scope, queue = about.get("scope"), about.get("queue")
        if scope is None or queue is None:  # a test, which tells of nothing
            return hook, given_up
        return (hook if self._entitlement.covers(reader, hook, tenant, scope, queue) else None), given_up

    async def _tried(self, client: httpx2.AsyncClient, hook: Webhook, body: bytes) -> dict[str, Any]:
        """What came of one request, however it went."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status = await self._send(client, hook, body)
        except AddressRefused as error:
            return {"delivered": False, "problem": str(error), "final": True}
        except AddressUnknown as error:
            return {"delivered": False, "problem": str(error)}
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            if (distrust := _distrust(error)) is not None:
                return {"delivered": False, "problem": f"its certificate is not trusted ({distrust})"}
            return {"delivered": False, "problem": f"no answer ({type(error).__name__})"}
        except Exception as error:
            log.exception("a delivery failed in an unforeseen way")
            return {"delivered": False, "problem": f"it could not be sent ({type(error).__name__})"}
        took = round((time.monotonic() - started) * 1000, 1)
        told = {"status_code": status, "took_ms": took}
        if 200 <= status < 300:
            return {"delivered": True, **told}
        return {"delivered": False, "problem": f"answered with {status} after {took} ms", **told}

    async def _send(self, client: httpx2.AsyncClient, hook: Webhook, body: bytes) -> int:
        """The status of the answer. An address is looked up anew each time, and no more is read."""
        address = await resolve(hook.url, inside=self._inside())
        url = httpx2.URL(hook.url)
        headers = {
            "host": url.netloc.decode(),
            "content-type": "application/json",
            "user-agent": "postroom-webhooks",
            **signing.headers(hook.secret, body, self._clock.now() // SECOND),
        }
        request = client.build_request(
            "POST",
            url.copy_with(host=address.ip),
            content=body,
            headers=headers,
            extensions={"sni_hostname": address.host},
        )
        answer = await client.send(request, stream=True)
        await answer.aclose()
        return answer.status_code


def _distrust(error: BaseException | None) -> str | None:
    """What is wrong with the certificate that was shown, if that is what went wrong."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _given_up(reader: Reader, hook: Webhook) -> int:
    """How many deliveries were given up since one arrived."""
    counted = reader.document(webhooks.TENANT, GIVEN_UP, hook.id)
    return counted.data["in_a_row"] if counted is not None and not counted.gone else 0


def _count(hook: Webhook, number: int) -> c.Command:
    return c.PutDocument(kind=GIVEN_UP, key=hook.id, data={"in_a_row": number}, history=False, **_who())


def _who() -> dict[str, Any]:
    return {"actor": "webhooks", "tenant": webhooks.TENANT}
