"""Two API processes on one database: what a key may ask for in a minute holds for both together."""

import asyncio
from pathlib import Path

import httpx2

from postroom.services.rates import Rates
from postroom.testing import FakeTelegram
from tests.acceptance.processes.office import OfficeProcesses
from tests.conftest import postgres_url

TOO_MANY = 429


async def test_a_key_that_used_up_its_minute_at_one_process_is_refused_by_the_other(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        office = OfficeProcesses(tmp_path, postgres_url(tmp_path), telegram)
        try:
            office.start("api-1")
            await office.ready("api-1")
            office.start("api-2")
            await office.ready("api-2")
            async with httpx2.AsyncClient(timeout=60) as http:
                first, second = (f"{office.url(name)}/v1" for name in ("api-1", "api-2"))
                made = await http.post(
                    f"{first}/api-keys", json={"name": "k", "permissions": ["view"]}, headers=office.headers
                )
                key = {"authorization": f"Bearer {made.json()['data']['secret']}"}
                most = Rates().key
                answers = [await http.get(f"{first}/scopes", headers=key) for _ in range(most + 1)]
                assert [answer.status_code for answer in answers] == [200] * most + [TOO_MANY]
                taken = 0
                while (await http.get(f"{second}/scopes", headers=key)).status_code != TOO_MANY:
                    taken += 1
                    assert taken < most, "it counts for itself"
                    await asyncio.sleep(0.5)
        finally:
            office.end()
