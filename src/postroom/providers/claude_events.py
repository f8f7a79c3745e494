"""The events of Claude Code's `stream-json` output."""

from collections.abc import Iterator
from typing import Any

import msgspec

from postroom.clock import Clock, micros
from postroom.providers.cli import EventReader, count_of, summary_of
from postroom.providers.failures import Product
from postroom.providers.process import Exit
from postroom.providers.protocol import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    Progress,
    TextChunk,
    ToolDenied,
    ToolUse,
    TurnEvent,
    TurnRequest,
    Usage,
    Verdict,
)
from postroom.providers.reset_times import from_epoch

PATIENCE = 60.0  # seconds; a longer wait announced by the program is better spent in the queue
SYNTHETIC = "<synthetic>"
TAKEN_AWAY = "is not enabled in this context"


class ClaudeReader(EventReader):
    def __init__(self, name: str, product: Product, request: TurnRequest, clock: Clock, vendor: str) -> None:
        super().__init__(name, product, request, clock)
        self._vendor = vendor
        self._model = request.model
        self._part = -1
        self._streamed: str | None = None
        self._last_text = ""
        self._tools: dict[str, str] = {}
        self._error_code = ""
        self._limit_ends: int | None = None
        # Answers of the same run, before the one to what came late; and what they have cost.
        self._earlier: list[str] = []
        self._counted: dict[str, Usage] = {}

    def read_event(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        match event.get("type"):
            case "system":
                yield from self._system(event)
            case "stream_event":
                yield from self._delta(event)
            case "assistant":
                yield from self._assistant(event)
            case "user":
                yield from self._tool_results(event)
            case "rate_limit_event":
                info = event.get("rate_limit_info")
                if isinstance(info, dict) and info.get("status") == "rejected":
                    self._limit_ends = from_epoch(info.get("resetsAt"))
            case "result":
                yield from self._result(event)

    def at_exit(self, ended: Exit, stderr: str) -> Verdict:
        return self.ended_badly(ended, stderr)

    def _system(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        match event.get("subtype"):
            case "init":
                if isinstance(self.verdict, Finished):
                    self._earlier, self.verdict = [self.verdict.text], None
                self._model = str(event.get("model") or self._model)
                yield from self.session(event.get("session_id"))
                for server in _dicts(event.get("mcp_servers")):
                    if server.get("status") == "failed":
                        yield Progress(kind="warning", text=f"tool server {server.get('name')} did not start")
            case "api_retry":
                yield from self._retry(event)
            case "model_fallback":
                yield Progress(kind="fallback", text="the model was changed for this turn")
            case "model_refusal_no_fallback":
                self._error_code = "refusal"
            case "thinking_tokens":
                yield Progress(kind="thinking", text="thinking")

    def _retry(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        status = event.get("error_status")
        self._error_code = str(event.get("error") or "")
        delay = event.get("retry_delay_ms")
        seconds = delay / 1000 if isinstance(delay, int | float) else 0.0
        if seconds > PATIENCE:
            said = f"{self._error_code or 'error'} {status or ''}, next try in {seconds:.0f} s"
            failed = self.failed_as(said, status if isinstance(status, int) else None, self._error_code)
            retry_at = self.clock.now() + micros(seconds)
            self.verdict = self.failed(failed.kind, failed.cause, said, retry_at)
            self.urgent = True
            return
        yield Progress(kind="retry", text=f"{self._error_code or 'error'} (try {event.get('attempt')})")

    def _delta(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        if event.get("parent_tool_use_id"):
            return
        inner = event.get("event")
        if not isinstance(inner, dict):
            return
        delta = inner.get("delta")
        block = inner.get("content_block")
        if isinstance(block, dict) and block.get("type") == "text":
            self._part += 1
            self._streamed = ""
        elif isinstance(delta, dict) and delta.get("type") == "text_delta" and self._streamed is not None:
            text = str(delta.get("text") or "")
            self._streamed += text
            yield TextChunk(text=text, part=self._part)

    def _assistant(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        message = event.get("message")
        if not isinstance(message, dict):
            return
        if message.get("model") == SYNTHETIC or event.get("error"):
            # The program speaking in the model's place; the result line decides.
            self._error_code = str(event.get("error") or self._error_code)
            return
        for block in _dicts(message.get("content")):
            if block.get("type") == "text" and not event.get("parent_tool_use_id"):
                yield from self._text(str(block.get("text") or ""))
            elif block.get("type") == "tool_use":
                call, name = str(block.get("id") or ""), str(block.get("name") or "tool")
                self._tools[call] = name
                yield ToolUse(
                    name=name, state="started", call_id=call, summary=summary_of(block.get("input"))
                )

    def _text(self, text: str) -> Iterator[TurnEvent]:
        self._last_text = text
        already, self._streamed = self._streamed, None
        if already is None:
            self._part += 1
            yield TextChunk(text=text, part=self._part)
        elif text.startswith(already) and text != already:
            yield TextChunk(text=text[len(already) :], part=self._part)

    def _tool_results(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        message = event.get("message")
        for block in _dicts(message.get("content") if isinstance(message, dict) else None):
            if block.get("type") == "tool_result":
                call = str(block.get("tool_use_id") or "")
                state = "failed" if block.get("is_error") else "finished"
                name = self._tools.get(call, "tool")
                yield ToolUse(name=name, state=state, call_id=call)
                if state == "failed" and TAKEN_AWAY in str(block.get("content")):
                    yield ToolDenied(name=name)

    def _result(self, event: dict[str, Any]) -> Iterator[TurnEvent]:
        yield from filter(_counts_something, self._usage(event))
        for denied in _dicts(event.get("permission_denials")):
            name = str(denied.get("tool_name") or "tool")
            yield ToolDenied(name=name, summary=summary_of(denied.get("tool_input")))
        subtype = str(event.get("subtype") or "")
        if event.get("is_error") or subtype.startswith("error"):
            self.verdict = self._failed_result(event, subtype)
            return
        # A run may yield nothing but this line, so answer and session are taken from here.
        yield from self.session(event.get("session_id"))
        answer = event.get("result")
        stop = event.get("stop_reason")
        text = answer if isinstance(answer, str) else self._last_text
        self.verdict = Finished(
            text="\n\n".join(filter(None, [*self._earlier, text])),
            stop_reason=stop if stop == "max_tokens" else "",
        )

    def _failed_result(self, event: dict[str, Any], subtype: str) -> Failed:
        errors = event.get("errors")
        said = str(event.get("result") or "") or "\n".join(
            map(str, errors if isinstance(errors, list) else [])
        )
        if subtype == "error_max_turns":
            return self.failed(ErrorKind.INVALID, Cause.TURN_LIMIT, said)
        if subtype == "error_max_budget_usd":
            return self.failed(ErrorKind.INVALID, Cause.BUDGET, said)
        if event.get("stop_reason") == "refusal" or self._error_code == "refusal":
            return self.failed(ErrorKind.REFUSED, detail=said)
        status = event.get("api_error_status")
        failed = self.failed_as(said, status if isinstance(status, int) else None, self._error_code)
        if failed.kind is ErrorKind.RATE_LIMIT and failed.retry_at is None:
            return self.failed(failed.kind, failed.cause, said, self._limit_ends)
        return failed

    def _usage(self, event: dict[str, Any]) -> Iterator[Usage]:
        # `usage` can read 0 after a broken stream while the sums per model are right.
        models = event.get("modelUsage")
        if isinstance(models, dict) and models:
            for model, counts in models.items():
                if isinstance(counts, dict):
                    usage = Usage(
                        provider=self.name,
                        vendor=self._vendor,
                        model=model,
                        input_tokens=count_of(counts.get("inputTokens")),
                        cache_read_tokens=count_of(counts.get("cacheReadInputTokens")),
                        cache_write_tokens=count_of(counts.get("cacheCreationInputTokens")),
                        output_tokens=count_of(counts.get("outputTokens")),
                        cost_usd=self._cost(counts.get("costUSD")),
                    )
                    # The sums of a run grow with each of its answers.
                    yield _subtract(usage, self._counted.get(model))
                    self._counted[model] = usage
            return
        counts = event.get("usage")
        if isinstance(counts, dict):
            yield Usage(
                provider=self.name,
                vendor=self._vendor,
                model=self._model,
                input_tokens=count_of(counts.get("input_tokens")),
                cache_read_tokens=count_of(counts.get("cache_read_input_tokens")),
                cache_write_tokens=count_of(counts.get("cache_creation_input_tokens")),
                output_tokens=count_of(counts.get("output_tokens")),
                cost_usd=self._cost(event.get("total_cost_usd")),
            )

    def _cost(self, value: object) -> float | None:
        # The program reckons with Anthropic's prices whatever server it talks to.
        if self._vendor != "anthropic" or isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _subtract(usage: Usage, counted: Usage | None) -> Usage:
    if counted is None:
        return usage
    costs = (usage.cost_usd, counted.cost_usd)
    return msgspec.structs.replace(
        usage,
        input_tokens=max(0, usage.input_tokens - counted.input_tokens),
        cache_read_tokens=max(0, usage.cache_read_tokens - counted.cache_read_tokens),
        cache_write_tokens=max(0, usage.cache_write_tokens - counted.cache_write_tokens),
        output_tokens=max(0, usage.output_tokens - counted.output_tokens),
        cost_usd=None if costs[0] is None else max(0.0, costs[0] - (costs[1] or 0.0)),
    )


def _counts_something(usage: Usage) -> bool:
    tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens
    return tokens > 0 or bool(usage.cost_usd)
