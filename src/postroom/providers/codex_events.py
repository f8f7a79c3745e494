"""The events of `codex exec --json`."""

import re
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import msgspec

from postroom.clock import Clock
from postroom.providers.cli import EventReader, count_of, summary_of
from postroom.providers.failures import Product
from postroom.providers.process import Exit
from postroom.providers.protocol import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    Permissions,
    Progress,
    SessionTotal,
    TextChunk,
    ToolDenied,
    ToolUse,
    TurnEvent,
    TurnRequest,
    Usage,
    Verdict,
)

RECONNECTING = "Reconnecting..."
NO_NETWORK = "waiting for network"
# It says nothing of what its sandbox forbids: the command fails, with the words of the system.
FORBIDDEN = re.compile(r"read-only file system|operation not permitted|permission denied", re.I)


class Totals:
    """The last total of each thread, for callers that do not hand it back. Forgets the oldest."""

    KEPT = 1000

    def __init__(self) -> None:
        self._by_thread: OrderedDict[str, SessionTotal] = OrderedDict()

    def get(self, thread: str) -> SessionTotal | None:
        return self._by_thread.get(thread)

    def put(self, thread: str, total: SessionTotal) -> None:
        self._by_thread[thread] = total
        self._by_thread.move_to_end(thread)
        while len(self._by_thread) > self.KEPT:
            self._by_thread.popitem(last=False)


class CodexReader(EventReader):
    def __init__(
        self,
        name: str,
        product: Product,
        request: TurnRequest,
        clock: Clock,
        *,
        vendor: str,
        totals: Totals,
        network_patience: float,
    ) -> None:
        super().__init__(name, product, request, clock)
        self._vendor = vendor
        self._totals = totals
        self._network_patience = network_patience
        self._offline_since: float | None = None
        self._thread = request.session_id or ""
        self._part = -1
        self._answer = ""
        self._said: list[str] = []

    def read_event(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        kind = event.get("type")
        if kind != "error":
            self._offline_since = None
        match kind:
            case "thread.started":
                self._thread = str(event.get("thread_id") or "")
                yield from self.session(event.get("thread_id"))
            case "item.started" | "item.completed":
                item = event.get("item")
                if isinstance(item, dict):
                    yield from self._item(item, done=kind == "item.completed")
            case "error":
                yield from self._trouble(str(event.get("message") or ""))
            case "turn.completed":
                yield from self._usage(event.get("usage"))
                self.verdict = Finished(text=self._answer)
            case "turn.failed":
                error = event.get("error")
                said = str(error.get("message") or "") if isinstance(error, dict) else str(error or "")
                self.verdict = self._verdict_on(said)

    def at_exit(self, ended: Exit, stderr: str) -> Verdict:
        if self._said and ended.code:
            return self._verdict_on(self._said[-1])
        if ended.code == 2:  # the program did not understand its arguments
            return self.failed(ErrorKind.INVALID, detail=stderr)
        return self.ended_badly(ended, stderr)

    def _verdict_on(self, message: str) -> Failed:
        unpacked = _server_error(message)
        return self.failed_as(message) if unpacked is None else self.failed_as(unpacked, status=400)

    def _item(self, item: dict[str, Any], *, done: bool) -> Iterator[TurnEvent]:
        match item.get("type"):
            case "agent_message" if done:
                # A turn can hold several; the last one is the answer.
                self._answer = str(item.get("text") or "")
                self._part += 1
                yield TextChunk(text=self._answer, part=self._part)
            case "reasoning" if done:
                yield Progress(kind="thinking", text=summary_of(item.get("text")))
            case "error" if done:
                yield Progress(kind="warning", text=summary_of(item.get("message")))
            case "command_execution":
                yield self._tool("shell", item, done, summary_of(item.get("command")))
                if done and self._is_denied(item):
                    yield ToolDenied(name="shell", summary=summary_of(item.get("command")))
            case "file_change":
                changes = item.get("changes")
                changes = changes if isinstance(changes, list) else []
                paths = [str(change.get("path")) for change in changes if isinstance(change, dict)]
                yield self._tool("file_change", item, done, summary_of(", ".join(paths)))
                if done and item.get("status") == "declined":
                    yield ToolDenied(name="file_change", summary=summary_of(", ".join(paths)))
            case "mcp_tool_call":
                name = f"mcp__{item.get('server')}__{item.get('tool')}"
                yield self._tool(name, item, done, summary_of(item.get("arguments")))
            case "web_search":
                yield self._tool("web_search", item, done, summary_of(item.get("query")))

    def _tool(self, name: str, item: dict[str, Any], done: bool, summary: str) -> ToolUse:
        failed = item.get("status") in ("failed", "declined")
        state = "started" if not done else "failed" if failed else "finished"
        return ToolUse(name=name, state=state, call_id=str(item.get("id") or ""), summary=summary)

    def _is_denied(self, item: dict[str, Any]) -> bool:
        if self.request.permissions is Permissions.FULL or item.get("status") != "failed":
            return item.get("status") == "declined"
        return bool(FORBIDDEN.search(str(item.get("aggregated_output") or "")))

    def _trouble(self, message: str) -> Iterator[TurnEvent]:
        """A top-level error is not the verdict: either it is about a retry, or `turn.failed` follows."""
        self._said.append(message)
        if NO_NETWORK in message:
            # It would wait for ever, and never be silent.
            now = time.monotonic()
            self._offline_since = self._offline_since or now
            if now - self._offline_since >= self._network_patience:
                self.verdict = self.failed(ErrorKind.OVERLOADED, Cause.NETWORK, message)
                self.urgent = True
                return
        else:
            self._offline_since = None
        if message.startswith(RECONNECTING):
            yield Progress(kind="retry", text=summary_of(message))

    def _usage(self, counts: object) -> Iterator[TurnEvent]:
        """The program counts up over the whole thread; the turn is the difference to the total before it."""
        if not isinstance(counts, dict):
            return
        total = SessionTotal(
            input_tokens=count_of(counts.get("input_tokens")),
            cache_read_tokens=count_of(counts.get("cached_input_tokens")),
            cache_write_tokens=count_of(counts.get("cache_write_input_tokens")),
            output_tokens=count_of(counts.get("output_tokens")),
        )
        before = self.request.session_total or self._totals.get(self._thread)
        self._totals.put(self._thread, total)
        unknown = before is None and self.request.session_id is not None
        turn = _difference(total, before or SessionTotal())
        yield Usage(
            provider=self.name,
            vendor=self._vendor,
            model=self.request.model,
            input_tokens=max(turn.input_tokens - turn.cache_read_tokens - turn.cache_write_tokens, 0),
            cache_read_tokens=turn.cache_read_tokens,
            cache_write_tokens=turn.cache_write_tokens,
            output_tokens=turn.output_tokens,
            session_total=total,
            whole_session=unknown,
        )


def _difference(total: SessionTotal, before: SessionTotal) -> SessionTotal:
    if total.input_tokens < before.input_tokens:
        return total  # the thread was compacted or counts anew
    return SessionTotal(
        input_tokens=total.input_tokens - before.input_tokens,
        cache_read_tokens=max(total.cache_read_tokens - before.cache_read_tokens, 0),
        cache_write_tokens=max(total.cache_write_tokens - before.cache_write_tokens, 0),
        output_tokens=max(total.output_tokens - before.output_tokens, 0),
    )


def _server_error(message: str) -> str | None:
    """A bad request arrives as the server's whole JSON body inside the message."""
    try:
        body = msgspec.json.decode(message)
    except msgspec.DecodeError:
        return None
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None
    return f"{error.get('message') or 'bad request'} ({error.get('code') or error.get('type') or 'no code'})"
