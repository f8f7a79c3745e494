"""A receiver on the owner's own network, as the settings allow it."""

from pathlib import Path

import pytest

from postroom.client import Client, ServiceError
from tests.api.queue.receiver import receiving
from tests.app.house_process import HouseProcess
from tests.webhooks.authority import Authority


async def test_webhooks_lead_into_networks_that_the_settings_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    house = HouseProcess(tmp_path, webhooks={"ca_file": str(authority.file())})
    try:
        house.start()
        token = house.home.token.read_text().strip()
        async with receiving() as plain, receiving(tls=authority.showing("127.0.0.1")) as secure:
            with Client(house.url, token) as owner:
                for receiver in (plain, secure):
                    with pytest.raises(ServiceError, match="WEBHOOK_ADDRESS"):
                        owner.request("POST", "/webhooks", {"url": receiver.url})
                house.cli("settings", "set", "webhooks.networks", '["127.0.0.1"]')
                for receiver in (plain, secure):
                    made = owner.request("POST", "/webhooks", {"url": receiver.url})["data"]
                    owner.request("POST", f"/webhooks/{made['id']}/test")
                    [event] = await receiver.events(1)
                    assert event["payload"] == {"webhook_id": made["id"]}
    finally:
        house.end()
