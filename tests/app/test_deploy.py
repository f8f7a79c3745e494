"""What is in deploy/ fits the program: its commands, ports, paths, times, and the answer it is probed by."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from postroom.app.roles import ProcessRole
from postroom.app.server_process import GRACE_S
from postroom.settings.sections import ApiSettings
from tests.app.house_process import HouseProcess

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PORT = ApiSettings().port


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(DEPLOY / "postroom.service")
    return parser


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile, lines that are continued put together."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["postroom"]


def options(*command: str) -> str:
    shown = subprocess.run(
        [sys.executable, "-m", "postroom", *command, "--help"], capture_output=True, text=True, check=True
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout)


def test_the_unit_starts_what_there_is_and_waits_for_turns_in_hand() -> None:
    service = unit()["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/postroom")
    assert words == ["start", "--foreground"]
    assert "--foreground" in options("start")
    assert float(service["TimeoutStopSec"]) > GRACE_S + 10


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "postroom.service"
    program = Path(sys.executable).with_name("postroom")
    copy.write_text((DEPLOY / "postroom.service").read_text().replace("%h/.local/bin/postroom", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_the_system_unit_is_understood_and_closed_to_a_degree_that_is_measured(tmp_path: Path) -> None:
    copy = tmp_path / "postroom-system.service"
    program = Path(sys.executable).with_name("postroom")
    text = (DEPLOY / "postroom-system.service").read_text()
    assert "ExecStart=/opt/postroom/bin/postroom start --foreground" in text
    copy.write_text(text.replace("/opt/postroom/bin/postroom", str(program)))
    for words in (["verify"], ["security", "--offline=true", "--threshold=35"]):
        done = subprocess.run(
            ["systemd-analyze", *words, str(copy)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_bill_of_materials_names_every_pin_with_its_hashes(tmp_path: Path) -> None:
    script = (ROOT / "scripts/sbom").read_text()
    words = shlex.split(script[script.index("requirements requirements/run.txt") :].replace("\\\n", ""))
    bill = tmp_path / "bill.json"
    words[-1] = str(bill)
    program = str(Path(sys.executable).with_name("cyclonedx-py"))
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([program, *words], cwd=ROOT, env=env, check=True, capture_output=True)
    parts = json.loads(bill.read_text())["components"]
    hashed = {part["name"] for part in parts if part["externalReferences"][0]["hashes"]}
    pins = re.findall(r"^([A-Za-z0-9._-]+)(?:\[\S+\])?==", (ROOT / "requirements/run.txt").read_text(), re.M)
    assert len(pins) > 50
    assert set(pins) <= hashed


def test_the_image_is_made_of_files_that_exist_and_serves_where_it_is_probed() -> None:
    found = instructions()
    copied = [rest.split()[:-1] for word, rest in found if word == "COPY" and "--from" not in rest]
    names = [name for names in copied for name in names]
    for name in names:
        assert (ROOT / name).exists(), name
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for name in names:
        assert f"!{name}" in ignored, f"{name} is left out of the build"
    for _, rest in found:
        for file in re.findall(r"requirements/\S+", rest):
            assert (ROOT / file).exists(), file
    told = dict(found)
    assert told["EXPOSE"] == str(PORT)
    assert told["USER"] == "postroom"
    assert f"127.0.0.1:{PORT}/healthz" in told["HEALTHCHECK"]
    assert told["ENTRYPOINT"] == '["postroom", "start", "--foreground"]'
    base = {rest.split()[0] for word, rest in found if word == "FROM"}
    assert base == {"${BASE}"}
    assert re.fullmatch(r"BASE=python:3\.\d+-slim@sha256:[0-9a-f]{64}", told["ARG"]), (
        "the same base each time"
    )


def test_the_composition_opens_the_door_to_this_machine_only_and_keeps_the_home() -> None:
    service = compose()
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    volume = dict(instructions())["VOLUME"]
    assert service["volumes"] == [f"home:{volume}"]
    assert float(service["stop_grace_period"].removesuffix("s")) > GRACE_S + 10
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    comment = (DEPLOY / "compose.yaml").read_text()
    assert "exec postroom postroom login" in comment
    assert "login" in options()


def test_each_profile_starts_an_office_on_its_store_and_the_servers_it_needs() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    document = yaml.safe_load(text)
    services = document["services"]
    profiles = {name: service["profiles"] for name, service in services.items()}
    assert profiles == {
        "postroom": ["sqlite"],
        "postroom-postgres": ["postgres"],
        "postroom-mariadb": ["mariadb-redis"],
        "postroom-host": ["host"],
        "postgres": ["postgres"],
        "mariadb": ["mariadb-redis"],
        "redis": ["mariadb-redis"],
    }
    assert set(re.findall(r"--profile ([\w-]+)", text)) == {each for [each] in profiles.values()}
    for name, service in services.items():
        addresses = (service.get("environment") or {}).values()
        for scheme, host in re.findall(
            r"(\w+)://(?:[^@ ]*@)?([a-z]+)[:/]", " ".join(filter(None, addresses))
        ):
            assert profiles[host] == profiles[name], f"{scheme}://{host}"
            assert host in service["depends_on"]
        assert name.startswith("postroom") == ("ports" in service), "nobody outside reaches a server"
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in document["volumes"]
        for condition in (service.get("depends_on") or {}).items():
            assert condition[1]["condition"] != "service_healthy" or "healthcheck" in services[condition[0]]
    # A further host is told by the two variables that `postroom join` would write down.
    joining = services["postroom-host"]
    assert {"POSTROOM_STORE", "POSTROOM_TOKEN"} <= set(joining["environment"])
    assert set(joining["command"][1].split(",")) <= set(ProcessRole)
    assert joining["command"][0] in options("start")


def test_the_environment_of_the_image_opens_a_house_that_needs_a_token(tmp_path: Path) -> None:
    """As the container does, but for the port and the folder."""
    given = dict(instructions())["ENV"]
    environment = dict(pair.split("=", 1) for pair in given.split())
    house = HouseProcess(tmp_path)
    house.env |= {name: value for name, value in environment.items() if name != "POSTROOM_HOME"}
    try:
        house.start()
        port = house.url.rpartition(":")[2]
        assert httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=60).json() == {"ok": True}
        assert httpx2.get(f"http://127.0.0.1:{port}/api/status", timeout=60).status_code == 401
        assert (
            httpx2.get(f"http://127.0.0.1:{port}/api/status", timeout=60, headers=house.headers).status_code
            == 200
        )
    finally:
        house.end()
