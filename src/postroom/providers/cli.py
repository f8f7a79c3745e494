"""What the three agent programs have in common: find it, run it, read its events, decide how the turn ended.

The verdict comes from the events first, from the exit code second, from stderr last.
"""

import asyncio
import json
import os
import re
import shutil
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from postroom.clock import Clock
from postroom.providers.classify import classify
from postroom.providers.environment import secrets_in
from postroom.providers.failures import Hints, Product, failure, redact
from postroom.providers.mcp import read_servers
from postroom.providers.process import Child, Exit, ProcessCommand, ProcessLimitReached
from postroom.providers.protocol import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    Permissions,
    Progress,
    SessionStarted,
    TurnEvent,
    TurnRequest,
    TurnStream,
    Verdict,
)
from postroom.providers.reset_times import from_text
from postroom.providers.sandbox import SandboxUnavailable, confine_command

SUMMARY_CHARS = 200
# What a sandbox says that could not be set up: then the program itself never ran.
SETUP_FAILED = re.compile(r"bwrap: |postroom: the sandbox ")


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """`homes` are the folders and files the program keeps its own things in, and `configuration` what it
    reads only: in a sandbox, nothing else of its user's is there. A program with a sandbox of its own makes
    none with `bare_arguments`. With `more`, stdin stays open for what comes from there until the program has
    given its answer."""

    program: str
    arguments: tuple[str, ...]
    stdin: str
    environment: Mapping[str, str]
    more: AsyncIterator[str] | None = None
    homes: tuple[Path, ...] = ()
    configuration: tuple[Path, ...] = ()
    bare_arguments: tuple[str, ...] | None = None


class EventReader(ABC):
    """Turns the lines of one program into events. `verdict` is set once the program has said how the turn
    went; `urgent` when there is no use in waiting for the program to exit by itself."""

    def __init__(self, name: str, product: Product, request: TurnRequest, clock: Clock) -> None:
        self.name = name
        self.product = product
        self.request = request
        self.clock = clock
        self.verdict: Verdict | None = None
        self.urgent = False
        self._session_told = False

    @abstractmethod
    def read_event(self, event: dict[str, Any]) -> Iterator[TurnEvent]: ...

    @abstractmethod
    def at_exit(self, ended: Exit, stderr: str) -> Verdict:
        """The verdict on a program that ended without giving one."""

    def read(self, line: str) -> Iterator[TurnEvent]:
        # What is not JSON, or not an object, is noise: warnings of the runtime, banners, broken last lines.
        try:
            event = json.loads(line)
        except ValueError:
            return
        if isinstance(event, dict):
            yield from self.read_event(event)

    def session(self, session_id: object) -> Iterator[TurnEvent]:
        """Reports the session once. Another than the one asked for means that the old one is gone."""
        if self._session_told or not isinstance(session_id, str) or not session_id:
            return
        self._session_told = True
        asked = self.request.session_id
        if asked is not None and session_id != asked:
            self.verdict = self.session_lost(f"asked for {asked}, got {session_id}")
            self.urgent = True
            return
        yield SessionStarted(session_id=session_id, provider=self.name)

    def session_lost(self, detail: str) -> Failed:
        return self.failed(ErrorKind.INVALID, Cause.SESSION_LOST, detail)

    def failed(
        self, kind: ErrorKind, cause: Cause = Cause.UNKNOWN, detail: str = "", retry_at: int | None = None
    ) -> Failed:
        if kind is ErrorKind.RATE_LIMIT and retry_at is None:
            retry_at = from_text(detail, self.clock.now())
        hints = Hints(model=self.request.model, session_id=self.request.session_id or "")
        return failure(self.product, kind, cause=cause, detail=detail, retry_at=retry_at, hints=hints)

    def failed_as(self, text: str, status: int | None = None, code: str = "") -> Failed:
        kind, cause = classify(text, status, code) or (ErrorKind.CRASHED, Cause.UNKNOWN)
        return self.failed(kind, cause, text)

    def ended_badly(self, ended: Exit, stderr: str) -> Failed:
        """For an exit without any verdict in the events: stderr may still say what was wrong."""
        if ended.code == 1 and SETUP_FAILED.match(stderr):
            return self.failed(ErrorKind.INVALID, Cause.SANDBOX, stderr)
        known = classify(stderr) if ended.code and ended.code > 0 else None
        if known:
            return self.failed(*known, detail=stderr)
        hints = Hints(exit=str(ended))
        return failure(self.product, ErrorKind.CRASHED, detail=stderr, hints=hints)


async def run_program(invocation: Invocation, reader: EventReader) -> TurnStream:
    request, product = reader.request, reader.product
    secrets = secrets_in(invocation.environment)
    program = shutil.which(invocation.program, path=invocation.environment.get("PATH", os.defpath))
    if program is None:
        yield failure(product, ErrorKind.NOT_INSTALLED, detail=f"{invocation.program} is not in PATH")
        return
    command = ProcessCommand(
        program=program,
        arguments=invocation.arguments,
        stdin=invocation.stdin.encode(errors="replace"),
        more=invocation.more,
        folder=request.workspace,
        environment=invocation.environment,
        limits=request.limits,
    )
    with tempfile.TemporaryDirectory(prefix="postroom-tmp-", ignore_cleanup_errors=True) as temporary:
        try:
            command = await asyncio.to_thread(_confine, command, invocation, request, Path(temporary))
        except SandboxUnavailable as error:
            yield failure(product, ErrorKind.INVALID, cause=Cause.SANDBOX, detail=str(error))
            return
        steering = request.steering if invocation.more is not None else None
        if steering is not None:
            steering.open()
        try:
            async with aclosing(_run(command, reader, secrets)) as events:
                async for event in events:
                    yield event
        finally:
            if steering is not None:
                steering.close()


def _confine(
    command: ProcessCommand, invocation: Invocation, request: TurnRequest, temporary: Path
) -> ProcessCommand:
    tools = () if request.mcp_config is None else (request.mcp_config,)
    configuration = (*invocation.configuration, *tools)
    return confine_command(
        command,
        request.sandbox,
        homes=invocation.homes,
        configuration=configuration,
        writes=request.permissions is not Permissions.READ,
        bare_arguments=invocation.bare_arguments,
        temporary=temporary,
    )


async def _run(command: ProcessCommand, reader: EventReader, secrets: list[str]) -> TurnStream:
    request, product = reader.request, reader.product
    stopped: Failed | None = None
    async with Child(command) as child:
        try:
            async with aclosing(child.lines()) as lines:
                async for line in lines:
                    for event in reader.read(line):
                        yield event
                    if reader.verdict is None:
                        child.settle(None)
                    else:
                        if request.steering is not None:
                            request.steering.close()
                        child.settle(0 if reader.urgent else request.limits.grace)
        except ProcessLimitReached as limit:
            stopped = _stopped(reader, limit.cause, child.stderr)
    ended = child.exit or Exit()
    if child.dropped_lines:
        yield Progress(kind="warning", text=f"{child.dropped_lines} lines were too long and were skipped")
    if ended.left and not ended.ordered:
        yield Progress(kind="leftovers", text=f"{ended.left} processes were left behind and have been ended")
    if ended.error:
        yield failure(
            product,
            ErrorKind.CRASHED,
            detail=f"{command.program}: {ended.error}",
            hints=Hints(exit=ended.error),
        )
        return
    if reader.verdict is None and stopped is None and child.dropped_lines and ended.code == 0:
        # It ended well, so its last word was in a line that was skipped, and would be again.
        stopped = _stopped(reader, Cause.OUTPUT_LIMIT, child.stderr)
    yield _without_secrets(reader.verdict or stopped or reader.at_exit(ended, child.stderr), secrets)


def refusal_to_start(request: TurnRequest, product: Product) -> Failed | None:
    """What is wrong with the request itself, before anything is started."""
    if not request.prompt.strip():
        return failure(product, ErrorKind.INVALID, detail="The message is empty.")
    if not request.workspace.is_dir():
        reason = f"The workspace {request.workspace} does not exist."
        return failure(product, ErrorKind.INVALID, detail=reason)
    try:
        read_servers(request.mcp_config)
    except (OSError, msgspec.DecodeError) as error:
        reason = f"The tool file {request.mcp_config} cannot be used: {error}"
        return failure(product, ErrorKind.INVALID, detail=reason)
    return None


def with_turn_id(request: TurnRequest) -> TurnRequest:
    """Every process of a turn is marked, so a turn without an id gets one."""
    return request if request.turn_id else msgspec.structs.replace(request, turn_id=str(uuid.uuid4()))


def is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def write_private(path: Path, text: str) -> Path:
    """For this user's eyes only from the first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return path


def summary_of(value: object) -> str:
    """A tool's input in one short line."""
    if isinstance(value, dict):
        for key in (
            "command",
            "file_path",
            "filePath",
            "path",
            "pattern",
            "url",
            "query",
            "description",
            "prompt",
        ):
            if isinstance(value.get(key), str):
                return summary_of(value[key])
        value = json.dumps(value, ensure_ascii=False) if value else ""
    text = " ".join(str(value or "").split())
    return redact(text if len(text) <= SUMMARY_CHARS else text[: SUMMARY_CHARS - 1] + "…")


def count_of(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _stopped(reader: EventReader, cause: Cause, stderr: str) -> Failed:
    limits = reader.request.limits
    kind = ErrorKind.INVALID if cause is Cause.OUTPUT_LIMIT else ErrorKind.TIMED_OUT
    seconds = limits.wall_clock if cause is Cause.WALL_CLOCK else limits.idle
    return failure(reader.product, kind, cause=cause, detail=stderr, hints=Hints(seconds=seconds))


def _without_secrets(verdict: Verdict, secrets: list[str]) -> Verdict:
    if isinstance(verdict, Finished):
        return verdict
    return msgspec.structs.replace(
        verdict, message=redact(verdict.message, secrets), detail=redact(verdict.detail, secrets)
    )
