"""The offline provider: no program, no key, no network, and the same answer every time.

For demonstrations, for tests, and for trying out an office before it has a model.
"""

import asyncio
import time
from collections import Counter

from postroom.clock import Clock, SystemClock, micros
from postroom.providers.failures import Hints, Product, failure
from postroom.providers.protocol import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    SessionStarted,
    TextChunk,
    ToolUse,
    TurnLimits,
    TurnRequest,
    TurnStream,
    Usage,
)
from postroom.providers.script_rules import Match, Script, find_rule, pieces
from postroom.providers.verdict import guarded

PRODUCT = Product(label="The script provider", install="pip install postroom", login="it needs none")
CHARS_PER_TOKEN = 4


class ScriptProvider:
    def __init__(
        self,
        script: Script | None = None,
        *,
        name: str = "script",
        clock: Clock | None = None,
        problem: str = "",
    ) -> None:
        """`problem` says why there is no script to follow; each turn then fails with it."""
        self.name = name
        self._problem = problem
        self._script = script or Script()
        self._clock = clock or SystemClock()
        self._sessions = 0
        self._turns: Counter[str] = Counter()
        self._failures: Counter[tuple[str, int]] = Counter()

    def run(self, request: TurnRequest) -> TurnStream:
        return guarded(PRODUCT, self._run(request))

    async def _run(self, request: TurnRequest) -> TurnStream:
        if self._problem:
            yield failure(PRODUCT, ErrorKind.INVALID, detail=self._problem)
            return
        if not request.prompt.strip():
            yield failure(PRODUCT, ErrorKind.INVALID, detail="The message is empty.")
            return
        session = request.session_id or self._new_session(request.agent_id)
        self._turns[session] += 1
        yield SessionStarted(session_id=session, provider=self.name)
        match = find_rule(self._script, request.agent_id, request.prompt, session, self._turns[session])
        pause = _Pause(request.limits, self._script.pace)
        try:
            if match.rule.hang:
                await pause.for_ever()
            if failed := self._due_failure(match, request):
                await pause.take(match.rule.seconds)
                yield failed
                return
            for number, tool in enumerate(match.rule.tools):
                yield ToolUse(name=tool, state="started", call_id=f"call-{number}")
                yield ToolUse(name=tool, state="finished", call_id=f"call-{number}")
            answer = match.answer()
            if len(answer.encode()) > request.limits.output_bytes:
                yield failure(PRODUCT, ErrorKind.INVALID, cause=Cause.OUTPUT_LIMIT)
                return
            parts = pieces(answer, match.rule.chunks)
            for part in parts:
                await pause.take(match.rule.seconds / len(parts))
                yield TextChunk(text=part)
        except TimeoutError:
            yield pause.failure()
            return
        yield Usage(
            provider=self.name,
            model="script",
            input_tokens=len(request.prompt) // CHARS_PER_TOKEN + 1,
            output_tokens=len(answer) // CHARS_PER_TOKEN + 1,
            cost_usd=0.0,
        )
        yield Finished(text=answer)

    def _new_session(self, agent_id: str) -> str:
        self._sessions += 1
        return f"script-{agent_id}-{self._sessions}"

    def _due_failure(self, match: Match, request: TurnRequest) -> Failed | None:
        rule = match.rule
        if rule.fail is None:
            return None
        key = (request.agent_id, match.number)
        if rule.times is not None and self._failures[key] >= rule.times:
            return None
        self._failures[key] += 1
        retry_at = None if rule.retry_after is None else self._clock.now() + micros(rule.retry_after)
        detail = f"failure {self._failures[key]} of {rule.times or 'every try'}, as the script says"
        return failure(PRODUCT, rule.fail, detail=detail, retry_at=retry_at, hints=Hints(model=request.model))


class _Pause:
    """Waits in the script's own time, but never beyond the limits of the turn."""

    def __init__(self, limits: TurnLimits, pace: float) -> None:
        self._limits = limits
        self._pace = pace
        self._ends = time.monotonic() + limits.wall_clock
        self._cause = Cause.IDLE

    async def take(self, seconds: float) -> None:
        seconds *= self._pace
        left = self._ends - time.monotonic()
        limit = min(left, self._limits.idle)
        await asyncio.sleep(max(min(seconds, limit), 0))
        if seconds > limit:
            self._cause = Cause.WALL_CLOCK if left <= self._limits.idle else Cause.IDLE
            raise TimeoutError

    async def for_ever(self) -> None:
        # The pace is no matter here: only a limit or a cancellation ends it.
        self._pace = 1.0
        await self.take(float("inf"))

    def failure(self) -> Failed:
        seconds = self._limits.wall_clock if self._cause is Cause.WALL_CLOCK else self._limits.idle
        return failure(PRODUCT, ErrorKind.TIMED_OUT, cause=self._cause, hints=Hints(seconds=seconds))
