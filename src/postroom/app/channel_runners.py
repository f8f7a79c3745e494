"""The channels that run in this process: those switched on in the settings, begun anew when theirs change.

A channel that cannot work never keeps the others, or the office, from working.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from postroom.channels.channel import WebhookRequest
from postroom.channels.chat_rules import ChatRules
from postroom.channels.errors import ChannelMisconfigured, ChannelNotReceiving, ChannelRuns
from postroom.channels.kinds import find_kind
from postroom.channels.runner import ChannelRunner, ChannelSetup
from postroom.clock import Clock
from postroom.errors import PostroomError
from postroom.office.chat_preferences import BusyMode, NoiseLevel
from postroom.office.intake.intake import Also, Incoming, IntakeResult
from postroom.office.pairing import Pairings
from postroom.runtime import Room
from postroom.services.chat_commands import ChatCommands
from postroom.services.container import Services
from postroom.services.office_context import OfficeControl
from postroom.settings import Secret, Settings
from postroom.settings.part import SettingsPart
from postroom.settings.secrets import names_secret, reveal

log = logging.getLogger("postroom.channels")

LOOK_S = 1.0
DAY_S = 24 * 3600.0
# How long somebody who starts a channel by hand waits to hear whether it receives.
PATIENCE_S = 15.0


class _Running(msgspec.Struct, frozen=True):
    runner: ChannelRunner
    task: asyncio.Task[None]
    options: Mapping[str, Any]
    files_url: str


class ChannelRunners:
    def __init__(
        self,
        room: Room,
        control: OfficeControl,
        clock: Clock,
        environment: Mapping[str, str] = os.environ,
        restart: Callable[[], None] | None = None,
    ) -> None:
        self._restart = restart
        self._room = room
        self._control = control
        self._clock = clock
        self._environment = environment
        self._running: dict[str, _Running] = {}
        # Why a channel that is switched on could not be begun, and with which options that was tried.
        self._problems: dict[str, tuple[str, Mapping[str, Any] | None]] = {}
        # Stopped or started by hand, whatever the settings say, until the process begins anew.
        self._held: set[str] = set()
        self._started: set[str] = set()
        self._changing = asyncio.Lock()

    def status(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {
            name: {"running": False, "problem": problem} for name, (problem, _) in self._problems.items()
        }
        for name, one in self._running.items():
            status = one.runner.status
            found[name] = {"running": not one.task.done(), "receiving": status.receiving}
            if status.problem is not None:
                found[name]["problem"] = status.problem
            if status.pairing is not None:
                found[name]["pairing"] = status.pairing
        return found

    async def start(self, channel: str) -> bool:
        """By hand, so the answer waits until it is known whether messages come in. Raises why they do not."""
        async with self._changing:
            if channel in self._running:
                raise ChannelRuns(channel=channel)
            self._held.discard(channel)
            options = read_options(self._control.settings, channel, self._environment)
            runner = await self._begin(channel, options)
            self._started.add(channel)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await runner.settled()
        if not runner.status.receiving:
            reason = runner.status.problem or "another process had it a moment ago, or its platform is slow."
            raise ChannelNotReceiving(channel=channel, reason=reason)
        return True

    async def stop(self, channel: str) -> bool:
        async with self._changing:
            self._held.add(channel)
            self._started.discard(channel)
            return await self._end(channel)

    async def watch(self) -> None:
        """Follows the settings. Somebody may edit the file by hand."""
        while True:
            try:
                async with self._changing:
                    await self._follow()
            except Exception:
                log.exception("the channels do not follow the settings")
            await asyncio.sleep(LOOK_S)

    async def close(self) -> None:
        async with self._changing:
            await asyncio.gather(*[self._end(name) for name in list(self._running)])

    async def _follow(self) -> None:
        settings = self._control.settings
        wanted = dict.fromkeys([*settings.channels.enabled, *sorted(self._started)])
        for name in [*self._running, *self._problems]:
            if name not in wanted:
                self._problems.pop(name, None)
                await self._end(name)
        for name in wanted:
            if name not in self._held:
                await self._keep(name, settings)

    async def _keep(self, name: str, settings: Settings) -> None:
        options: Mapping[str, Any] | None = None
        try:
            options = read_options(settings, name, self._environment)
            running = self._running.get(name)
            is_same = running is not None and (running.options, running.files_url) == (
                options,
                settings.files.url,
            )
            if running is not None and is_same and not running.task.done():
                return
            if running is None and name in self._problems and self._problems[name][1] == options:
                return
            await self._end(name)
            await self._begin(name, options)
        except PostroomError as problem:
            if self._problems.get(name) != (str(problem), options):
                log.error("%s", problem)
            self._problems[name] = (str(problem), options)

    async def _begin(self, name: str, options: Mapping[str, Any]) -> ChannelRunner:
        kind = await asyncio.to_thread(find_kind, str(options.get("platform") or name))
        # Libraries of platforms take seconds to load, and nobody else should wait for that.
        await asyncio.to_thread(kind.load)
        channel = kind.build(name, options)
        self._problems.pop(name, None)
        settings = self._control.settings
        files = self._control.office.files
        pairings = Pairings(self._room, self._clock)
        commands = ChatCommands(
            self._room,
            self._control,
            Services(self._room, clock=self._clock).reviews,
            self._clock,
            self._restart,
        )
        dead_days = settings.retention.dead_days
        setup = ChannelSetup(
            admit=pairings.admit,
            take=self._take,
            rules=self._read_rules(name, options),
            answer=commands.answer,
            find_role=pairings.find_role,
            interrupt=self._interrupt,
            steer=self._steer,
            files=files,
            file_bytes=settings.limits.file_bytes,
            max_age_s=float(options.get("max_age_hours", 24)) * 3600,
            unconfirmed_s=None if dead_days is None else dead_days * DAY_S,
        )
        runner = ChannelRunner(self._room, name, channel, setup, self._clock)
        task = asyncio.create_task(runner.run(), name=f"channel {name}")
        self._running[name] = _Running(runner, task, options, settings.files.url)
        return runner

    def _read_rules(self, name: str, options: Mapping[str, Any]) -> ChatRules:
        try:
            return ChatRules(
                busy=BusyMode(options.get("busy") or BusyMode.QUEUE),
                noise=NoiseLevel(options["noise"]) if options.get("noise") else None,
                signature=options.get("signature"),
                default_agent=options.get("default_agent"),
                loop_events=int(options.get("loop_events", 20)),
                long_turn_s=float(options.get("long_turn_minutes", 5)) * 60,
                agent_of_guests=lambda: self._control.office.directory.default,
            )
        except (TypeError, ValueError) as error:
            raise ChannelMisconfigured(channel=name, reason=f"{error}.") from None

    async def accept_webhook(
        self, channel: str, method: str, headers: Mapping[str, str], query: Mapping[str, str], body: bytes
    ) -> tuple[int, str]:
        """404 for a channel that does not run here, which platforms take as a reason to come again."""
        running = self._running.get(channel)
        if running is None:
            return 404, ""
        request = WebhookRequest(method=method, headers=headers, query=query, body=body)
        answer = await running.runner.accept_webhook(request)
        return answer.status, answer.text

    def _interrupt(self, channel: str, sender_id: str) -> None:
        self._control.office.interrupt(channel, sender_id)

    def _steer(self, channel: str, sender_id: str) -> None:
        self._control.office.steer(channel, sender_id)

    async def _take(self, mail: Incoming, also: Also) -> IntakeResult:
        """By the office as it is at that moment."""
        return await self._control.office.take_in(mail, also)

    async def _end(self, name: str) -> bool:
        running = self._running.pop(name, None)
        if running is None:
            return False
        running.task.cancel()
        [ended] = await asyncio.gather(running.task, return_exceptions=True)
        if isinstance(ended, Exception):
            log.error("the channel %s ended with an error: %s", name, ended)
        return True


def read_options(settings: Settings, name: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """What the settings say of a channel, with its secrets as they are."""
    part = settings.channels.section(name)
    if isinstance(part, SettingsPart):
        given: Mapping[str, Any] = {
            field: value for field, value in part.values().items() if value is not None
        }
    elif isinstance(part, Mapping):
        given = part
    elif part is None:
        given = {}
    else:
        raise ChannelMisconfigured(channel=name, reason=f"channels.{name} must be an object.")
    return {field: _reveal(field, value, environment) for field, value in given.items()}


def _reveal(field: str, value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, Secret):
        return value.reveal(environment)
    return reveal(value, environment) if isinstance(value, str) and names_secret(field) else value
