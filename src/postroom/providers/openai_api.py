"""Turns through the Chat Completions API of OpenAI, or of the many servers that speak it (local ones too)."""

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
    SessionStarted,
    TextChunk,
    TurnRequest,
    TurnStream,
    Usage,
)
from postroom.providers.verdict import guarded

PRODUCT = Product(
    label="The OpenAI API",
    install="pip install 'postroom[providers]'",
    login="set an OpenAI API key",
)
BASE_URL = "https://api.openai.com/v1"


class OpenAIApi:
    wants_history = True  # the server keeps nothing between turns

    def __init__(
        self,
        *,
        api_key: str,
        name: str = "openai-api",
        base_url: str = BASE_URL,
        clock: Clock | None = None,
        product: Product = PRODUCT,
    ) -> None:
        self.name = name
        self._api_key = api_key
        self._base_url = base_url
        self._clock = clock or SystemClock()
        self._product = product
        self._vendor = "openai" if base_url == BASE_URL else base_url

    def run(self, request: TurnRequest) -> TurnStream:
        return guarded(self._product, self._run(request))

    async def _run(self, request: TurnRequest) -> TurnStream:
        faults = Faults(self._product, request, self._clock, self._api_key)
        if refusal := refusal_to_call(request, faults, self._api_key):
            yield refusal
            return
        sdk = await load_sdk("openai")
        if sdk is None:
            yield faults.of(ErrorKind.NOT_INSTALLED, detail="the Python package `openai` is missing")
            return
        yield SessionStarted(session_id=session_of(request), provider=self.name)
        client = sdk.AsyncOpenAI(
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
        refusal: list[str] = []
        finish: str | None = None
        used: Usage | None = None
        model = request.model
        messages = messages_of(request)
        if request.system_prompt:
            messages.insert(0, {"role": "system", "content": request.system_prompt})
        stream = await watch.wait(
            client.chat.completions.create(
                model=request.model,
                messages=messages,
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        faults.answer_began()
        try:
            async for chunk in watch.over(aiter(stream)):
                model = chunk.model or model
                if chunk.usage is not None:
                    used = self._usage(model, chunk.usage)
                for choice in chunk.choices[:1]:
                    finish = choice.finish_reason or finish
                    if choice.delta.refusal:
                        refusal.append(choice.delta.refusal)
                    if choice.delta.content:
                        answer.add(choice.delta.content)
                        yield TextChunk(text=choice.delta.content)
        finally:
            await stream.close()
        if used is not None:
            yield used
        yield _verdict(answer.text, "".join(refusal), finish, faults)

    def _usage(self, model: str, usage: Any) -> Usage:
        details = usage.prompt_tokens_details
        read = getattr(details, "cached_tokens", None) or 0
        written = getattr(details, "cache_write_tokens", None) or 0
        return Usage(
            provider=self.name,
            vendor=self._vendor,
            model=model,
            input_tokens=max(usage.prompt_tokens - read - written, 0),
            cache_read_tokens=read,
            cache_write_tokens=written,
            output_tokens=usage.completion_tokens,
        )


def _verdict(text: str, refusal: str, finish: str | None, faults: Faults) -> Finished | Failed:
    if finish is None:
        return faults.of(ErrorKind.OVERLOADED, Cause.STREAM_CUT, "the stream ended before the message did")
    if refusal or finish == "content_filter":
        return faults.of(ErrorKind.REFUSED, detail=refusal or text)
    return Finished(text=text, stop_reason=finish if finish == "length" else "")
