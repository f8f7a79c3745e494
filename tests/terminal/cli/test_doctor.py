"""The doctor finds what is wrong and what is open, and says what to do."""

import json
import socket
import tarfile
from pathlib import Path

import pytest

import postroom
from postroom.app.home import Home
from postroom.clock import ManualClock, SystemClock
from postroom.providers.bubblewrap import Bubblewrap
from postroom.terminal.cli.store_access import CommandContext
from tests.terminal.cli.runner import Cli


@pytest.fixture
def home(cli: Cli) -> Home:
    home = Home(cli.home)
    home.make()
    return home


def levels(cli: Cli, *words: str) -> dict[str, str]:
    done = cli(*words, "--json")
    return {finding["about"]: finding["level"] for finding in json.loads(done.out)["findings"]}


def test_a_closed_house_has_nothing_open(cli: Cli, home: Home) -> None:
    home.settings.replace({"agents": {"a": {"provider": "script"}}})
    found = levels(cli, "doctor", "--security")
    assert found["address"] == found["token"] == found["origins"] == found["secrets"] == "ok"
    assert "bad" not in found.values()


def test_what_is_open_is_told_without_the_secret_itself(cli: Cli, home: Home) -> None:
    secret = "sk-in-clear-0123456789"
    home.settings.replace(
        {
            "api": {"host": "0.0.0.0", "auth": "loopback", "origins": ["http://127.0.0.1:3000"]},
            "models": {"anthropic": {"api_key": secret}},
        }
    )
    home.path.chmod(0o755)
    done = cli("doctor", "--security")
    assert done.code == 1
    assert secret not in done.out
    assert "models.anthropic.api_key" in done.out
    found = levels(cli, "doctor", "--security")
    assert found["address"] == "bad"
    assert found["token"] == found["origins"] == found["secrets"] == "warn"
    assert found[home.path.name] == "bad"


def test_security_tells_what_keeps_each_agent_apart(
    cli: Cli, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = {mode: {"provider": "anthropic", "sandbox": mode} for mode in ("auto", "required", "off")}
    home.settings.replace({"agents": agents})

    def without(program: str) -> tuple[tuple[()], tuple[str]]:
        return (), (f"{program} is not installed",)

    monkeypatch.setattr("postroom.providers.sandbox.find_confinements", lambda: without("bubblewrap"))
    found = levels(cli, "doctor", "--security")
    assert (found["@auto"], found["@required"], found["@off"]) == ("warn", "bad", "warn")
    text = cli("doctor", "--security").out
    assert "takes no turn: bubblewrap is not installed" in text
    assert "its sandbox is off" in text

    monkeypatch.setattr(
        "postroom.providers.sandbox.find_confinements", lambda: ((Bubblewrap("/usr/bin/bwrap"),), ())
    )
    found = levels(cli, "doctor", "--security")
    assert (found["@auto"], found["@required"], found["@off"]) == ("ok", "ok", "warn")


def test_an_agent_without_its_program_is_found(cli: Cli, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home.path))
    home.settings.replace({"agents": {"a": {"provider": "anthropic"}, "b": {"provider": "script"}}})
    done = cli("doctor")
    assert done.code == 1
    assert "claude" in done.out
    assert levels(cli, "doctor")["@b"] == "ok"


def test_broken_settings_are_a_finding_not_a_crash(cli: Cli, home: Home) -> None:
    (home.path / "settings.json").write_text("nonsense")
    done = cli("doctor")
    assert done.code == 1
    assert "settings" in done.out


def test_a_backup_is_tried_and_put_back(jobs: Cli, tmp_path: Path) -> None:
    jobs.publish("jobs", "1")
    copy = tmp_path / "copy.db"
    jobs.ok("backup", str(copy))
    jobs.publish("jobs", "2")
    tried = jobs.json("restore", str(copy), "--check")
    assert tried["restored"] is False
    assert len(jobs.json("peek", "jobs")) == 2
    kept = jobs.json("restore", str(copy), "--yes")["kept"]
    assert Path(kept).exists()
    assert len(jobs.json("peek", "jobs")) == 1


def test_a_damaged_backup_is_refused_and_nothing_changes(jobs: Cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    jobs.publish("jobs", "1")
    jobs.ok("backup", str(copy))
    data = bytearray(copy.read_bytes())
    data[5000:9000] = b"\xff" * 4000
    copy.write_bytes(bytes(data))
    assert jobs("restore", str(copy), "--yes").code in (6, 7)
    assert len(jobs.json("peek", "jobs")) == 1
    assert jobs("restore", str(tmp_path / "none.db"), "--yes").code == 4


def test_a_handle_that_leads_nowhere_is_told_with_its_field(cli: Cli, home: Home) -> None:
    models = {"anthropic": {"api_key": "env:NOT_SET_ANYWHERE"}}
    home.settings.replace({"agents": {"a": {"provider": "script"}}, "models": models})
    found = {each["about"]: each for each in json.loads(cli("doctor", "--json").out)["findings"]}
    assert found["models.anthropic.api_key"]["level"] == "bad"
    assert "NOT_SET_ANYWHERE is not set" in found["models.anthropic.api_key"]["text"]


def test_a_port_that_others_use_and_an_api_without_a_key_are_told_with_their_cure(
    cli: Cli, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        home.settings.replace({"agents": {"a": {"provider": "openai_api"}}, "api": {"port": port}})
        done = cli("doctor", "--json")
    findings = [each for each in json.loads(done.out)["findings"] if each["level"] == "bad"]
    found = {each["about"]: each["text"] for each in findings}
    assert done.code == 1
    assert "postroom settings set api.port" in found["port"]
    assert "postroom setup --provider openai_api" in found["@a"]


def test_live_asks_and_tells_what_came_back(cli: Cli, home: Home) -> None:
    home.settings.replace({"agents": {"a": {"provider": "script"}}, "api": {"port": 0}})
    assert "script" not in levels(cli, "doctor")
    assert levels(cli, "doctor", "--live")["script"] == "ok"


def test_a_byte_that_changed_anywhere_in_a_backup_is_found(jobs: Cli, tmp_path: Path) -> None:
    """Also where neither a page nor the ledger would tell: in a body, in free space, at the very end."""
    copy = tmp_path / "copy.db"
    jobs.publish("jobs", '"a body that nobody hashes"')
    jobs.ok("backup", str(copy), "--check")
    sound = copy.read_bytes()
    body = sound.index(b"a body that nobody hashes")
    for place in (30, body, body + 5, len(sound) // 2, len(sound) - 1):
        flipped = bytearray(sound)
        flipped[place] ^= 1
        copy.write_bytes(bytes(flipped))
        assert jobs("restore", str(copy), "--check").code == 6, place
    copy.write_bytes(sound[:-1])
    assert "not as it was written" in jobs("restore", str(copy), "--check").err
    copy.write_bytes(sound)
    jobs.ok("restore", str(copy), "--check")


def test_a_backup_says_what_is_not_in_it_and_takes_all_when_asked(jobs: Cli, tmp_path: Path) -> None:
    (jobs.home / "files").mkdir(exist_ok=True)
    (jobs.home / "files" / "plan.txt").write_text("the plan")
    (jobs.home / "settings.json").write_text("{}")
    copy = tmp_path / "copy.db"
    assert "Not in it: settings, token, files/" in jobs.ok("backup", str(copy)).out
    assert not (tmp_path / "copy.db.home.tar").exists()
    made = jobs.json("backup", str(copy), "--force", "--all")
    assert {"settings.json", "files"} <= set(made["packed"])
    archive = tmp_path / "copy.db.home.tar"
    assert archive.stat().st_mode & 0o077 == 0
    with tarfile.open(archive) as packed:
        found = packed.extractfile("files/plan.txt")
        assert found is not None
        assert found.read() == b"the plan"


def test_a_clock_that_was_ahead_and_came_back_is_told(cli: Cli, home: Home) -> None:
    home.settings.replace({"agents": {"a": {"provider": "script"}}})
    ahead = ManualClock(SystemClock().now())
    ahead.advance(3 * 24 * 3600)
    store = str(home.path / "postroom.db")
    with postroom.open_sync(store, clock=ahead, housekeeping=False) as room:
        room.create_queue("jobs")
    findings = {each["about"]: each for each in json.loads(cli("doctor", "--json").out)["findings"]}
    assert findings["clock"]["level"] == "warn"
    assert "minutes ahead of this machine's clock" in findings["clock"]["text"]
    assert "postroom doctor --cure clock" in findings["clock"]["text"]


def test_files_elsewhere_are_told_by_backup_and_doctor(jobs: Cli, tmp_path: Path) -> None:
    jobs.ok("settings", "set", "files.url", str(tmp_path / "shared"))
    told = jobs.ok("backup", str(tmp_path / "copy.db"))
    assert f"files of messages are in {tmp_path / 'shared'}" in told.err
    assert levels(jobs, "doctor")["files"] == "bad"
    (tmp_path / "shared").mkdir()
    assert levels(jobs, "doctor")["files"] == "ok"


def test_a_clock_that_was_ahead_is_cured_after_a_dry_run_and_with_a_backup(cli: Cli, home: Home) -> None:
    home.settings.replace({"agents": {"a": {"provider": "script"}}})
    ahead = ManualClock(SystemClock().now())
    ahead.advance(3 * 24 * 3600)
    store = home.path / "postroom.db"
    with postroom.open_sync(str(store), clock=ahead, housekeeping=False) as room:
        room.create_queue("jobs")
        room.publish("jobs", "later", delay=60)
        room.publish("jobs", "now")
        room.claim("jobs", lease=60, worker="elsewhere")
    before = store.read_bytes()
    tried = cli("doctor", "--cure", "clock")
    assert "the ledger is 4,3" in tried.out
    assert "counted anew: 1 leases, 1 delays and retries, 2 places in queues" in tried.out
    assert "--yes" in tried.out
    assert store.read_bytes() == before, "nothing is changed yet"
    cured = json.loads(cli("doctor", "--cure", "clock", "--yes", "--json").out)
    assert cured["cured"]
    assert (cured["leases"], cured["delays"], cured["ended"]) == (1, 1, 0)
    assert cli("ledger", "verify").code == 0
    findings = {each["about"] for each in json.loads(cli("doctor", "--json").out)["findings"]}
    assert "clock" not in findings
    refused = cli("doctor", "--cure", "clock", "--yes")
    assert refused.code != 0
    assert "nothing to cure" in refused.err
    # And it can be undone.
    assert cli("restore", cured["backup"], "--yes").code == 0
    assert "clock" in {each["about"] for each in json.loads(cli("doctor", "--json").out)["findings"]}


def test_a_clock_is_not_cured_on_a_database_server(cli: Cli, home: Home) -> None:
    home.settings.replace({"store": {"url": "postgresql://nobody@127.0.0.1:1/none"}})
    refused = cli("doctor", "--cure", "clock")
    assert refused.code != 0
    assert "time is the database server's own" in refused.err


def test_a_clock_is_not_cured_under_an_office_that_runs(
    cli: Cli, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.settings.replace({"agents": {"a": {"provider": "script"}}})
    monkeypatch.setattr(CommandContext, "is_served", property(lambda _: True))
    refused = cli("doctor", "--cure", "clock")
    assert refused.code != 0
    assert "stop it first: postroom stop" in refused.err
