"""`postroom store`, and what other commands say of a store on a server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.house_process import HouseProcess
from tests.conftest import mariadb_url, postgres_url


@pytest.mark.parametrize("server", [postgres_url, mariadb_url], ids=["postgres", "mariadb"])
def test_an_office_on_sqlite_moves_to_a_server_and_back_and_answers_there(
    house: HouseProcess, tmp_path: Path, server: Callable[[Path], str]
) -> None:
    url = server(tmp_path)
    house.start()
    house.cli("queue", "create", "jobs")
    made = json.loads(house.cli("publish", "jobs", '{"n": 1}', "--json").stdout)
    file = str(house.home.path / "postroom.db")
    refused = house.cli("store", "move", file, url, check=False)
    assert refused.returncode == 6, "the office has it open"
    house.cli("stop")
    moved = json.loads(house.cli("store", "move", file, url, "--json").stdout)
    assert moved["ok"]
    assert moved["rows"]["messages"] >= 1
    settings = house.home.path / "settings.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "store": {"url": url}}))
    info = json.loads(house.cli("store", "info", "--json").stdout)
    assert info["rows"] == {**info["rows"], **moved["rows"], "figures": info["rows"]["figures"]}
    verified = json.loads(house.cli("ledger", "verify", "--json").stdout)
    assert (verified["ok"], verified["head"]) == (True, moved["head"])
    assert json.loads(house.cli("ledger", "head", "--json").stdout) == moved["head"]
    house.start()
    [claimed] = json.loads(house.cli("claim", "jobs", "--lease", "1h", "--json").stdout)
    assert claimed["id"] == made["id"]
    house.cli("complete", claimed["id"], claimed["claim_token"])
    findings = house.cli("doctor", "--json", check=False).stdout
    assert "the office runs on it" in findings
    assert "power cut" in findings
    house.cli("settings", "set", "guards.hops", "7")
    house.cli("settings", "set", "models.openai.api_key", "sk-a-secret-of-mine")
    house.cli("stop")
    assert "sk-a-secret" not in settings.read_text(), "it is in the store"
    back = tmp_path / "back.db"
    told = house.cli("store", "move", url, f"sqlite:///{back}").stdout
    assert "each compared" in told
    assert f"The settings of the office are in {settings}" in told
    house.cli("settings", "set", "store.url", f"sqlite:///{back}")
    assert json.loads(settings.read_text())["models"] == {"openai": {"api_key": "sk-a-secret-of-mine"}}
    house.start()
    assert json.loads(house.cli("settings", "get", "guards.hops", "--json").stdout) == {"guards.hops": 7}
    house.cli("settings", "set", "guards.hops", "8")
    house.cli("stop")
    assert json.loads(house.cli("ledger", "verify", "--json").stdout)["ok"]
    # And once more to a server: what was set on the file goes there.
    again = server(tmp_path / "again")
    house.cli("store", "move", str(back), again)
    house.cli("settings", "set", "store.url", again)
    house.start()
    assert json.loads(house.cli("settings", "get", "guards.hops", "--json").stdout) == {"guards.hops": 8}
    house.cli("stop")
    shown = json.loads(house.cli("show", made["id"], "--json", "--store", str(back)).stdout)
    assert shown["state"] == "completed"
