"""The house, put together and kept open until somebody says stop. Here, and only here, all parts meet."""

import asyncio
import contextlib
import gc
import logging
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import postroom
from postroom import Room, __version__
from postroom.api import feed, queue
from postroom.api.app import OfficeApi, create_app
from postroom.api.auth.agent_tokens import AgentTokens
from postroom.api.auth.owner_token import OwnerToken, owners_token
from postroom.api.dependencies import Dependencies
from postroom.api.office import insights
from postroom.api.queue.router import PREFIXES
from postroom.app import logs, readiness
from postroom.app.home import Home
from postroom.app.http_server import check_address, listen, serving, url_of
from postroom.app.lake import StoreLake
from postroom.app.mcp_config import McpConfigFiles
from postroom.app.office_reloader import OfficeReloader
from postroom.app.pipeline_runs import PipelineRuns
from postroom.app.redaction import Redactor
from postroom.app.roles import ProcessRole, RoleLocks, Running, check_alone
from postroom.clock import Clock, SystemClock
from postroom.office.events import translator
from postroom.office.retention import retention
from postroom.runtime.core import SQLITE
from postroom.services.container import Services
from postroom.settings import Secret, SecretMissing, Settings, with_environment
from postroom.settings.part import SettingsPart
from postroom.webhooks.addresses import check_url, networks
from postroom.webhooks.certificates import trusting
from postroom.webhooks.service import WebhookService

log = logging.getLogger("postroom.app")

GRACE_S = 20.0
LAKE = "lake"


class Ending(StrEnum):
    STOP = "stop"
    RESTART = "restart"


@dataclass(frozen=True)
class ProcessPlan:
    """How the house is opened."""

    home: Home
    roles: frozenset[ProcessRole]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    terminal: bool = False
    """Whether somebody watches."""
    grace_s: float = GRACE_S
    actor: str = ""


async def keep(plan: ProcessPlan, ready: Callable[[Running], None]) -> Ending:
    """Open the house, tell when it is ready, and close it when asked by a signal or over the API."""
    ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def end(how: Ending) -> None:
        if not ended.done():
            ended.set_result(how)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, Ending.STOP)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    plan.home.make()
    posts = RoleLocks(plan.home.run, plan.roles)
    try:
        settings = with_environment(plan.home.settings.load(), plan.environment)
        check_alone(plan.home.run, plan.roles, _file_of(_store_url(plan, settings)))
        redact = Redactor(_secrets(settings))
        days = settings.retention.logs_days
        with logs.logging_to(plan.home.logs, settings.logs.level, redact, terminal=plan.terminal, days=days):
            try:
                async with opened(plan, settings, redact, lambda: end(Ending.RESTART)) as running:
                    posts.announce(running)
                    settle()
                    ready(running)
                    log.info("ready: %s", running.url or ", ".join(running.roles))
                    how = await ended
                    log.info("closing (%s)", how)
                log.info("closed")
            except Exception:
                log.exception("the house closes because of an error")
                raise
            return how
    finally:
        posts.leave()


def settle() -> None:
    """What is there now stays as long as the house: looking through it for garbage would only make pauses."""
    gc.collect()
    gc.freeze()


@contextlib.asynccontextmanager
async def opened(
    plan: ProcessPlan, settings: Settings, redact: Redactor, restart: Callable[[], None]
) -> AsyncIterator[Running]:
    clock = SystemClock()
    started_at = clock.now()
    listener = None
    if ProcessRole.API in plan.roles:
        check_address(settings.api)
        listener = listen(settings.api.host, settings.api.port)
    async with contextlib.AsyncExitStack() as stack:
        if listener is not None:
            stack.callback(listener.close)
        room = await stack.enter_async_context(_room(plan, settings))
        url, token, tools = None, "", None
        if listener is not None:
            given = settings.api.token.reveal(plan.environment) if settings.api.token else None
            token = owners_token(plan.home.token, given)
            redact.know([token])
            url = url_of(settings.api.host, listener)
            tools = McpConfigFiles(plan.home.run / "tools", url, AgentTokens(OwnerToken(token), clock))
        staff = OfficeReloader(
            room,
            plan.home.settings,
            plan.home.path,
            clock,
            works=ProcessRole.WORKER in plan.roles,
            environment=plan.environment,
            tools=tools,
            changed=lambda settings: redact.know(_secrets(settings)),
        )
        await staff.open()
        stack.push_async_callback(staff.close, plan.grace_s)
        watching = asyncio.create_task(staff.watch())
        stack.push_async_callback(_ended, watching)
        if ProcessRole.HOUSEKEEPING in plan.roles:
            holding = asyncio.create_task(StoreLake(plan.home.path / LAKE, clock).hold(room))
            stack.push_async_callback(_ended, holding)
        runs = _runs(plan, _store_url(plan, settings), staff, clock)
        stack.push_async_callback(asyncio.to_thread, runs.stop)
        if ProcessRole.HOUSEKEEPING in plan.roles:
            regular = asyncio.create_task(room.leader("pipeline-runs").run(lambda: runs.keep(room)))
            stack.push_async_callback(_ended, regular)
        if ProcessRole.WORKER in plan.roles:
            tls = await asyncio.to_thread(trusting, settings.webhooks.ca_file)
            told = WebhookService(
                room, clock=clock, inside=lambda: networks(staff.settings.webhooks.networks), tls=tls
            )
            await stack.enter_async_context(told.running())
        if listener is not None:
            port = listener.getsockname()[1]
            front = _front(plan, room, staff, clock, token, port, started_at, restart)
            front = replace(front, redact=redact)
            app = application(front, _store_url(plan, settings), runs)
            await stack.enter_async_context(serving(app, listener))
        yield Running(
            pid=os.getpid(),
            roles=tuple(sorted(plan.roles)),
            version=__version__,
            started_at=started_at,
            url=url,
            store=_file_of(_store_url(plan, settings)),
        )


@contextlib.asynccontextmanager
async def indoors(plan: ProcessPlan) -> AsyncIterator[tuple[OfficeApi, str]]:
    """The house without a door to the street: for one command that finds no house running."""
    settings = with_environment(plan.home.settings.load(), plan.environment)
    clock = SystemClock()
    async with _room(plan, settings) as room:
        staff = OfficeReloader(
            room,
            plan.home.settings,
            plan.home.path,
            clock,
            works=ProcessRole.WORKER in plan.roles,
            environment=plan.environment,
        )
        await staff.open()
        token = secrets.token_urlsafe(32)
        front = _front(plan, room, staff, clock, token, 0, clock.now(), None)
        url = _store_url(plan, settings)
        app = application(front, url, _runs(plan, url, staff, clock), visitors=False)
        try:
            yield app, token
        finally:
            await app.end_streams()
            await staff.close(plan.grace_s)


def _front(
    plan: ProcessPlan,
    room: Room,
    staff: OfficeReloader,
    clock: Clock,
    token: str,
    port: int,
    started_at: int,
    restart: Callable[[], None] | None,
) -> Dependencies:
    closing = asyncio.Event()
    return Dependencies(
        room=room,
        services=build_services(room, plan.home.path, staff, clock, closing),
        closing=closing,
        staff=staff,
        settings=plan.home.settings,
        home=plan.home.path,
        clock=clock,
        token=token,
        port=port,
        started_at=started_at,
        restart=restart,
        check_restart=lambda: readiness.check(plan.home, plan.roles, plan.environment),
        translate=translator(room, lambda: staff.office.directory),
    )


def build_services(
    room: Room, home: Path, staff: OfficeReloader, clock: Clock, closing: asyncio.Event
) -> Services:
    return Services(
        room,
        clock=clock,
        lake=StoreLake(home / LAKE, clock),
        check_address=lambda url: check_url(url, inside=networks(staff.settings.webhooks.networks)),
        closing=closing,
    )


def _runs(plan: ProcessPlan, store: str, staff: OfficeReloader, clock: Clock) -> PipelineRuns:
    lake = StoreLake(plan.home.path / LAKE, clock)
    return PipelineRuns(
        lake, store, plan.home.run, plan.home.logs, clock, lambda: staff.settings, plan.environment
    )


def application(
    front: Dependencies, store: str | None = None, runs: PipelineRuns | None = None, *, visitors: bool = True
) -> OfficeApi:
    """`store` is the URL of the store, for what reads it beside the lake; `runs` starts the pipeline. Without
    `visitors` there is only what the owner's own commands ask for, which is ready sooner."""
    lake = StoreLake(front.home / LAKE, front.clock)
    past = insights.routes(insights.Archive(str(lake.folder), store, runs, front.clock))
    if not visitors:
        return create_app(front, more=[past], tools=False)
    name, *others = PREFIXES
    return create_app(
        replace(front, check_key=front.services.authentication.find_holder),
        more=[queue.router(front.services, name), past, feed.routes(store)],
        aliases=dict.fromkeys(others, name),
    )


def _room(plan: ProcessPlan, settings: Settings) -> contextlib.AbstractAsyncContextManager[Room]:
    url = _store_url(plan, settings)
    if (file := _file_of(url)) is not None:
        # It holds everybody's mail: for its owner's eyes only, from the first moment on.
        Path(file).touch(mode=0o600)
        Path(file).chmod(0o600)
    return postroom.open(
        url,
        actor=plan.actor or f"daemon:{os.getpid()}",
        housekeeping=ProcessRole.HOUSEKEEPING in plan.roles,
        backups=plan.home.path / "backups",
        retention=retention(settings.retention, lake=(plan.home.path / LAKE).is_dir()),
    )


def _store_url(plan: ProcessPlan, settings: Settings) -> str:
    return settings.store.url.reveal(plan.environment) if settings.store.url else plan.home.store_url


def _file_of(url: str) -> str | None:
    path = url.removeprefix(SQLITE)
    return None if "://" in path else str(Path(path).expanduser().absolute())


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _secrets(part: object) -> list[str]:
    """Every secret of the settings, wherever it is, as the log must not show it."""
    if isinstance(part, Secret):
        with contextlib.suppress(SecretMissing):
            return [part.reveal()]
        return []
    if isinstance(part, SettingsPart):
        values = [getattr(part, name) for name in type(part).model_fields]
    elif isinstance(part, Mapping):
        values = list(part.values())
    elif isinstance(part, list | tuple):
        values = list(part)
    else:
        return []
    return [secret for value in values for secret in _secrets(value)]
