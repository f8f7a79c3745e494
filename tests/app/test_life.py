"""The house starts, says where it is, stops, comes back, and leaves nothing behind that keeps it from it."""

import functools
import json
import re
import stat
import time
from pathlib import Path

import httpx2

from postroom.app.roles import running
from tests.app.house_process import HouseProcess

get = functools.partial(httpx2.get, timeout=60)


def test_it_starts_tells_its_address_and_stops(house: HouseProcess) -> None:
    started = house.cli("start")
    assert re.fullmatch(r"postroom ready on http://127\.0\.0\.1:\d+\n", started.stdout)
    assert stat.S_IMODE(house.home.token.stat().st_mode) == 0o600
    answer = get(f"{house.url}/api/status", headers=house.headers)
    assert answer.json()["server"]["port"] == int(house.url.rpartition(":")[2])
    assert get(f"{house.url}/healthz").json() == {"ok": True}
    again = house.cli("start", check=False)
    assert again.returncode == 5
    assert "runs already" in again.stderr
    shown = json.loads(house.cli("status", "--json").stdout)
    assert shown["running"] is True
    assert shown["agents"] == ["coder"]
    house.cli("stop")
    assert not running(house.home.run)
    assert house.cli("status", check=False).returncode == 4
    assert "does not run" in house.cli("stop").stdout


def test_restart_comes_back_as_another_process_and_over_http_as_the_same(house: HouseProcess) -> None:
    first = house.start().pid
    house.cli("restart")
    second = house.now().pid
    assert second != first
    url, started_at = house.url, house.now().started_at
    assert httpx2.post(f"{url}/api/services/restart", headers=house.headers, timeout=60).json()["ok"] is True
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = running(house.home.run)
        if found and found[0].started_at > started_at and found[0].url:
            break
        time.sleep(0.02)
    assert house.now().pid == second
    assert get(f"{house.url}/api/status", headers=house.headers).status_code == 200


def test_what_a_killed_process_left_does_not_keep_the_next_from_starting(house: HouseProcess) -> None:
    house.start()
    house.kill()
    assert (house.home.run / "api.lock").exists()
    house.start()
    assert get(f"{house.url}/healthz").status_code == 200


def test_a_port_that_is_taken_is_told_plainly(house: HouseProcess, tmp_path: Path) -> None:
    house.start()
    port = int(house.url.rpartition(":")[2])
    other = HouseProcess(tmp_path / "other", api={"port": port})
    failed = other.cli("start", check=False)
    assert failed.returncode == 6
    assert f"port {port} is in use" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_other_machines_are_let_in_only_when_somebody_says_so(tmp_path: Path) -> None:
    open_house = HouseProcess(tmp_path, api={"port": 0, "host": "0.0.0.0"})
    failed = open_house.cli("start", check=False)
    assert failed.returncode != 0
    assert "api.remote" in failed.stderr
    document = open_house.home.settings.document()
    open_house.home.settings.merge({"api": {**document["api"], "remote": True, "auth": "loopback"}})
    failed = open_house.cli("start", check=False)
    assert failed.returncode != 0
    assert "token" in failed.stderr
    open_house.home.settings.merge({"api": {**document["api"], "remote": True}})
    try:
        open_house.start()
        assert get(f"{open_house.url}/api/status").status_code == 401
        assert get(f"{open_house.url}/api/status", headers=open_house.headers).status_code == 200
    finally:
        open_house.end()


def test_the_command_alone_opens_the_house_and_explains_itself(tmp_path: Path) -> None:
    fresh = HouseProcess(tmp_path)
    for file in fresh.home.path.iterdir():
        if file.is_file():
            file.unlink()
    fresh.env["POSTROOM_API_PORT"] = "0"
    try:
        done = fresh.cli()
        assert done.stdout.startswith("postroom ready on http://127.0.0.1:")
        link = re.search(r"http://127\.0\.0\.1:\d+/login\?code=\S+", done.stdout)
        assert link, done.stdout
        assert "postroom send" in done.stdout
        with httpx2.Client(timeout=60) as browser:
            assert browser.get(link[0]).status_code == 303
            assert browser.get(f"{fresh.url}/").status_code == 200
        settings = fresh.home.settings.load()
        assert list(settings.agents) == ["assistant"]
        assert stat.S_IMODE(fresh.home.path.stat().st_mode) == 0o700
        second = fresh.cli()
        assert "ready on" in second.stdout
        assert "first start" not in second.stdout
    finally:
        fresh.end()


def test_roles_are_taken_once(house: HouseProcess) -> None:
    refused = house.cli("start", "--roles", "api,cook", check=False)
    assert refused.returncode == 2
    assert "worker" in refused.stderr
    house.cli("start", "--roles", "api,worker")
    assert set(house.now().roles) == {"api", "worker"}
    taken = house.cli("start", "--roles", "worker", check=False)
    assert taken.returncode == 5
    pid = house.now().pid
    for words in ([], ["--foreground"]):
        apart = house.cli("start", "--roles", "housekeeping", *words, check=False)
        assert apart.returncode == 6
        assert f"process {pid} has it" in apart.stderr
        assert "postroom start --roles api,housekeeping,worker" in apart.stderr
        assert len(apart.stderr.splitlines()) == 1
    assert house.now().pid == pid


def test_neither_log_nor_ledger_holds_a_secret_or_anything_a_terminal_obeys(tmp_path: Path) -> None:
    secret, later = "sk-very-secret-0123456789", "set-while-the-house-was-open"
    house = HouseProcess(tmp_path, models={"anthropic": {"api_key": secret}})
    try:
        house.start()
        token = house.home.token.read_text().strip()
        models = {"anthropic": {"api_key": secret}, "openai": {"api_key": later}}
        changed = httpx2.put(
            f"{house.url}/api/settings", headers=house.headers, json={"models": models}, timeout=60
        )
        assert changed.status_code == 200
        for path in ("/api/%1b[31mred", f"/api/{token}", f"/api/{secret}", f"/api/{later}"):
            get(f"{house.url}{path}", headers={"authorization": "Bearer wrong-wrong-wrong-wrong"})
        house.cli("stop")
    finally:
        house.end()
    log = (house.home.logs / "postroom.log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    assert any("refused" in line["text"] for line in lines)
    ledger = b"".join(file.read_bytes() for file in house.home.path.glob("postroom.db*"))
    assert b"api.refused" in ledger
    for word in (token, secret, later):
        assert word not in log
        assert word.encode() not in ledger
    assert "\x1b" not in log
    shown = house.cli("logs").stdout
    assert "\x1b" not in shown
    assert "[INFO] ready" in shown
    assert stat.S_IMODE((house.home.logs / "postroom.log").stat().st_mode) == 0o600
