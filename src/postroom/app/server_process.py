"""The server, put together and kept running until somebody says stop. Here, and only here, all parts meet."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from postroom import __version__
from postroom.api.auth.agent_tokens import AgentTokens
from postroom.api.auth.owner_token import OwnerToken
from postroom.app import logs, readiness
from postroom.app.application import application, build_dependencies, portal_application
from postroom.app.backup_commands import BackupCommands
from postroom.app.channel_runners import ChannelRunners
from postroom.app.home import Home
from postroom.app.host_name import name_host
from postroom.app.http_server import check_address, listen, serving, url_of
from postroom.app.lake import StoreLake
from postroom.app.mcp_config import McpConfigFiles
from postroom.app.office_reloader import OfficeReloader
from postroom.app.office_settings import describe_settings, establish_settings, token_finder
from postroom.app.pipeline_runs import PipelineRuns
from postroom.app.process_signs import ProcessSigns, list_processes
from postroom.app.redaction import Redactor
from postroom.app.roles import ProcessRole, RoleLocks, Running, check_alone, find_api, running
from postroom.app.store import (
    LAKE,
    describe_store,
    is_server,
    load_host,
    open_core,
    store_digest,
    store_file,
    store_url,
)
from postroom.app.token_rotation import finish_rotation
from postroom.clock import Clock, SystemClock
from postroom.providers.turn_folders import sweep_turn_folders
from postroom.runtime import Room, SyncRoom, open_sync
from postroom.services.office_context import ChannelControl, NoChannels, ProcessFacts, ServerFacts
from postroom.services.shared_settings import SharedSettings
from postroom.settings import Secret, SecretMissing, Settings
from postroom.settings.part import SettingsPart
from postroom.webhooks.addresses import networks
from postroom.webhooks.certificates import trusting
from postroom.webhooks.service import WebhookService

log = logging.getLogger("postroom.app")

GRACE_S = 20.0


class Ending(StrEnum):
    STOP = "stop"
    RESTART = "restart"


@dataclass(frozen=True)
class ProcessPlan:
    """How the server is opened."""

    home: Home
    roles: frozenset[ProcessRole]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    terminal: bool = False
    """Whether somebody watches."""
    grace_s: float = GRACE_S
    actor: str = ""


async def keep(plan: ProcessPlan, ready: Callable[[Running], None]) -> Ending:
    """Open the server, tell when it is ready, and close it when asked by a signal or over the API."""
    ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def end(how: Ending) -> None:
        if not ended.done():
            ended.set_result(how)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, Ending.STOP)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    plan.home.make()
    settings, is_first, notice = load_host(plan.home, plan.environment), False, ""
    url = store_url(plan.home, settings, plan.environment)
    locks = RoleLocks(plan.home.run, plan.roles, store_digest=store_digest(url))
    try:
        check_alone(plan.home.run, plan.roles, store_file(url), store_digest(url))
        if is_server(url):
            settings, is_first = await asyncio.to_thread(_establish, plan, url)
            notice = describe_settings(plan.home, is_first)
        redact = Redactor(_secrets(settings))
        days = settings.retention.logs_days
        with logs.logging_to(plan.home.logs, settings.logs.level, redact, terminal=plan.terminal, days=days):
            if notice:
                log.warning("%s", notice)
            try:
                async with opened(plan, settings, redact, lambda: end(Ending.RESTART), is_first) as running:
                    locks.announce(running)
                    settle()
                    ready(running)
                    log.info("ready: %s", running.url or ", ".join(running.roles))
                    how = await ended
                    log.info("closing (%s)", how)
                log.info("closed")
            except Exception:
                log.exception("the server closes because of an error")
                raise
            return how
    finally:
        locks.leave()


def _establish(plan: ProcessPlan, url: str) -> tuple[Settings, bool]:
    """What holds in an office on a database server, and whether that was put there just now."""
    with open_sync(url, actor="start", housekeeping=False) as room:
        finish_rotation(plan.home, room)
        return establish_settings(plan.home, room, plan.environment)


def _processes(folder: Path) -> list[ProcessFacts]:
    return [
        ProcessFacts(
            pid=each.pid,
            roles=tuple(role.value for role in each.roles),
            version=each.version,
            started_at=each.started_at,
        )
        for each in running(folder)
    ]


def _url_of_tools(plan: ProcessPlan, own: str | None) -> str | None:
    """Where agents reach their tools: here, or at another process of this home."""
    if ProcessRole.API in plan.roles:
        return own
    found = find_api(plan.home.run)
    return found.url if found is not None else None


def settle() -> None:
    """What is there now stays: looking through it for garbage would only make pauses."""
    gc.collect()
    gc.freeze()


@contextlib.asynccontextmanager
async def opened(
    plan: ProcessPlan,
    settings: Settings,
    redact: Redactor,
    restart: Callable[[], None],
    is_first: bool = False,
) -> AsyncIterator[Running]:
    """`is_first`: an office begins on a database server, with what this host has."""
    clock = SystemClock()
    started_at = clock.now()
    listener = None
    if plan.roles & {ProcessRole.API, ProcessRole.PORTAL}:
        check_address(settings.api)
        listener = listen(settings.api.host, settings.api.port)
    url_of_store = store_url(plan.home, settings, plan.environment)
    async with contextlib.AsyncExitStack() as stack:
        if ProcessRole.WORKER in plan.roles:
            await asyncio.to_thread(sweep_turn_folders)
        if listener is not None:
            stack.callback(listener.close)
        core = await asyncio.to_thread(
            open_core,
            plan.home,
            settings,
            plan.environment,
            actor=plan.actor or f"daemon:{os.getpid()}",
            housekeeping=ProcessRole.HOUSEKEEPING in plan.roles,
        )
        room, in_thread = Room(core), SyncRoom(core)
        stack.push_async_callback(room.close)
        token = token_finder(plan.home, plan.environment)(True)
        redact.know([token])
        file = plan.home.settings
        if room.is_shared:
            # By the token of this process: when the owner has another, it must begin anew.
            file = SharedSettings(file.path, lambda: in_thread, lambda is_new: token)
        url = url_of(settings.api.host, listener) if listener is not None else None
        process = Running(
            pid=os.getpid(),
            roles=tuple(sorted(plan.roles)),
            version=__version__,
            started_at=started_at,
            url=url,
            store=store_file(url_of_store),
            store_digest=store_digest(url_of_store),
        )
        host = ""
        if room.is_shared:
            host = await asyncio.to_thread(name_host, plan.home, in_thread)
            signs = ProcessSigns(room, host, process)
            await signs.tell()
            signing = asyncio.create_task(signs.run())
            stack.push_async_callback(_ended, signing)
        tools = McpConfigFiles(
            plan.home.run / "tools",
            lambda: _url_of_tools(plan, url),
            AgentTokens(OwnerToken(token), clock),
        )
        control = OfficeReloader(
            room,
            file,
            plan.home.path,
            clock,
            works=ProcessRole.WORKER in plan.roles,
            environment=plan.environment,
            tools=tools,
            changed=lambda settings: redact.know(_secrets(settings)),
            token_changed=restart,
            host=host,
        )
        await control.open()
        if is_first:
            await control.office.claim_workspaces()
        stack.push_async_callback(control.close, plan.grace_s)
        watching = asyncio.create_task(control.watch())
        stack.push_async_callback(_ended, watching)
        if ProcessRole.HOUSEKEEPING in plan.roles:
            holding = asyncio.create_task(StoreLake(plan.home.path / LAKE, clock).hold(room))
            stack.push_async_callback(_ended, holding)
        runs = _runs(plan, url_of_store, control, clock)
        stack.push_async_callback(asyncio.to_thread, runs.stop)
        if _runs_pipeline(plan, url_of_store):
            regular = asyncio.create_task(room.leader("pipeline-runs").run(lambda: runs.keep(room)))
            stack.push_async_callback(_ended, regular)
        if ProcessRole.WORKER in plan.roles:
            tls = await asyncio.to_thread(trusting, settings.webhooks.ca_file)
            told = WebhookService(
                room, clock=clock, inside=lambda: networks(control.settings.webhooks.networks), tls=tls
            )
            await stack.enter_async_context(told.running())
        channels: ChannelControl = NoChannels()
        if ProcessRole.CHANNELS in plan.roles:
            channels = runners = ChannelRunners(room, control, clock, plan.environment, restart)
            stack.push_async_callback(runners.close)
            following = asyncio.create_task(runners.watch())
            stack.push_async_callback(_ended, following)
        if listener is not None:
            port = listener.getsockname()[1]
            server = ServerFacts(
                port=port,
                started_at=started_at,
                restart=restart,
                check_restart=lambda: readiness.check(plan.home, plan.roles, plan.environment),
                backups=BackupCommands(plan.home.path, plan.environment),
                processes=lambda: list_processes(in_thread, clock) if host else _processes(plan.home.run),
                store=describe_store(url_of_store),
                host=host,
            )
            deps = build_dependencies(
                room,
                control,
                file,
                plan.home.path,
                clock,
                token=token,
                server=server,
                store=url_of_store,
                runs=runs,
                redact=redact,
                channels=channels,
            )
            is_whole = ProcessRole.API in plan.roles
            served = application(deps, url_of_store) if is_whole else portal_application(deps)
            await stack.enter_async_context(serving(served, listener))
        yield process


def _runs(plan: ProcessPlan, store: str, control: OfficeReloader, clock: Clock) -> PipelineRuns:
    lake = StoreLake(plan.home.path / LAKE, clock)
    return PipelineRuns(
        lake, store, plan.home.run, plan.home.logs, clock, lambda: control.settings, plan.environment
    )


def _runs_pipeline(plan: ProcessPlan, store: str) -> bool:
    """A store that is a file has one process, and its housekeeping has always done this too."""
    is_file = store_file(store) is not None
    return ProcessRole.PIPELINE in plan.roles or (is_file and ProcessRole.HOUSEKEEPING in plan.roles)


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
        values = list(part.values().values())
    elif isinstance(part, Mapping):
        values = list(part.values())
    elif isinstance(part, list | tuple):
        values = list(part)
    else:
        return []
    return [secret for value in values for secret in _secrets(value)]
