"""An office on a PostgreSQL server: commands reach its store through the office that runs."""

import json
import os
from pathlib import Path

import pytest

from tests.app.house_process import HouseProcess
from tests.conftest import postgres_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


def test_commands_work_on_the_server_while_the_office_runs_and_are_refused_after(
    house: HouseProcess, url: str
) -> None:
    settings = house.home.path / "settings.json"
    document = json.loads(settings.read_text())
    settings.write_text(json.dumps({**document, "store": {"url": url}}))
    house.start()
    house.cli("queue", "create", "jobs")
    made = json.loads(house.cli("publish", "jobs", '{"n": 1}', "--json").stdout)
    [claimed] = json.loads(house.cli("claim", "jobs", "--lease", "1h", "--json").stdout)
    assert claimed["id"] == made["id"]
    house.cli("complete", claimed["id"], claimed["claim_token"])
    assert json.loads(house.cli("show", made["id"], "--json").stdout)["state"] == "completed"
    assert "completed" in house.cli("why", made["id"]).stdout
    other = house.cli("queue", "list", "--store", "postgresql://nobody@127.0.0.1:9/none", check=False)
    assert (other.returncode, "postroom start" in other.stderr) == (2, True), "the office has another store"
    house.cli("stop")
    refused = house.cli("queue", "list", check=False)
    assert (refused.returncode, "postroom start" in refused.stderr) == (2, True)
    assert not os.path.exists(house.home.path / "postroom.db")
