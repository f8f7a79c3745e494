"""A house that runs stays open whatever is asked of it, and does for commands what they would do alone."""

import json

import httpx2

from tests.app.house_process import HouseProcess


def test_housekeepers_run_in_the_house_that_runs(house: HouseProcess) -> None:
    house.start()
    house.cli("queue", "create", "jobs", "--ttl", "0.001")
    house.cli("publish", "jobs", "1")
    done = house.cli("housekeepers", "--run", "all")
    assert done.stderr == ""
    assert "failed" not in done.stdout
    kept = json.loads(house.cli("housekeepers", "--json").stdout)
    assert {each["last_status"] for each in kept} == {"ok"}
    assert all(each["runs"] for each in kept)


def test_a_house_that_could_not_come_back_does_not_close(house: HouseProcess) -> None:
    before = house.start()
    good = house.home.settings.path.read_text()
    house.home.settings.path.write_text("no settings at all")
    refused = house.cli("restart", check=False)
    assert refused.returncode == 6
    assert "goes on as it was" in refused.stderr
    over_http = httpx2.post(f"{house.url}/api/services/restart", headers=house.headers, timeout=60)
    assert over_http.status_code == 409
    assert over_http.json()["code"] == "NOT_RESTARTED"
    assert "I have read your message" in house.cli("send", "@coder hello", "--wait").stdout
    assert json.loads(house.cli("status", "--json").stdout)["running"] is True
    house.home.settings.path.write_text(good)
    house.env["POSTROOM_HOST"] = "0.0.0.0"
    assert "api.remote" in house.cli("restart", check=False).stderr
    assert house.now().pid == before.pid
    del house.env["POSTROOM_HOST"]
    house.cli("restart")
    assert house.now().pid != before.pid
