"""Which host each agent works on, whether that host is there, and what to do when it is not."""

import msgspec

from postroom.clock import SECOND
from postroom.errors import Conflict, NotFound
from postroom.kernel.access.keys import NOBODY
from postroom.kernel.service_commands import ListProcesses
from postroom.kernel.transitions.processes import KnownProcess
from postroom.office.agent_hosts import AgentHosts
from postroom.office.ports import RoomPort

# A host that has joined the office; its document is made when it does.
HOST = "office_host"
WORKER = "worker"


class AgentElsewhere(Conflict):
    """@{agent} works on the host {host}, and its folder is there. Ask there, or have it work on this one:
    postroom agent move {agent}"""

    code = "AGENT_ELSEWHERE"


class HostNotFound(NotFound):
    """There is no host "{host}" in this office; there are {known}."""

    code = "HOST_NOT_FOUND"


class OneHostOnly(Conflict):
    """This office has no hosts that share out its agents: {reason}."""

    code = "ONE_HOST"


class AgentHost(msgspec.Struct, frozen=True, kw_only=True):
    """So many microseconds ago the host was last heard of; it `is_gone` when it takes no turns."""

    agent: str
    host: str
    silence: int | None = None
    is_gone: bool = False

    def explain(self) -> str:
        """For its owner; nothing while the host is there."""
        if not self.is_gone:
            return ""
        seen = "" if self.silence is None else f" (it was last heard of {_span(self.silence / SECOND)} ago)"
        return (
            f"@{self.agent} works on the host {self.host}, where no worker runs{seen}. Start one there:"
            f" postroom start --roles worker. Or have it work on another host, there:"
            f" postroom agent move {self.agent}"
        )


class MovedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """`before` is the host it worked on; `folder` is where it works, if that is on the host that was asked,
    and `has_folder` whether there is something in it."""

    agent: str
    host: str
    before: str | None
    folder: str | None = None
    has_folder: bool = False


async def list_agent_hosts(room: RoomPort) -> dict[str, AgentHost]:
    """By agent; empty where there is only one host."""
    if not room.is_shared:
        return {}
    hosts = await AgentHosts(room).list_all()
    if not hosts:
        return {}
    processes: list[KnownProcess] = await room.run(ListProcesses())
    return {agent: _describe(agent, host, processes) for agent, host in sorted(hosts.items())}


def _describe(agent: str, host: str, processes: list[KnownProcess]) -> AgentHost:
    own = [each for each in processes if each.data.get("host") == host]
    works = any(WORKER in each.data.get("roles", ()) and not each.is_silent for each in own)
    silence = min((each.age for each in own), default=None)
    return AgentHost(agent=agent, host=host, silence=silence, is_gone=not works)


async def list_hosts(room: RoomPort) -> list[str]:
    """All that have ever joined."""
    found = await room.look(lambda reader: reader.documents(NOBODY, HOST, "", "", 10_000))
    return [each.key for each in found]


def _span(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}s"
    return f"{max(0, seconds):.0f} seconds"
