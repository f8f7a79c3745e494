"""What this host is called in an office on a database server. It is the home folder that has the name:
machines that see one home are one host, and have the same workspaces.
"""

import re
import secrets
import socket
from itertools import count

import msgspec

from postroom.app.home import Home
from postroom.errors import DocumentChanged
from postroom.kernel import commands as c
from postroom.kernel.access.keys import NOBODY
from postroom.kernel.model import Document
from postroom.runtime import SyncRoom
from postroom.services.agent_hosts import HOST
from postroom.settings import durable

PATIENCE_S = 10.0
MOST_CHARS = 60


class HostIdentity(msgspec.Struct, frozen=True):
    """`id` tells two homes apart that would have the same name."""

    id: str
    name: str


def _find_identity(home: Home) -> HostIdentity | None:
    try:
        return msgspec.json.decode(home.host_file.read_bytes(), type=HostIdentity)
    except (OSError, msgspec.DecodeError):
        return None


def name_host(home: Home, room: SyncRoom) -> str:
    """The name under which the office knows this home: the machine's, with a number if that is taken."""
    with durable.locked(home.host_file, PATIENCE_S):
        before = _find_identity(home)
        named = _register(room, before or HostIdentity(secrets.token_hex(8), _machine_name()))
        if named != before:
            durable.replace(home.host_file, msgspec.json.encode(named))
    return named.name


def _machine_name() -> str:
    short = socket.gethostname().partition(".")[0].lower()
    return re.sub(r"[^a-z0-9-]", "-", short)[:MOST_CHARS].strip("-") or "host"


def _register(room: SyncRoom, known: HostIdentity) -> HostIdentity:
    for number in count(1):
        name = known.name if number == 1 else f"{known.name}-{number}"
        found = _find(room, name)
        if found is None:
            command = c.PutDocument(
                kind=HOST,
                key=name,
                data={"id": known.id},
                expect=0,
                history=False,
                tenant=NOBODY,
                actor=room.actor,
            )
            try:
                room.run(command)
            except DocumentChanged:
                found = _find(room, name)
        if found is None or found.data.get("id") == known.id:
            return HostIdentity(known.id, name)
    raise AssertionError("unreachable")


def _find(room: SyncRoom, name: str) -> Document | None:
    found = room.look(lambda reader: reader.document(NOBODY, HOST, name))
    return None if found is None or found.gone else found
