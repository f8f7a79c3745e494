"""The events of `opencode run --format json`. None of them closes a turn: the end is the program's exit."""

from collections.abc import Iterator
from typing import Any

from postroom.clock import Clock
from postroom.providers.classify import classify
from postroom.providers.cli import EventReader, count_of, summary_of
from postroom.providers.failures import Product
from postroom.providers.process import Exit
from postroom.providers.protocol import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    TextChunk,
    ToolDenied,
    ToolUse,
    TurnEvent,
    TurnRequest,
    Usage,
    Verdict,
)
from postroom.providers.reset_times import from_headers

INVALID = "invalid"
UNAVAILABLE = "unavailable tool"
_ENDS = ("stop", "length", "content-filter")


class OpenCodeReader(EventReader):
    def __init__(self, name: str, product: Product, request: TurnRequest, clock: Clock) -> None:
        super().__init__(name, product, request, clock)
        self._part = -1
        self._step: list[str] = []
        self._last_text = ""
        self._rejected = ""
        self._failed: Failed | None = None

    def read_event(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        yield from self.session(event.get("sessionID"))
        if self.urgent:
            return
        part = event.get("part")
        part = part if isinstance(part, dict) else {}
        match event.get("type"):
            case "step_start":
                # One more step: a retry, or it was not the end after all.
                self._step = []
                self.verdict = None
            case "text":
                self._last_text = str(part.get("text") or "")
                self._step.append(self._last_text)
                self._part += 1
                yield TextChunk(text=self._last_text, part=self._part)
            case "tool_use":
                yield from self._tool(part)
            case "step_finish":
                yield from self._usage(part)
                self._finish(str(part.get("reason") or ""))
            case "error":
                error = event.get("error")
                self._failed = self._error(error if isinstance(error, dict) else {})
                self.verdict = self._failed

    def at_exit(self, ended: Exit, stderr: str) -> Verdict:
        if self._failed:
            return self._failed
        if self._rejected:
            return self.failed(ErrorKind.INVALID, Cause.PERMISSION, self._rejected)
        return self.ended_badly(ended, stderr)

    def _finish(self, reason: str) -> None:
        if reason == "content-filter":
            self.verdict = self.failed(ErrorKind.REFUSED)
        elif reason in _ENDS:
            answer = "\n\n".join(self._step) if self._step else self._last_text
            self.verdict = Finished(text=answer, stop_reason="" if reason == "stop" else reason)

    def _tool(self, part: dict[str, Any]) -> Iterator[TurnEvent]:
        state = part.get("state")
        state = state if isinstance(state, dict) else {}
        name, given = str(part.get("tool") or "tool"), state.get("input")
        broken = state.get("status") == "error"
        error = str(state.get("error") or "")
        summary = summary_of(state.get("title") or given)
        yield ToolUse(
            name=name,
            state="failed" if broken else "finished",
            call_id=str(part.get("callID") or ""),
            summary=summary,
        )
        if broken and "permission" in error.lower():
            self._rejected = f"{name}: {error}"
            yield ToolDenied(name=name, summary=summary_of(given))
        elif name == INVALID and isinstance(given, dict) and UNAVAILABLE in str(given.get("error")):
            # A tool that is denied altogether is not offered to the model, which may ask for it all the same.
            yield ToolDenied(name=str(given.get("tool") or "tool"))

    def _usage(self, part: dict[str, Any]) -> Iterator[TurnEvent]:
        tokens = part.get("tokens")
        if not isinstance(tokens, dict):
            return
        cache = tokens.get("cache")
        cache = cache if isinstance(cache, dict) else {}
        cost = part.get("cost")
        vendor, _, _ = self.request.model.partition("/")
        yield Usage(
            provider=self.name,
            vendor=vendor,
            model=self.request.model,
            input_tokens=count_of(tokens.get("input")),
            cache_read_tokens=count_of(cache.get("read")),
            cache_write_tokens=count_of(cache.get("write")),
            output_tokens=count_of(tokens.get("output")) + count_of(tokens.get("reasoning")),
            # It reports 0 for a model whose price it does not know, as for a free one.
            cost_usd=float(cost) if isinstance(cost, int | float) and cost > 0 else None,
        )

    def _error(self, error: dict[str, Any]) -> Failed:
        name = str(error.get("name") or "")
        data = error.get("data")
        data = data if isinstance(data, dict) else {}
        said = str(data.get("message") or name)
        status = data.get("statusCode")
        status = status if isinstance(status, int) else None
        if name == "UnknownError" and "server error" in said:
            # What it says about a model or vendor it does not know; it never reached a server.
            return self.failed(ErrorKind.INVALID, Cause.MODEL, said)
        if name == "MessageAbortedError":
            return self.failed(ErrorKind.CRASHED, detail=said)
        everything = f"{name} {said}\n{data.get('responseBody') or ''}"
        kind, cause = classify(everything, status) or (ErrorKind.CRASHED, Cause.UNKNOWN)
        headers = data.get("responseHeaders")
        headers = {str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, dict) else {}
        retry_at = from_headers(headers, self.clock.now()) if kind.may_pass else None
        return self.failed(kind, cause, said, retry_at)
