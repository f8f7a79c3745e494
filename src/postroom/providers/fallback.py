"""Several ways to execute one turn, tried in order until one gets somewhere."""

from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from postroom.providers.protocol import (
    ErrorKind,
    Failed,
    Progress,
    Provider,
    ToolUse,
    TurnRequest,
    TurnStream,
)

# What lies with the provider. The others lie with the message, and would meet it everywhere.
PROVIDERS_FAULT = frozenset(
    {
        ErrorKind.AUTH,
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.CRASHED,
        ErrorKind.NOT_INSTALLED,
    }
)


async def run_with_fallback(attempts: Sequence[tuple[Provider, TurnRequest]]) -> TurnStream:
    """The events of the first attempt that gets somewhere, with the usage of those before it.

    An attempt that has used a tool is not repeated elsewhere: what the tool did cannot be undone.
    Each attempt has its own request, since models and sessions differ between providers. If all fail, the
    verdict is the failure with the best hope: one that passes by itself, else the first.
    """
    failures: list[tuple[str, Failed]] = []
    for position, (provider, request) in enumerate(attempts):
        acted = False
        failed: Failed | None = None
        async with aclosing(provider.run(_with_accepted(request))) as events:
            async for event in events:
                acted = acted or isinstance(event, ToolUse)
                if isinstance(event, Failed):
                    failed = msgspec.structs.replace(event, provider=provider.name)
                else:
                    yield event
        if failed is None:
            return
        failures.append((provider.name, failed))
        if acted or failed.kind not in PROVIDERS_FAULT:
            yield failed
            return
        if position + 1 < len(attempts):
            following = attempts[position + 1][0].name
            yield Progress(kind="fallback", text=f"{provider.name}: {failed.message} Trying {following}.")
    yield _most_hopeful(failures)


def _with_accepted(request: TurnRequest) -> TurnRequest:
    """What came while an earlier attempt went on is not lost with it."""
    if request.steering is None or not request.steering.accepted:
        return request
    return msgspec.structs.replace(request, prompt="\n\n".join([request.prompt, *request.steering.accepted]))


def _most_hopeful(failures: list[tuple[str, Failed]]) -> Failed:
    if not failures:
        return Failed(kind=ErrorKind.INVALID, message="No provider is set for this agent.")
    passing = [failed for _, failed in failures if failed.kind.may_pass]
    # No known moment counts as soon: the queue's own backoff decides then.
    best = min(passing, key=lambda failed: failed.retry_at or 0, default=failures[0][1])
    if len(failures) == 1:
        return best
    told = "\n".join(f"{name}: {failed.message}" for name, failed in failures)
    return msgspec.structs.replace(best, detail=f"{told}\n{best.detail}".strip())
