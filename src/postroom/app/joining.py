"""A host joins an office on a database server, with the address of the store and the owner's token.

Everything is checked before anything is written; what a home held before is kept beside it.
"""

import os
import time
from collections.abc import Mapping, Sequence

import msgspec

from postroom.api.auth.owner_token import check_token
from postroom.app import first_run
from postroom.app.home import Home
from postroom.app.host_name import name_host
from postroom.app.process_signs import list_processes
from postroom.app.roles import AlreadyRunning, running
from postroom.app.store import describe_store, is_server, store_digest
from postroom.clock import SystemClock, file_stamp
from postroom.errors import Conflict, InvalidField, NotFound, StoreTooNew
from postroom.runtime import open_sync
from postroom.runtime.store_move import read_state
from postroom.services.office_context import ProcessFacts
from postroom.services.shared_settings import open_key, read_sealed
from postroom.settings import durable
from postroom.settings.host_part import combine, split
from postroom.settings.secrets import reveal

# Logins end, certificates are checked and objects are fetched by the clock of the machine.
CLOCK_S = 30.0


class NoOfficeThere(NotFound):
    """There is no office on {store}. One begins where its settings are: postroom settings set store.url URL,
    then postroom start"""

    code = "NO_OFFICE"


class OfficeOlder(Conflict):
    """The office on {store} is of an older version (schema {found}, here {known}). Nothing was changed. Bring
    its hosts to this version first, or install theirs here."""

    code = "OFFICE_OLDER"


class JoinedOffice(msgspec.Struct, frozen=True, kw_only=True):
    """`clock_s`: so far this machine's clock is ahead of the server's. `kept` are files of what was there
    before."""

    host: str
    store: str
    processes: list[ProcessFacts]
    clock_s: float
    kept: Sequence[str] = ()


def join_office(
    home: Home, url: str, token: str, *, redis: str | None = None, environment: Mapping[str, str] = os.environ
) -> JoinedOffice:
    """`url` and `redis` may be handles, like `env:NAME`; then these are written."""
    check_token(token, "what you gave", "Take the one of the office: the file token in the home of a host.")
    address = reveal(url, environment)
    if not is_server(address):
        raise InvalidField("URL", "must be that of a database server, postgresql://… or mariadb://…")
    for found in running(home.run):
        if found.store_digest != store_digest(address):
            raise AlreadyRunning(pid=found.pid, role=", ".join(found.roles))
    place, state = describe_store(address), read_state(address)
    if state.schema > state.newest:
        raise StoreTooNew(path=place, found=state.schema, known=state.newest)
    if not state.schema:
        raise NoOfficeThere(store=place)
    if state.schema < state.newest:
        raise OfficeOlder(store=place, found=state.schema, known=state.newest)
    clock_s = time.time() - state.now
    with open_sync(address, actor="join", housekeeping=False) as room:
        office = room.look(read_sealed)
        if office is None:
            raise NoOfficeThere(store=place)
        open_key(office[1], token)
        home.make()
        kept = _write(home, url, redis, token, environment)
        return JoinedOffice(
            host=name_host(home, room),
            store=place,
            processes=list_processes(room, SystemClock()),
            clock_s=clock_s,
            kept=kept,
        )


def _write(home: Home, url: str, redis: str | None, token: str, environment: Mapping[str, str]) -> list[str]:
    file, kept = home.settings, []
    before = file.document()
    host, office = split(before)
    host = combine(host, {}) or split(first_run.defaults(environment))[0]
    host["store"] = {"url": url, **({"redis": redis} if redis else {})}
    host.setdefault("workspace", split(first_run.defaults(environment))[0]["workspace"])
    stamp = f"before-join-{file_stamp(SystemClock().now())}"
    if office:
        kept.append(str(durable.keep_copy(file.path, file.path.read_bytes(), stamp)))
    if home.token.exists() and home.token.read_text("utf-8", "replace").strip() != token:
        kept.append(str(durable.keep_copy(home.token, home.token.read_bytes(), stamp)))
    # The token first: without it, the settings lead to a store that refuses this host.
    durable.replace(home.token, f"{token}\n".encode())
    file.replace(host)
    return kept
