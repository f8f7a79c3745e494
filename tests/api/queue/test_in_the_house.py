"""The service where it lives: behind the doorkeeper of a real house, across a restart."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from postroom.client import Client, ServiceError
from tests.app.house_process import HouseProcess


@pytest.fixture
def house(tmp_path: Path) -> Iterator[HouseProcess]:
    house = HouseProcess(tmp_path)
    yield house
    house.end()


def test_a_key_works_behind_the_doorkeeper_and_survives_a_restart(house: HouseProcess) -> None:
    house.start()
    token = house.home.token.read_text().strip()
    with Client(house.url, token) as owner:
        owner.create_scope("shop")
        owner.create_queue("shop/orders", visibility_timeout_s=3600)
        key = owner.create_key("worker", role="tenant_admin").secret
    assert key
    with Client(house.url, key) as queue:
        queue.publish("shop/orders", {"n": 1}, idempotency_key="a")
        [message] = queue.claim("shop/orders")
        with pytest.raises(ServiceError, match="SCOPE_NOT_FOUND"):
            queue.queues("office")
    office = httpx2.get(f"{house.url}/api/agents", headers={"authorization": f"Bearer {key}"}, timeout=60)
    assert office.status_code == 403, "the office is not for keys"
    house.cli("stop")
    house.start()
    with Client(house.url, key) as queue:
        assert queue.complete(message, "done").state == "completed", "a claim outlives the house"
        assert queue.publish("shop/orders", {"n": 1}, idempotency_key="a").id == message.id
    with Client(house.url, "prk_nonsense") as queue, pytest.raises(ServiceError, match="AUTH_TOKEN_INVALID"):
        queue.scopes()
    said = house.cli("key", "create", "x", "--permission", "view", "--scope", "shop").stdout.split()
    with Client(house.url, said[-1]) as queue:
        assert [scope.slug for scope in queue.scopes().items] == ["shop"], "made while the house is open"
    house.cli("erase", "body.n", "1", "--scope", "shop", "--yes")
    spec = '{"sections": [{"type": "decision", "options": ["yes", "no"]}]}'
    asked = house.cli("publish", "shop/orders", "2", "--hitl-spec", spec, "--json").stdout
    house.cli("review", "answer", json.loads(asked)["id"], "decision=yes")


def test_what_no_route_knows_is_told_in_the_same_envelope(house: HouseProcess) -> None:
    house.start()
    headers = {"authorization": f"Bearer {house.home.token.read_text().strip()}"}
    for method, path, status in (
        ("GET", "/v1/nope", 404),
        ("PATCH", "/v1/scopes", 405),
        ("GET", "/v1/modules/scaiqueue/nope", 404),
    ):
        answer = httpx2.request(method, house.url + path, headers=headers, timeout=60)
        assert answer.status_code == status
        told = answer.json()
        assert (told["status"], set(told["error"]), set(told["meta"])) == (
            "error",
            {"code", "message"},
            {"request_id"},
        )
