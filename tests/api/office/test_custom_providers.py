"""Servers of one's own: through a program, or spoken to directly."""

from pathlib import Path

from postroom.clock import SystemClock
from postroom.providers.anthropic_api import AnthropicApi
from postroom.providers.openai_api import OpenAIApi
from postroom.services.provider_registry import registry_for
from tests.api.house import House

LAB = {"name": "Lab", "harness": "api", "base_url": "http://127.0.0.1:9/v1", "api_key": "lab-key-0123456789"}


async def test_a_server_is_spoken_to_directly_in_the_api_it_speaks(house: House, tmp_path: Path) -> None:
    for wire, kind in ((None, OpenAIApi), ("anthropic", AnthropicApi)):
        body = LAB if wire is None else {**LAB, "wire": wire}
        assert (await house.http.put("/api/custom-providers/lab", json=body)).status_code == 200
        registry = registry_for(house.settings.load(), tmp_path, SystemClock(), {})
        assert isinstance(registry.get("custom:lab"), kind)
    wrong = await house.http.put("/api/custom-providers/lab", json={**LAB, "wire": "telex"})
    assert wrong.status_code == 422
    assert "custom_providers.lab.wire" in wrong.json()["error"]


async def test_a_client_that_knows_less_takes_nothing_away(house: House) -> None:
    """Such as one that writes back what it was shown, with the key masked."""
    await house.http.put("/api/custom-providers/lab", json={**LAB, "wire": "anthropic"})

    def note(document: dict[str, dict[str, dict[str, str]]]) -> None:
        document["custom_providers"]["lab"]["note"] = "in the cellar"

    house.settings.update(note)
    shown = (await house.http.get("/api/custom-providers")).json()["lab"]
    known = {name: shown[name] for name in LAB}
    await house.http.put("/api/custom-providers/lab", json={**known, "name": "Laboratory"})
    kept = house.settings.document()["custom_providers"]["lab"]
    assert kept == {**LAB, "name": "Laboratory", "wire": "anthropic", "note": "in the cellar"}
