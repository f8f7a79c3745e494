"""Turns through Anthropic's Messages API, or a server that speaks it."""

from contextlib import aclosing
from typing import Any

from postroom.clock import Clock, SystemClock
from postroom.providers.api import (
    ApiAnswer,
    Faults,
    OverLimit,
    TurnTimer,
    load_sdk,
    messages_of,
    refusal_to_call,
    session_of,
)
from postroom.providers.failures import Product
from postroom.providers.protocol import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    Progress,
    SessionStarted,
    TextChunk,
    TurnRequest,
    TurnStream,
    Usage,
)
from postroom.providers.verdict import guarded

PRODUCT = Product(
    label="The Anthropic API",
    install="pip install 'postroom[providers]'",
    login="set an Anthropic API key",
)
BASE_URL = "https://api.anthropic.com"


class AnthropicApi:
    wants_history = True  # the server keeps nothing between turns

    def __init__(
        self,
        *,
        api_key: str,
        name: str = "anthropic-api",
        base_url: str = BASE_URL,
        max_tokens: int = 16_000,
        clock: Clock | None = None,
        product: Product = PRODUCT,
    ) -> None:
        self.name = name
        self._api_key = api_key
        self._base_url = base_url
        self._max_tokens = max_tokens
        self._clock = clock or SystemClock()
        self._product = product
        self._vendor = "anthropic" if base_url == BASE_URL else base_url

    def run(self, request: TurnRequest) -> TurnStream:
        return guarded(self._product, self._run(request))

    async def _run(self, request: TurnRequest) -> TurnStream:
        faults = Faults(self._product, request, self._clock, self._api_key)
        if refusal := refusal_to_call(request, faults, self._api_key):
            yield refusal
            return
        sdk = await load_sdk("anthropic")
        if sdk is None:
            yield faults.of(ErrorKind.NOT_INSTALLED, detail="the Python package `anthropic` is missing")
            return
        yield SessionStarted(session_id=session_of(request), provider=self.name)
        client = sdk.AsyncAnthropic(
            api_key=self._api_key, base_url=self._base_url, max_retries=0, timeout=request.limits.idle
        )
        try:
            async with client, aclosing(self._stream(client, request, faults)) as events:
                async for event in events:
                    yield event
        except OverLimit as limit:
            yield faults.limit(limit.cause)
        except sdk.APITimeoutError:
            yield faults.limit(Cause.IDLE)
        except Exception as error:  # the packages let errors of their transport through
            yield faults.sdk(error)

    async def _stream(self, client: Any, request: TurnRequest, faults: Faults) -> TurnStream:
        watch, answer = TurnTimer(request.limits), ApiAnswer(request.limits)
        counts: dict[str, int] = {}
        stop: str | None = None
        ended = False
        model = request.model
        # Leaving it out and sending it empty are not the same to every server.
        system = {"system": request.system_prompt} if request.system_prompt else {}
        stream = await watch.wait(
            client.messages.create(
                model=request.model,
                max_tokens=self._max_tokens,
                messages=messages_of(request),
                stream=True,
                **system,
            )
        )
        faults.answer_began()
        part = -1
        broken: Exception | None = None
        try:
            async for event in watch.over(aiter(stream)):
                match event.type:
                    case "message_start":
                        model = event.message.model or model
                        _count(counts, event.message.usage)
                    case "content_block_start" if event.content_block.type == "text":
                        part += 1
                    case "content_block_delta" if event.delta.type == "text_delta":
                        answer.add(event.delta.text)
                        yield TextChunk(text=event.delta.text, part=max(part, 0))
                    case "content_block_delta" if event.delta.type == "thinking_delta":
                        yield Progress(kind="thinking", text="thinking")
                    case "message_delta":
                        stop = event.delta.stop_reason or stop
                        _count(counts, event.usage)
                    case "message_stop":
                        ended = True
        except Exception as error:
            broken = error
        finally:
            await stream.close()
        if any(counts.values()):
            yield self._usage(model, counts)  # also of a broken answer: it is paid for
        if broken is not None:
            raise broken
        yield _verdict(answer.text, stop, ended, faults)

    def _usage(self, model: str, counts: dict[str, int]) -> Usage:
        return Usage(
            provider=self.name,
            vendor=self._vendor,
            model=model,
            input_tokens=counts.get("input_tokens", 0),
            cache_read_tokens=counts.get("cache_read_input_tokens", 0),
            cache_write_tokens=counts.get("cache_creation_input_tokens", 0),
            output_tokens=counts.get("output_tokens", 0),
        )


def _count(counts: dict[str, int], usage: object) -> None:
    """Each report replaces the one before: the server sends running totals, of what has changed."""
    for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"):
        value = getattr(usage, name, None)
        if isinstance(value, int):
            counts[name] = value


def _verdict(text: str, stop: str | None, ended: bool, faults: Faults) -> Finished | Failed:
    if not ended:
        return faults.of(ErrorKind.OVERLOADED, Cause.STREAM_CUT, "the stream ended before the message did")
    if stop == "refusal":
        return faults.of(ErrorKind.REFUSED, detail=text)
    if stop == "model_context_window_exceeded":
        return faults.of(ErrorKind.CONTEXT_TOO_LONG, detail=stop)
    return Finished(text=text, stop_reason=stop if stop == "max_tokens" else "")
