"""The endpoint of our own command line: for the owner alone, and for methods of services alone."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.api.internal import KIND, PATH
from postroom.errors import ScopeNotFound
from postroom.runtime import wire
from postroom.services import callers
from postroom.services.container import ServiceRequest
from postroom.terminal.cli.remote import remote_services
from tests.api.house import TOKEN, opened

RULE: dict[str, Any] = {"name": "r", "action": {"type": "archive"}}
ME = callers.owner(actor="ann@here")


async def post(http: httpx2.AsyncClient, request: Any, **headers: str) -> httpx2.Response:
    return await http.post(PATH, content=wire.encode(request), headers={"content-type": KIND, **headers})


async def test_services_of_a_server_look_like_those_of_this_process(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, remote_services(house.url, TOKEN) as services:
        made = await services.rules.create(ME, "default", RULE)
        assert made == await house.deps.services.rules.read(ME, "default", made.rule.id)
        assert await services.rules.list_all(ME, "default") == [made]
        with pytest.raises(ScopeNotFound) as refused:
            await services.rules.list_all(ME, "nowhere")
        assert refused.value.data == {"scope": "nowhere"}
        created = [event async for event in house.room.events() if event.type == "rule.created"]
        assert [event.actor for event in created] == ["ann@here"]


@pytest.mark.parametrize(
    "wanted",
    [
        ServiceRequest("rules", "_save", (ME,)),
        ServiceRequest("rules", "_call", (ME,)),
        ServiceRequest("rules", "__init__", ()),
        ServiceRequest("rules", "CREATE", ()),
        ServiceRequest("authentication", "find_holder", ("x",)),
        ServiceRequest("_context", "is_own", ()),
        ServiceRequest("find_method", "__call__", ()),
        ServiceRequest("nothing", "list_all", ()),
        {"service": "rules"},
        [],
    ],
    ids=range(10),
)
async def test_nothing_but_public_methods_of_services_is_called(tmp_path: Path, wanted: Any) -> None:
    async with opened(tmp_path, works=False) as house:
        answer = await post(house.http, wanted)
        assert answer.status_code == 422


async def test_nobody_but_the_owner_calls_it(tmp_path: Path) -> None:
    request = ServiceRequest("rules", "list_all", (ME, "default"))
    async with opened(tmp_path, works=False) as house:
        made = await house.http.post("/v1/api-keys", json={"name": "x", "role": "tenant_admin"})
        key = made.json()["data"]["secret"]
        for token in ("wrong", key):
            async with house.stranger(authorization=f"Bearer {token}") as http:
                assert (await post(http, request)).status_code in (401, 403)
        answer = await house.http.post(PATH, content=wire.encode(request))
        assert answer.status_code == 403, "a form of another page cannot be sent with this type"
