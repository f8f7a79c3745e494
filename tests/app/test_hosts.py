"""An office on a database server on two hosts with homes of their own: what one sets holds on the other."""

from pathlib import Path

import httpx2
import pytest

from tests.app.hosts import Ended, HostProcess, first_host
from tests.conftest import postgres_url
from tests.stores.servers.conftest import until

BOT = "123456:the-token-of-a-bot"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


def test_a_second_host_with_the_stores_address_and_the_token_has_the_settings_of_the_office(
    tmp_path: Path, url: str, ended: Ended
) -> None:
    a = HostProcess(tmp_path, "a")
    handle = f"file:{a.home.secrets}/telegram_bot_token"
    a = ended(
        first_host(
            tmp_path,
            url,
            channels={"telegram": {"bot_token": handle}},
            models={"openai": {"api_key": "env:OPENAI_KEY"}},
        )
    )
    a.home.secrets.mkdir()
    (a.home.secrets / "telegram_bot_token").write_text(BOT)
    a.start()
    assert "the settings of the office are in the store now" in a.read_log()
    listed = {each["name"]: each for each in a.json("settings", "list")}
    assert [listed[name]["source"] for name in ("agents.coder.name", "store.url", "guards.hops")] == [
        "store",
        "file",
        "default",
    ]
    b = ended(HostProcess(tmp_path, "b"))
    b.env |= {"POSTROOM_STORE": url}
    refused = b.cli("start", check=False)
    assert (refused.returncode, "postroom join" in refused.stderr) == (6, True)
    b.env |= {"POSTROOM_TOKEN": "not-the-token-of-the-owner"}
    refused = b.cli("start", check=False)
    assert (refused.returncode, "not that of the office" in refused.stderr) == (6, True)
    assert not b.home.token.exists()
    b.env |= {"POSTROOM_TOKEN": a.token}
    b.start()
    assert b.json("settings", "get", "agents")["agents"]["coder"]["name"] == "Coder"
    assert list(b.home.settings.document()) == ["workspace"]
    # A file of the first host means nothing here, so what was in it is sealed in the store.
    assert b.json("settings", "get", "channels.telegram.bot_token") == {
        "channels.telegram.bot_token": "********"
    }
    assert b.json("settings", "get", "models.openai.api_key") == {"models.openai.api_key": "env:OPENAI_KEY"}
    a.cli("channel", "setup", "telegram", "--token", f"{BOT}-2-{'x' * 30}".replace(":the", ":AA"))
    assert sorted(path.name for path in a.home.secrets.iterdir()) == ["telegram_bot_token"]
    assert (a.home.secrets / "telegram_bot_token").read_text() == BOT
    b.cli("channel", "setup", "telegram", "--off")
    # Both ways, by whoever runs; and without one, by the command itself.
    a.cli("settings", "set", "default_agent", "coder")
    assert b.json("settings", "get", "default_agent") == {"default_agent": "coder"}
    b.cli("agent", "add", "tester", "--provider", "script")
    until(lambda: "tester" in a.json("status")["agents"])
    b.cli("stop")
    b.cli("settings", "set", "guards.hops", "7")
    b.cli("settings", "set", "logs.level", "debug")
    assert a.json("settings", "get", "guards.hops") == {"guards.hops": 7}
    assert a.json("settings", "get", "logs.level") == {"logs.level": "info"}
    a.cli("stop")
    a.start()
    assert "is not read for agents, monitoring, channels" in a.read_log()
    assert BOT not in a.read_log()


def test_a_login_of_one_host_holds_on_the_other_and_ends_on_both(
    tmp_path: Path, url: str, ended: Ended
) -> None:
    a = ended(first_host(tmp_path, url))
    a.start()
    b = ended(HostProcess(tmp_path, "b"))
    b.env |= {"POSTROOM_STORE": url, "POSTROOM_TOKEN": a.token}
    b.start()
    code = a.cli("login").stdout.strip().partition("code=")[2]
    answers = [httpx2.get(f"{host.url}/login?code={code}", timeout=60) for host in (b, a)]
    assert [answer.status_code for answer in answers] == [303, 401], "a link works once, wherever it is used"
    cookie = {"cookie": answers[0].headers["set-cookie"].partition(";")[0]}

    def tried() -> list[int]:
        urls = (f"{host.url}/api/session" for host in (a, b))
        return [httpx2.get(url, headers=cookie, timeout=60).status_code for url in urls]

    assert tried() == [200, 200]
    [session] = httpx2.get(f"{b.url}/api/sessions", headers=a.headers, timeout=60).json()["sessions"]
    httpx2.delete(f"{a.url}/api/sessions/{session['id']}", headers=a.headers, timeout=60)
    assert tried() == [401, 401]


def test_an_agent_whose_host_is_gone_waits_is_told_of_and_works_elsewhere_when_it_is_moved(
    tmp_path: Path, url: str, ended: Ended
) -> None:
    a = ended(first_host(tmp_path, url))
    a.start()
    assert "@coder" in a.cli("send", "@coder hello", "--wait").stdout
    b = ended(HostProcess(tmp_path, "b"))
    b.env |= {"POSTROOM_STORE": url, "POSTROOM_TOKEN": a.token}
    b.start()
    here, there = b.home.host, a.home.host
    assert b.json("agent", "list")["coder"]["host"] == there
    assert there in b.cli("doctor", check=False).stdout
    a.cli("stop")
    sent = b.json("send", "@coder where are you?")["messageId"]
    assert f"{there}, not there" in b.cli("agent", "list").stdout
    for told in (b.cli("why", sent).stdout, b.cli("doctor", check=False).stdout):
        assert "postroom agent move coder" in " ".join(told.split())
    refused = b.cli("memory", "list", "coder", check=False)
    assert (refused.returncode, there in refused.stderr) == (5, True)
    moved = b.json("agent", "move", "coder")
    assert (moved["host"], moved["before"], moved["has_folder"]) == (here, there, False)
    until(lambda: "completed" in b.cli("why", sent).stdout)
    assert Path(moved["folder"], "AGENTS.md").exists()
    assert "not there" not in b.cli("doctor", check=False).stdout
    # Back again where its folder is, while the other host runs on.
    a.start()
    assert a.json("agent", "move", "coder", "--host", there)["has_folder"]
    wrong = a.cli("agent", "move", "coder", "--host", "nowhere", check=False)
    assert (wrong.returncode, here in wrong.stderr) == (4, True)
    assert "@coder" in b.cli("send", "@coder and now?", "--wait").stdout
    assert a.json("agent", "list")["coder"]["host"] == there
