"""Hosts are cut off and rejoin: the others go on meanwhile, and nothing is lost or done twice."""

import time
from pathlib import Path

import pytest

from tests.faults.servers.crew import at_work
from tests.faults.servers.own_servers import OWN, address_of, own_redis
from tests.namespaces import cut_off, network, rejoin

# Longer than a lease, and than it takes to find out.
AWAY_S = 15


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("with_redis", [False, True], ids=["alone", "with Redis"])
@pytest.mark.parametrize("name", OWN)
def test_hosts_that_are_cut_off_and_rejoin_lose_nothing(name: str, tmp_path: Path, with_redis: bool) -> None:
    with network(3) as (here, [server_host, one, other]):
        enter = [("ip", "netns", "exec", host) for host in (server_host, one, other)]
        address = f"{here.rpartition('.')[0]}.10"
        with (
            OWN[name](within=enter[0]) as server,
            own_redis(tmp_path, wanted=with_redis) as redis,
            at_work(tmp_path, server.url, server.tcp_url(address), address_of(redis), enter[1:]) as crew,
        ):
            crew.go_on()
            # The publisher is on the first host: the other's workers are missed by nobody.
            cut_off(other)
            crew.go_on(30)
            time.sleep(AWAY_S)
            rejoin(other)
            crew.go_on()
            cut_off(one)
            time.sleep(AWAY_S)
            rejoin(one)
            crew.go_on()
            for host in (one, other):
                cut_off(host)
            time.sleep(AWAY_S)
            for host in (one, other):
                rejoin(host)
            crew.go_on()
            cut_off(server_host)
            time.sleep(AWAY_S)
            rejoin(server_host)
            crew.go_on()
            print(f"{name}, with Redis: {with_redis}, hosts cut off 5 times: {crew.check()}")
