"""An office on two hosts that share only a database server and an object store works as one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from postroom.channels.delivery_worker import REMARK
from postroom.testing import Attachment, FakeTelegram, Person
from tests.acceptance.hosts.office import (
    OfficeHost,
    object_server,
    pair,
    reachable,
    received,
    settings,
)
from tests.acceptance.office import until
from tests.faults.servers.own_servers import OWN
from tests.namespaces import cut_off, network, rejoin

ANN = Person("1001", "Ann", "ann")
# Longer than a lease, and than it takes to find out.
AWAY_S = 15


@dataclass
class TwoHosts:
    a: OfficeHost
    b: OfficeHost
    telegram: FakeTelegram

    async def all_answered(self, *names: str) -> None:
        """Each once. What broke in the sending, of which its person was told, may be missing."""

        def complete() -> bool:
            missing = sum(count == 0 for name in names for count in received(self.telegram, ANN, name))
            return missing <= len(self.telegram.transcript.select(REMARK))

        try:
            await until(complete, within=180)
        except TimeoutError:
            found = {name: received(self.telegram, ANN, name) for name in names}
            raise AssertionError(
                f"{found}\n{self.telegram.transcript}\n{self.a.read_log()[-3000:]}"
            ) from None
        for name in names:
            assert max(received(self.telegram, ANN, name)) == 1, name


@contextlib.asynccontextmanager
async def open_hosts(folder: Path, database: str) -> AsyncIterator[TwoHosts]:
    """The first begins the office; the second joins it with the address and the token."""
    with contextlib.ExitStack() as stack:
        here, names = stack.enter_context(network(3))
        base = here.rpartition(".")[0]
        servers, *addresses = (f"{base}.{10 + number}" for number in range(3))
        server = stack.enter_context(OWN[database](within=("ip", "netns", "exec", names[0])))
        environment = stack.enter_context(object_server(names[0], servers))
        url = server.tcp_url(servers)
        async with FakeTelegram() as telegram, reachable(telegram, here) as telegram_url:
            a, b = (
                OfficeHost(folder / name, namespace, address, environment)
                for name, namespace, address in zip("ab", names[1:], addresses, strict=True)
            )
            for host in (a, b):
                stack.callback(host.end)
            a.home.settings.replace(settings(url, telegram, telegram_url, folder / "a" / "work"))
            a.start("api,worker,housekeeping")
            await a.ready()
            await asyncio.to_thread(b.cli, "join", url, stdin=f"{a.token}\n")
            b.start("api,worker,housekeeping")
            b.start("channels")
            await b.ready(2)
            # The reviewer lives on the second host, the others on the first.
            await asyncio.to_thread(b.cli, "agent", "move", "reviewer")
            for agent in ("lead", "coder"):
                await asyncio.to_thread(a.cli, "agent", "move", agent)
            (folder / "a" / "work" / "coder").mkdir(parents=True, exist_ok=True)
            (folder / "a" / "work" / "coder" / "fix.txt").write_text("the fix")
            await pair(a, telegram, ANN)
            yield TwoHosts(a, b, telegram)


async def talk_with_files(hosts: TwoHosts) -> None:
    """One comes in at the second host, is read on the first and given back by the second; one is made on the
    first, and leaves from the second."""
    plan = Attachment("plan.txt", b"the plan", "text/plain")
    await hosts.telegram.write(ANN, "@dev file f1", files=[plan])
    await hosts.telegram.write(ANN, "@dev login a1")
    await hosts.all_answered("a1")
    transcript = hosts.telegram.transcript

    def sent() -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for delivery in transcript.deliveries:
            for each in delivery.attachments:
                found.setdefault(each.name.rpartition("_")[2], []).append(each.content)
        return found

    await until(lambda: len(sent()) == 2, within=120)
    assert sent() == {"plan.txt": [b"the plan"], "fix.txt": [b"the fix"]}
    for host in (hosts.a, hosts.b):
        assert b"the plan" in host.copies("plan.txt"), "each has fetched it to its own disk"
        assert set(host.copies("fix.txt")) <= {b"the fix"}
    assert hosts.b.copies("fix.txt")


async def change_settings(hosts: TwoHosts) -> None:
    """On the first host, by a command; on the second they hold for the agent that lives there."""
    await asyncio.to_thread(hosts.a.cli, "settings", "set", "replies.signature", "false")
    found = await asyncio.to_thread(hosts.b.json, "settings", "get", "replies.signature")
    assert found == {"replies.signature": False}
    for count in range(50):
        # Which settings a turn has, it has from its beginning.
        await hosts.telegram.write(ANN, f"@reviewer read s{count}")
        answer = f"Read s{count}."
        await until(lambda answer=answer: hosts.telegram.transcript.select(answer, chat=ANN.id), within=120)
        [said] = hosts.telegram.transcript.select(answer, chat=ANN.id)
        if "[reviewer]" not in said.text:
            return
    raise AssertionError("the second host has not heard of it")


async def log_in(hosts: TwoHosts) -> None:
    """With a link that the first host has made, at the second."""
    code = (await asyncio.to_thread(hosts.a.cli, "login")).stdout.strip().partition("code=")[2]
    async with httpx2.AsyncClient(timeout=60) as http:
        entered = await http.get(f"{hosts.b.url}/login?code={code}")
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
        for host in (hosts.a, hosts.b):
            assert (await http.get(f"{host.url}/api/session", headers=cookie)).status_code == 200
        [session] = (await http.get(f"{hosts.a.url}/api/sessions", headers=hosts.a.headers)).json()[
            "sessions"
        ]
        await http.delete(f"{hosts.b.url}/api/sessions/{session['id']}", headers=hosts.b.headers)
        for host in (hosts.a, hosts.b):
            assert (await http.get(f"{host.url}/api/session", headers=cookie)).status_code == 401


async def test_two_hosts_that_share_nothing_but_the_servers_are_one_office(tmp_path: Path) -> None:
    async with open_hosts(tmp_path, "postgres") as hosts:
        await talk_with_files(hosts)
        await change_settings(hosts)
        await log_in(hosts)
        status = await asyncio.to_thread(hosts.a.json, "status")
        assert {each["host"] for each in status["elsewhere"]} == {hosts.b.home.host}
        agents = await asyncio.to_thread(hosts.b.json, "agent", "list")
        assert {name: each["host"] for name, each in agents.items()} == {
            "lead": hosts.a.home.host,
            "coder": hosts.a.home.host,
            "reviewer": hosts.b.home.host,
        }
        stored = await asyncio.to_thread(hosts.b.cli, "ledger", "verify")
        assert stored.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("database", OWN)
async def test_a_host_that_is_cut_off_in_the_middle_of_a_conversation_and_rejoins_loses_nothing(
    tmp_path: Path, database: str
) -> None:
    """The first has the agent that is at work, and then the second, which speaks with Telegram."""
    async with open_hosts(tmp_path, database) as hosts:
        await talk_with_files(hosts)
        telegram = hosts.telegram
        await telegram.write(ANN, "@dev login a2")
        await until(lambda: received(telegram, ANN, "a2")[0], within=120)
        cut_off(hosts.a.namespace)
        # The other host goes on meanwhile, with its own agent.
        await telegram.write(ANN, "@reviewer read b1")
        await until(lambda: received(telegram, ANN, "b1")[2], within=120)
        await asyncio.sleep(AWAY_S)
        assert received(telegram, ANN, "a2")[1] == 0, "its agent waits for its host"
        rejoin(hosts.a.namespace)
        await hosts.all_answered("a2")
        await telegram.write(ANN, "@dev login a3")
        await until(lambda: received(telegram, ANN, "a3")[0], within=120)
        cut_off(hosts.b.namespace)
        await asyncio.sleep(AWAY_S)
        rejoin(hosts.b.namespace)
        await hosts.all_answered("a3")
        await change_settings(hosts)
        assert received(telegram, ANN, "b1") == [0, 0, 1, 0]
        assert (await asyncio.to_thread(hosts.a.cli, "ledger", "verify")).returncode == 0
        for host in (hosts.a, hosts.b):
            assert telegram.token not in host.read_log()
