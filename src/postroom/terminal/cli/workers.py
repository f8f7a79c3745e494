"""`postroom worker`: a Python function as a pool of workers, over HTTP, so that it needs no store."""

import asyncio
import importlib
import os
import signal
import sys
from typing import Annotated

import httpx2
import typer

from postroom.app.home import Home
from postroom.app.process import NotRunning
from postroom.client import AsyncClient, ServiceError, WorkerPool
from postroom.client.worker_pool import LEASE_S, Work
from postroom.terminal.cli.command import command
from postroom.terminal.cli.connection import Unreachable, find_server, token_of
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.store_access import CommandContext, whoami


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "worker",
        panel=panel,
        examples=[
            "postroom worker shop.orders:handle --queue orders",
            "postroom worker shop.orders:handle --queue shop/orders --at-once 16 --lease 300",
            "POSTROOM_TOKEN=sk_… postroom worker shop.orders:handle --queue orders --url https://post.example",
        ],
    )(worker)


async def worker(
    at: CommandContext,
    function: Annotated[
        str, argument("MODULE:FUNCTION", "A function of one message; it may be a coroutine function.")
    ],
    queue: Annotated[str, option("QUEUE", "Whose messages it works on.", "--queue", "-q")],
    url: Annotated[str | None, option("URL", "The office. Default the one of this home.", "--url")] = None,
    at_once: Annotated[int, option("N", "How many at once. Default 1.", "--at-once", min=1, max=1000)] = 1,
    lease: Annotated[
        float, option("SECONDS", "How long a claim holds; it is extended. Default 60.", "--lease", min=1)
    ] = LEASE_S,
) -> None:
    """Run a Python function on the messages of a queue, on this machine or any other.

    What it returns is the result, what it raises fails the message, postroom.client.Unworkable for good.
    Claims are kept alive while it works. Ctrl-C lets it end what it has in hand. The key is POSTROOM_TOKEN,
    else the owner's token of this home.
    """
    work = load_function(function)
    found = url or _office()
    path = queue if "/" in queue else f"default/{queue}"
    async with AsyncClient(found, token_of(Home.of())) as client:
        pool = WorkerPool(
            client, path, work, at_once=at_once, lease_s=lease, name=f"{whoami()}:{os.getpid()}"
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, pool.stop)
        at.out.note(f"working on {path} at {found}; Ctrl-C ends it")
        try:
            await pool.run()
        except httpx2.TransportError as error:
            raise Unreachable(url=found, reason=str(error) or type(error).__name__) from None
        except ServiceError as error:
            raise Unclear(str(error)) from None
    document = {"completed": pool.completed, "failed": pool.failed}
    at.out.show(document, f"{pool.completed:,} completed, {pool.failed:,} failed")


def load_function(name: str) -> Work:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise Unclear(f"{name!r} names no function; write it as shop.orders:handle")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise Unclear(f"{name} cannot be loaded from {folder}: {error}") from error
    if not callable(found):
        raise Unclear(f"{name} is no function")
    return found


def _office() -> str:
    found = find_server(Home.of())
    if found is None or found.url is None:
        raise NotRunning
    return found.url
