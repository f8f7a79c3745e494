"""One plugin in use: called with a time limit, its failures counted, switched off when they do not end."""

import logging
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from postroom.office.plugins.api import EVERYTHING, Handler
from postroom.office.plugins.loading import Loaded
from postroom.office.plugins.timed_calls import CallFailed, TimedCaller

log = logging.getLogger("postroom.plugins")


class PluginState(StrEnum):
    RUNNING = "running"
    NOT_ALLOWED = "not_allowed"  # found, but not named in the settings: its code has not run
    MISSING = "missing"  # named in the settings, but not found
    BROKEN = "broken"  # it could not be loaded
    STOPPED = "stopped"  # switched off after too many failures, until a restart


class PluginStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin as lists show it."""

    name: str
    state: PluginState
    source: str = ""
    path: str | None = None
    hooks: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    calls: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    last_error: str | None = None
    position: int | None = None


class Plugin:
    def __init__(
        self, status: PluginStatus, loaded: Loaded, caller: TimedCaller, *, timeout_s: float, failures: int
    ) -> None:
        self.name = status.name
        self._found = status
        self._loaded = loaded
        self._caller = caller
        self._timeout_s = timeout_s
        self._limit = failures
        self._calls = self._failures = 0
        # By what was called: a handler that works must not hide a hook that never does.
        self._in_a_row: Counter[str] = Counter()
        self._last_error: str | None = None
        self.position: int | None = None
        self.last_place = ""
        self.told_stopped = False

    @property
    def running(self) -> bool:
        return self._most_in_a_row < self._limit

    @property
    def _most_in_a_row(self) -> int:
        return max(self._in_a_row.values(), default=0)

    @property
    def status(self) -> PluginStatus:
        return msgspec.structs.replace(
            self._found,
            state=PluginState.RUNNING if self.running else PluginState.STOPPED,
            hooks=tuple(self._loaded.hooks),
            events=tuple(dict.fromkeys(kind for kind, _ in self._loaded.handlers)),
            calls=self._calls,
            failures=self._failures,
            failures_in_a_row=self._most_in_a_row,
            last_error=self._last_error,
            position=self.position,
        )

    def hook(self, name: str) -> Callable[..., Any] | None:
        return self._loaded.hooks.get(name)

    @property
    def listens(self) -> bool:
        return bool(self._loaded.handlers)

    def handlers(self, event_type: str) -> list[Handler]:
        return [handler for kind, handler in self._loaded.handlers if kind in (event_type, EVERYTHING)]

    async def call(
        self, what: str, function: Callable[..., Any], *args: Any, check: Callable[[Any], Any] | None = None
    ) -> Any:
        """The result, after `check` has accepted it; or `CallFailed`, counted and logged."""
        self._calls += 1
        try:
            result = await self._caller.call(function, *args, limit_s=self._timeout_s)
            result = check(result) if check is not None else result
        except CallFailed as error:
            self._fail(what, error)
            raise
        except Exception as error:  # whatever else: a result that is no honest value, no thread to be had
            failed = CallFailed(f"{type(error).__name__}: its result cannot be used")
            self._fail(what, failed)
            raise failed from None
        if self.running:
            self._in_a_row[what] = 0
        return result

    def _fail(self, what: str, error: CallFailed) -> None:
        self._failures += 1
        self._in_a_row[what] += 1
        self._last_error = f"{what}: {error}"
        self.last_place = f"{what}: {error.where}"
        log.warning("plugin %s failed in %s", self.name, self.last_place)
        if self._in_a_row[what] == self._limit:
            log.error(
                "plugin %s is switched off until the next start, after %d failures in a row",
                self.name,
                self._in_a_row[what],
            )

    def close(self) -> None:
        self._caller.close()
