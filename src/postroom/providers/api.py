"""What the HTTP providers have in common: the limits of a turn over a stream, and failures from SDK errors.

Retries are off in the SDKs: the queue decides when to try again.
"""

import asyncio
import importlib
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from types import ModuleType
from typing import Any, TypeVar

from postroom.clock import Clock
from postroom.providers.classify import classify
from postroom.providers.failures import Hints, Product, failure
from postroom.providers.protocol import Cause, ErrorKind, Failed, TurnLimits, TurnRequest, Utterance
from postroom.providers.reset_times import from_headers, from_text

T = TypeVar("T")


class OverLimit(Exception):
    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


class TurnTimer:
    """Both time limits of a turn. Each wait is timed by itself: between them the caller uses the events."""

    def __init__(self, limits: TurnLimits) -> None:
        self._limits = limits
        self._ends = time.monotonic() + limits.wall_clock

    async def wait(self, coming: Any) -> Any:
        left = self._ends - time.monotonic()
        try:
            async with asyncio.timeout(max(min(left, self._limits.idle), 0)):
                return await coming
        except TimeoutError:
            cause = Cause.WALL_CLOCK if left <= self._limits.idle else Cause.IDLE
            raise OverLimit(cause) from None

    async def over(self, stream: AsyncIterator[T]) -> AsyncIterator[T]:
        while True:
            try:
                item: T = await self.wait(anext(stream))
            except StopAsyncIteration:
                return
            yield item


class ApiAnswer:
    """The text so far, up to the limit of a turn."""

    def __init__(self, limits: TurnLimits) -> None:
        self._left = limits.output_bytes
        self._parts: list[str] = []

    def add(self, text: str) -> None:
        self._left -= len(text.encode(errors="replace"))
        if self._left < 0:
            raise OverLimit(Cause.OUTPUT_LIMIT)
        self._parts.append(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)


class Faults:
    """Failures of one turn of one product, with the key kept out of them."""

    def __init__(self, product: Product, request: TurnRequest, clock: Clock, secret: str) -> None:
        self._product = product
        self._request = request
        self._clock = clock
        self._secret = secret
        self._answering = False

    def answer_began(self) -> None:
        """From here on a lost connection has cut an answer: the server can be reached."""
        self._answering = True

    def of(
        self, kind: ErrorKind, cause: Cause = Cause.UNKNOWN, detail: str = "", retry_at: int | None = None
    ) -> Failed:
        hints = Hints(model=self._request.model)
        return failure(
            self._product,
            kind,
            cause=cause,
            detail=detail,
            retry_at=retry_at,
            hints=hints,
            secrets=[self._secret],
        )

    def limit(self, cause: Cause) -> Failed:
        limits = self._request.limits
        kind = ErrorKind.INVALID if cause is Cause.OUTPUT_LIMIT else ErrorKind.TIMED_OUT
        seconds = limits.wall_clock if cause is Cause.WALL_CLOCK else limits.idle
        return failure(self._product, kind, cause=cause, hints=Hints(seconds=seconds))

    def sdk(self, error: Exception) -> Failed:
        """Both SDKs give their errors the same attributes, but none of them to every error."""
        status = getattr(error, "status_code", None)
        said, code = _body(getattr(error, "body", None))
        detail = said or str(error)
        found = classify(detail, status, code)
        if found is None and _is_connection(error):
            found = (ErrorKind.OVERLOADED, Cause.NETWORK)
        if self._answering and found == (ErrorKind.OVERLOADED, Cause.NETWORK):
            found = (ErrorKind.OVERLOADED, Cause.STREAM_CUT)
        kind, cause = found or (ErrorKind.CRASHED, Cause.UNKNOWN)
        retry_at = None
        if kind.may_pass:
            headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
            now = self._clock.now()
            retry_at = from_headers(headers, now) or from_text(detail, now)
        return self.of(kind, cause, detail, retry_at)


def refusal_to_call(request: TurnRequest, faults: Faults, api_key: str) -> Failed | None:
    if not request.prompt.strip():
        return faults.of(ErrorKind.INVALID, detail="The message is empty.")
    if not request.model:
        return faults.of(ErrorKind.INVALID, detail="No model is set for this agent.")
    if not api_key:
        return faults.of(ErrorKind.AUTH, detail="no API key is set")
    return None


async def load_sdk(name: str) -> ModuleType | None:
    """Imported when first needed and beside the event loop: these packages take up to two seconds."""
    try:
        return await asyncio.to_thread(importlib.import_module, name)
    except ModuleNotFoundError:
        return None


def messages_of(request: TurnRequest) -> list[dict[str, str]]:
    """The conversation, the new message last. Servers want the user to begin it, and no empty texts."""
    said = [entry for entry in request.history if entry.text.strip()]
    while said and said[0].role != "user":
        said.pop(0)
    said.append(Utterance("user", request.prompt))
    return [{"role": entry.role, "content": entry.text} for entry in said]


def session_of(request: TurnRequest) -> str:
    """The server keeps nothing: the id only names the history the caller keeps."""
    return request.session_id or str(uuid.uuid4())


def _is_connection(error: Exception) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"APIConnectionError", "TransportError", "RemoteProtocolError"})


def _body(body: object) -> tuple[str, str]:
    """Message and code from the two shapes of error bodies: with and without the outer `error`."""
    if not isinstance(body, dict):
        return (body if isinstance(body, str) else "", "")
    inner = body.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else body
    return str(error.get("message") or ""), str(error.get("code") or error.get("type") or "")
