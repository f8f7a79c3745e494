"""What the doctor looks for in an office on a database server, which may have several hosts."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from postroom.app.home import Home
from postroom.app.joining import CLOCK_S
from postroom.app.office_settings import find_unread
from postroom.errors import PostroomError
from postroom.runtime.store_move import read_state
from postroom.settings import Settings
from postroom.terminal.cli.doctor_finding import BAD, OK, WARN, DoctorFinding
from postroom.terminal.cli.output import ago
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.office_context import ProcessFacts


async def find_host_problems(
    at: CommandContext, home: Home, settings: Settings
) -> AsyncIterator[DoctorFinding]:
    """Of this host, and of agents that wait for another."""
    if unread := find_unread(home):
        told = f"{', '.join(unread)} in settings.json are not read: the office's are in the store"
        yield DoctorFinding(WARN, "settings", f"{told}; tidy up: postroom join")
    try:
        ahead_s = time.time() - read_state(at.url).now
        async with at.office() as office:
            processes = (await office.system.status(at.caller)).processes
            agents = await office.agents.list_hosts(at.caller)
    except PostroomError as error:
        yield DoctorFinding(BAD, "hosts", str(error))
        return
    if abs(ahead_s) > CLOCK_S:
        way = "ahead of" if ahead_s > 0 else "behind"
        told = f"this machine's is {abs(ahead_s):,.0f} s {way} the database server's"
        yield DoctorFinding(WARN, "clock", f"{told}; logins, certificates and object stores go by it: set it")
    for finding in _hosts(home, processes, at.clock.now()):
        yield finding
    for agent, host in agents.items():
        if host.is_gone:
            yield DoctorFinding(BAD, f"@{agent}", host.explain())
    hosts = {each.host for each in processes if not each.silent}
    if len(hosts) > 1 and not settings.files.url:
        told = "each host keeps those of messages for itself, and others cannot read them"
        yield DoctorFinding(WARN, "files", f"{told}; name a shared folder or s3://bucket/prefix: files.url")


def _hosts(home: Home, processes: "list[ProcessFacts]", now: int) -> Iterator[DoctorFinding]:
    living = sorted({each.host for each in processes if not each.silent})
    own = f"this one is {home.host}" if home.host else "this one has not joined yet"
    yield DoctorFinding(OK, "hosts", f"{', '.join(living) or 'none runs'}; {own}")
    for each in processes:
        if each.silent:
            told = f"process {each.pid} of {each.host} ({', '.join(each.roles)})"
            yield DoctorFinding(WARN, "hosts", f"{told} is silent, last heard of {ago(each.seen_at, now)}")
    versions = sorted({each.version for each in processes if not each.silent})
    if len(versions) > 1:
        yield DoctorFinding(WARN, "version", f"{', '.join(versions)} run together; upgrade one by one")
