"""One program run for one turn: the prompt on stdin, lines from stdout, limits, and an end to all it started.

The program runs under a minder (see `minder.py`), which ends every descendant when the program exits, when
the turn is closed or cancelled, and when this process dies.
"""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from postroom.providers import minder
from postroom.providers.environment import TURN_MARK
from postroom.providers.leftovers import end_leftovers
from postroom.providers.lines import LineSplitter
from postroom.providers.protocol import Cause, TurnLimits

STDERR_TAIL = 16 * 1024
CHUNK = 64 * 1024
_MINDER_FILE = Path(minder.__file__)


class ProcessCommand(msgspec.Struct, frozen=True, kw_only=True):
    """`wrappers` is how many processes, each the only child of the one before, stand around the program:
    they end with it, and are not asked to end before. `more` follows `stdin` as it comes."""

    program: str
    arguments: tuple[str, ...]
    stdin: bytes
    folder: Path
    environment: Mapping[str, str]
    limits: TurnLimits
    wrappers: int = 0
    more: AsyncIterator[str] | None = None


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How the program ended. `code` is negative for a signal, None if it never ran (`errno`) or was not seen
    to end. `left` is how many processes it left behind; they have been ended, except for `survivors`.
    `ordered` is 1 if it was we who ended it."""

    code: int | None = None
    errno: int | None = None
    left: int = 0
    survivors: int = 0
    ordered: int = 0

    @property
    def error(self) -> str | None:
        return None if self.errno is None else os.strerror(self.errno)

    def __str__(self) -> str:
        if self.errno is not None:
            return os.strerror(self.errno)
        if self.code is None:
            return "no exit code"
        return f"exit code {self.code}" if self.code >= 0 else f"signal {-self.code}"


class ProcessLimitReached(Exception):
    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


class Child:
    """`async with Child(command) as child:` — leaving the block ends the whole process tree."""

    def __init__(self, command: ProcessCommand) -> None:
        self._command = command
        self._splitter = LineSplitter(command.limits.line_bytes)
        self._stderr = bytearray()
        self._tasks: list[asyncio.Task[None]] = []
        self._lifeline: int | None = None
        self._settle_at: float | None = None
        self.exit: Exit | None = None

    @property
    def stderr(self) -> str:
        return bytes(self._stderr[-STDERR_TAIL:]).decode(errors="replace")

    @property
    def dropped_lines(self) -> int:
        return self._splitter.dropped

    async def __aenter__(self) -> "Child":
        command = self._command
        status_in, status_out = os.pipe()
        lifeline_in, self._lifeline = os.pipe()
        loop = asyncio.get_running_loop()
        try:
            self._transport, protocol = await loop.subprocess_exec(
                lambda: SubprocessStreamProtocol(limit=4 * CHUNK, loop=loop),
                sys.executable,
                "-I",
                "-S",
                str(_MINDER_FILE),
                str(lifeline_in),
                str(status_out),
                str(command.limits.term),
                str(command.wrappers),
                command.program,
                *command.arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=command.folder,
                env=dict(command.environment),
                pass_fds=(lifeline_in, status_out),
                start_new_session=True,
            )
        except BaseException:
            os.close(status_in)
            self._order_end()
            raise
        finally:
            os.close(lifeline_in)
            os.close(status_out)
        self._process = asyncio.subprocess.Process(self._transport, protocol, loop)
        self._started = self._alive_at = loop.time()
        self._tasks = [
            loop.create_task(self._write_prompt()),
            loop.create_task(self._read_stderr()),
            loop.create_task(self._read_status(status_in)),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing the lifeline is all that is needed; a second cancellation cannot undo it.
        self._order_end()
        await asyncio.shield(asyncio.ensure_future(self._clean_up()))

    def settle(self, seconds: float | None) -> None:
        """The program has said its last word: it has this long to exit. None takes it back."""
        if seconds is None:
            self._settle_at = None
        elif self._settle_at is None:
            self._settle_at = asyncio.get_running_loop().time() + seconds

    async def lines(self) -> AsyncGenerator[str, None]:
        """Ends with the output, or when the time to settle is over. Raises LimitReached."""
        assert self._process.stdout is not None
        seen = 0
        while True:
            try:
                async with asyncio.timeout_at(self._next_deadline()):
                    data = await self._process.stdout.read(CHUNK)
            except TimeoutError:
                if self._is_over():
                    return
                continue
            if not data:
                break
            self._alive_at = asyncio.get_running_loop().time()
            seen += len(data)
            if seen > self._command.limits.output_bytes:
                raise ProcessLimitReached(Cause.OUTPUT_LIMIT)
            for line in self._splitter.feed(data):
                yield line
            if self._is_over():
                return
        for line in self._splitter.rest():
            yield line
        await self._wait_for_exit()

    def _next_deadline(self) -> float:
        limits = self._command.limits
        deadline = min(self._started + limits.wall_clock, self._alive_at + limits.idle)
        return deadline if self._settle_at is None else min(deadline, self._settle_at)

    def _is_over(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._settle_at is not None and now >= self._settle_at:
            return True
        if now >= self._started + self._command.limits.wall_clock:
            raise ProcessLimitReached(Cause.WALL_CLOCK)
        if now >= self._alive_at + self._command.limits.idle:
            raise ProcessLimitReached(Cause.IDLE)
        return False

    async def _wait_for_exit(self) -> None:
        """A program that closed its output has nothing more to say, so it gets the grace and no more."""
        self.settle(self._command.limits.grace)
        ending = self._tasks[1:]
        while ending:
            seconds = self._next_deadline() - asyncio.get_running_loop().time()
            _, pending = await asyncio.wait(ending, timeout=max(seconds, 0))
            ending = list(pending)
            if ending and self._is_over():
                return

    def _order_end(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    async def _clean_up(self) -> None:
        limits = self._command.limits
        patience = limits.term + minder.EXITING + minder.LINGER + 2 * minder.GIVE_UP
        _, late = await asyncio.wait(self._tasks[2:], timeout=patience)
        if late and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await asyncio.wait(self._tasks[1:2], timeout=minder.LINGER)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Before the wait: a pipe nobody reads to its end would hold it up.
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(minder.GIVE_UP):
                await self._process.wait()
        if self.exit is None:
            turn_id = self._command.environment.get(TURN_MARK, "")
            ended = await asyncio.to_thread(end_leftovers, turn_id)
            self.exit = Exit(left=ended)

    async def _write_prompt(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(self._command.stdin)
            await self._process.stdin.drain()
            if self._command.more is not None:
                async for text in self._command.more:
                    self._process.stdin.write(text.encode(errors="replace"))
                    await self._process.stdin.drain()
        self._process.stdin.close()

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(CHUNK):
            self._alive_at = asyncio.get_running_loop().time()
            self._stderr += data
            if len(self._stderr) > 4 * STDERR_TAIL:
                del self._stderr[:-STDERR_TAIL]

    async def _read_status(self, descriptor: int) -> None:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        try:
            said = await reader.read()
        finally:
            transport.close()
        with contextlib.suppress(msgspec.DecodeError):
            self.exit = msgspec.json.decode(said, type=Exit)
