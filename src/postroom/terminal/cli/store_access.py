"""The way into the room: which store is meant, and how it is opened, to change things or only to look."""

import contextlib
import getpass
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from postroom.clock import SECOND, Clock, SystemClock
from postroom.errors import InvalidField, StoreInUse, StoreReadOnly, UnknownStore
from postroom.stores.addresses import SERVERS, SQLITE
from postroom.terminal.cli.errors import NoStore
from postroom.terminal.cli.output import Output

if TYPE_CHECKING:  # a command that opens no store starts without what it takes to open one
    from postroom.app.home import Home
    from postroom.kernel.reader import Reader
    from postroom.office.traces import ConversationTrace
    from postroom.runtime import Room, SyncRoom
    from postroom.services.callers import Caller
    from postroom.services.container import Services
    from postroom.services.office import OfficeServices
    from postroom.terminal.cli.readonly import ReadOnlyFile

OVERDUE_S = 3
SETTINGS = "store.url in settings.json"


def home() -> Path:
    return Path(os.environ.get("POSTROOM_HOME") or "~/.postroom").expanduser()


def _url_in_settings() -> str | None:
    """Most settings name no store, and reading them whole takes longer than many commands."""
    try:
        text = (home() / "settings.json").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    if '"store"' not in text:
        return None
    with contextlib.suppress(ValueError):  # the settings say better what is wrong with them
        document = json.loads(text)
        section = document.get("store") if isinstance(document, dict) else None
        if not isinstance(section, dict) or not section.get("url"):
            return None
    from postroom.app.home import Home
    from postroom.app.store import store_url

    found = Home.of()
    return store_url(found, found.settings.load(), os.environ)


def whoami() -> str:
    """Who is at the keyboard, as the ledger will name them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


@dataclass(frozen=True)
class CommandContext:
    store: str | None = None
    out: Output = field(default_factory=Output)
    clock: Clock = field(default_factory=SystemClock)

    @cached_property
    def _found(self) -> tuple[str, str]:
        """Who names the store, and its address."""
        if self.store:
            return "--store", self.store
        if named := os.environ.get("POSTROOM_STORE"):
            return "POSTROOM_STORE", named
        if named := _url_in_settings():
            return SETTINGS, named
        return "POSTROOM_HOME", f"{SQLITE}{home().absolute()}/postroom.db"

    @property
    def url(self) -> str:
        """`--store`, else POSTROOM_STORE, else `store.url` of the settings, else the file in the home."""
        return self._found[1]

    @property
    def path(self) -> Path:
        """The store's file."""
        named_by, url = self._found
        if url == "memory://":
            raise InvalidField(
                named_by, "memory:// would be gone when this command ends; name a file instead"
            )
        if self.has_server:
            raise InvalidField(
                named_by,
                "is a database server, and commands about queues and messages reach it through the office"
                " that runs on it: postroom start. Others need a file; back up a server by its own means",
            )
        path = url.removeprefix(SQLITE)
        if not path or "://" in path:
            raise UnknownStore(url=url)
        file = Path(path).expanduser()
        if file.is_dir():
            raise InvalidField(named_by, f"{file} is a folder; name the store's file in it")
        return file

    @property
    def has_file(self) -> bool:
        """Whether the store is a file that is there."""
        return not self.has_server and self.path.is_file()

    @property
    def has_server(self) -> bool:
        """Whether the store is on a database server."""
        return self.url.startswith(SERVERS)

    @property
    def is_served(self) -> bool:
        """Whether a server of this home runs on this store."""
        return self._server() is not None

    @property
    def lake_folder(self) -> Path:
        """Beside a store that was named for this command, else in the home, where the server has it."""
        named_by, url = self._found
        at_home = named_by == SETTINGS or url.startswith(SERVERS)
        return (home().absolute() if at_home else self.path.absolute().parent) / "lake"

    @property
    def caller(self) -> "Caller":
        """Whoever is at the keyboard of this machine is the owner."""
        from postroom.services import callers

        return callers.owner(actor=whoami())

    @property
    def home(self) -> "Home":
        from postroom.app.home import Home

        return Home.of()

    @property
    def server_runs(self) -> bool:
        """Whether agents work by themselves, in a server of this home."""
        from postroom.terminal.cli.connection import find_server

        return find_server(self.home) is not None

    @contextlib.asynccontextmanager
    async def office(
        self, *, works: bool = False, patience_s: float | None = 120.0
    ) -> "AsyncIterator[OfficeServices]":
        """What a command about the office asks: of the server that runs, else in this process. With `works`,
        agents then work in this process while it lasts."""
        from postroom.terminal.cli.connection import find_server, token_of

        home = self.home
        if (found := find_server(home)) is not None and found.url is not None:
            from postroom.terminal.cli.remote import remote_services

            async with remote_services(found.url, token_of(home), patience_s=patience_s) as services:
                yield cast("OfficeServices", services)
            return
        from postroom.app.local_office import LocalOffice
        from postroom.services.office import OfficeServices

        async with LocalOffice(home, works=works, actor=whoami()) as office:
            yield OfficeServices(office)

    @contextlib.asynccontextmanager
    async def services(
        self, *, change: bool = False, make: bool = False, at_messages: bool = False
    ) -> "AsyncIterator[Services]":
        """What every command asks: of the server that runs, if one owns this store; else in this process.

        `change` something, else the store is only read, and whoever owns it is not disturbed. `make` it when
        it is not there.
        """
        from postroom.runtime import Room, RoomOptions
        from postroom.runtime.core import RoomCore
        from postroom.services.container import Services

        if (server := self._server()) is not None:
            async with server as services:
                yield services
            return
        path = self.path
        if not (change or make):
            async with self._services_to_look(path, at_messages=at_messages) as services:
                yield services
            return
        self._make_store(path, make=make)
        try:
            core = RoomCore.open(self.url, RoomOptions(actor=whoami(), housekeeping=False))
        except StoreInUse:
            # A server may have taken it since.
            if (server := self._server()) is None:
                raise
            async with server as services:
                yield services
            return
        room = Room(core)
        try:
            await _let_time_pass(room)
            yield Services(room, clock=self.clock, erase_files=_erase_files)
        finally:
            await room.close()

    @contextlib.asynccontextmanager
    async def _services_to_look(self, path: Path, *, at_messages: bool) -> "AsyncIterator[Services]":
        from postroom.services.container import Services
        from postroom.terminal.cli.readonly import ReadOnlyFile

        file = ReadOnlyFile(path)
        async with self._room_to_look(file) as room:
            if at_messages and not self.out.as_json:
                self._say_when_overdue(file)
            yield Services(room, clock=self.clock)

    @contextlib.asynccontextmanager
    async def _room_to_look(self, file: "ReadOnlyFile") -> "AsyncIterator[Room]":
        from postroom.runtime import Room, RoomOptions
        from postroom.runtime.core import RoomCore

        room = Room(RoomCore(file, RoomOptions(actor=whoami(), housekeeping=False)))
        try:
            yield room
        finally:
            await room.close()

    async def look_at_conversation(self, conversation: str) -> "ConversationTrace | None":
        """What the office's part of the store still has of it, whoever owns the store; None if nothing."""
        if not self.has_file:
            return None
        from postroom.office.traces import trace
        from postroom.terminal.cli.readonly import ReadOnlyFile

        async with self._room_to_look(ReadOnlyFile(self.path)) as room:
            found = await trace(room, conversation)
        return found if found.messages else None

    def _server(self) -> "contextlib.AbstractAsyncContextManager[Services] | None":
        """The services of the server of this home, if it runs on this store."""
        from postroom.app.roles import find_apis

        servers = find_apis(home() / "run")
        if not servers:
            return None
        from postroom.app.store import store_digest, store_file

        file, digest = store_file(self.url), store_digest(self.url)
        found = next((each for each in servers if (each.store, each.store_digest) == (file, digest)), None)
        if found is None or found.url is None:
            return None
        from postroom.app.home import Home
        from postroom.terminal.cli.connection import token_of
        from postroom.terminal.cli.remote import remote_services

        return remote_services(found.url, token_of(Home.of()))

    def _make_store(self, path: Path, *, make: bool) -> None:
        if path.exists():
            return
        if not make:
            raise NoStore(path=str(path))
        _make_home(path)
        _make_file(path)

    @contextlib.contextmanager
    def looking(self, *, at_messages: bool = False) -> "Iterator[SyncRoom]":
        """The room, only to read: nothing can be changed, and whoever owns it is not disturbed."""
        from postroom.runtime import RoomOptions, SyncRoom
        from postroom.runtime.core import RoomCore
        from postroom.terminal.cli.readonly import ReadOnlyFile

        file = ReadOnlyFile(self.path)
        room = SyncRoom(RoomCore(file, RoomOptions(actor=whoami(), housekeeping=False)))
        try:
            if at_messages and not self.out.as_json:
                self._say_when_overdue(file)
            yield room
        finally:
            room.close()

    @property
    def is_on_server(self) -> bool:
        return self.url.startswith(SERVERS)

    @contextlib.contextmanager
    def server_reader(self) -> "Iterator[Reader]":
        """Of a store on a database server, which several processes may have open: only to read."""
        from postroom.kernel.reader import Reader
        from postroom.runtime import RoomOptions
        from postroom.runtime.core import open_store

        store = open_store(self.url, RoomOptions(actor=whoami(), housekeeping=False))
        try:
            with store.reader() as reads:
                yield Reader(reads)
        finally:
            store.close()

    @contextlib.contextmanager
    def file(self) -> "Iterator[ReadOnlyFile]":
        """The file itself, for its ledger or a copy."""
        from postroom.terminal.cli.readonly import ReadOnlyFile

        file = ReadOnlyFile(self.path)
        try:
            yield file
        finally:
            file.close()

    def _say_when_overdue(self, file: "ReadOnlyFile") -> None:
        with file.look() as reader:
            due = reader.next_due()
        if due is not None and due < self.clock.now() - OVERDUE_S * SECOND:
            self.out.note("nobody has this room open; what has come due since shows with the next claim")


def _erase_files(refs: Sequence[str]) -> None:
    """Of messages of the office in the home, which keeps them where its settings say."""
    from postroom.app.home import Home
    from postroom.office.object_files import open_files

    found = Home.of()
    open_files(found.settings.load(), found.path).forget(refs)


def _make_home(path: Path) -> None:
    """The home folder is for its owner's eyes only."""
    if path.parent == home().absolute() and not path.parent.exists():
        try:
            path.parent.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise StoreReadOnly(path=str(path), reason=error.strerror or str(error)) from error


def _make_file(path: Path) -> None:
    """What is written in it is for its owner's eyes only, from the first moment on."""
    with contextlib.suppress(OSError):  # the store says better what is wrong
        path.touch(mode=0o600)


async def _let_time_pass(room: "Room") -> None:
    """Leases, delays and lives that ran out while nobody had the store open end before anything else."""
    from postroom.kernel import commands as c
    from postroom.kernel.housekeeping.housekeepers import VISIBILITY

    cursor: int | None = 0
    while cursor is not None:
        step = await room.run(c.Housekeep(name=VISIBILITY, cursor=cursor, actor=VISIBILITY))
        cursor = step.cursor
