"""Puts the API together: the services over an open room and office, and the application that serves them."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from postroom.api import feed, queue
from postroom.api.app import OfficeApi, create_app
from postroom.api.dependencies import Dependencies
from postroom.api.queue.router import PREFIXES
from postroom.app.lake import StoreLake
from postroom.app.lake_reader import StoreLakeReader
from postroom.app.pipeline_runs import PipelineRuns
from postroom.app.store import LAKE
from postroom.clock import Clock
from postroom.office.events import translator
from postroom.runtime import Room
from postroom.services.office_context import (
    ChannelControl,
    NoChannels,
    OfficeControl,
    OpenOffice,
    ServerFacts,
)
from postroom.services.server import ServerServices
from postroom.settings.file import SettingsFile
from postroom.webhooks.addresses import check_url, networks


def build_dependencies(
    room: Room,
    control: OfficeControl,
    file: SettingsFile,
    home: Path,
    clock: Clock,
    *,
    token: str,
    server: ServerFacts | None = None,
    store: str | None = None,
    runs: PipelineRuns | None = None,
    redact: Callable[[str], str] = str,
    channels: ChannelControl | None = None,
) -> Dependencies:
    """`store` is the URL of the store, for what reads it beside the lake; `runs` starts the pipeline."""
    server = server or ServerFacts(started_at=clock.now())
    office = OpenOffice(
        file=file,
        home=home,
        clock=clock,
        open_room=room,
        open_control=control,
        channels=channels or NoChannels(),
        server=server,
    )
    lake = StoreLake(home / LAKE, clock)
    closing = asyncio.Event()
    services = ServerServices(
        room,
        office,
        StoreLakeReader(str(lake.folder), store, clock, runs),
        clock=clock,
        lake=lake,
        check_address=lambda url: check_url(url, inside=networks(control.settings.webhooks.networks)),
        closing=closing,
        agent_queues=lambda agent: (
            control.settings.agents[agent].queues if agent in control.settings.agents else ()
        ),
        erase_files=lambda refs: _erase_files(control, refs),
    )
    return Dependencies(
        room=room,
        services=services,
        control=control,
        check_key=services.authentication.find_holder,
        closing=closing,
        clock=clock,
        token=token,
        started_at=server.started_at,
        redact=redact,
        home=home,
        sessions_file=home / "sessions.json",
        translate=translator(room, lambda: control.office.directory),
    )


def _erase_files(control: OfficeControl, refs: Sequence[str]) -> None:
    """By the office as it is at that moment."""
    control.office.files.forget(refs)


def portal_application(deps: Dependencies) -> OfficeApi:
    """For people only: the pages, logging in, and signs of life; no program has anything to ask here."""
    return create_app(deps, programs=False)


def application(deps: Dependencies, store: str | None = None) -> OfficeApi:
    """`store` is the URL of the store, for workers of a cluster that read it through this server."""
    name, *others = PREFIXES
    more = [queue.router(deps.services, name), feed.routes(store)]
    return create_app(deps, more=more, aliases=dict.fromkeys(others, name))
