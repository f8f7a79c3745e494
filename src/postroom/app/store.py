"""The store of this home: which one it is by the settings, and how it is opened."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from postroom.app.home import Home
from postroom.office.retention import retention
from postroom.runtime import RoomOptions
from postroom.runtime.core import RoomCore
from postroom.settings import Settings, with_environment
from postroom.stores.addresses import SERVERS, SQLITE

LAKE = "lake"


def load_host(home: Home, environment: Mapping[str, str]) -> Settings:
    """What the file of this host says, which is all of it unless the store is on a server."""
    return with_environment(home.settings.load(), environment)


def store_url(home: Home, settings: Settings, environment: Mapping[str, str]) -> str:
    return settings.store.url.reveal(environment) if settings.store.url else home.store_url


def store_file(url: str) -> str | None:
    """Of a store that is a file."""
    path = url.removeprefix(SQLITE)
    return None if "://" in path else str(Path(path).expanduser().absolute())


def store_digest(url: str) -> str | None:
    """Of a store that is none: by it, processes know that they mean the same, and nobody reads a password."""
    return hashlib.sha256(url.encode()).hexdigest() if store_file(url) is None else None


def describe_store(url: str) -> str:
    """For people: what it is and where, without a name or a password."""
    if (file := store_file(url)) is not None:
        return f"SQLite, {file}"
    parts = urlsplit(url)
    return f"{parts.scheme}, {parts.hostname or 'this machine'}{parts.path}"


def is_server(url: str) -> bool:
    """Whether several processes, on several hosts, may have the store open."""
    return url.startswith(SERVERS)


def open_core(
    home: Home, settings: Settings, environment: Mapping[str, str], *, actor: str, housekeeping: bool
) -> RoomCore:
    """What rooms stand on, of this process and of its threads. Blocks."""
    url = store_url(home, settings, environment)
    if (file := store_file(url)) is not None:
        # It holds everybody's messages: for its owner's eyes only, from the first moment on.
        Path(file).touch(mode=0o600)
        Path(file).chmod(0o600)
    options = RoomOptions(
        actor=actor,
        housekeeping=housekeeping,
        backups=home.path / "backups",
        redis=settings.store.redis.reveal(environment) if settings.store.redis else None,
        retention=retention(settings.retention, lake=(home.path / LAKE).is_dir()),
    )
    return RoomCore.open(url, options)
