"""A host joins an office with the address of its store and the owner's token; a refusal changes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from postroom.app.home import Home
from postroom.app.joining import NoOfficeThere, OfficeOlder, join_office
from postroom.app.office_settings import load_settings
from postroom.app.token_rotation import finish_rotation, rotate_token
from postroom.errors import InvalidField, StoreFailed, StoreTooNew
from postroom.runtime import open_sync
from postroom.services.shared_settings import SharedSettings
from postroom.settings.errors import OwnerTokenMissing, TokenDiffers
from postroom.stores.postgres import info
from tests.app.hosts import Ended, HostProcess, first_host
from tests.conftest import mariadb_url, postgres_url
from tests.stores.servers.conftest import until

TOKEN = "the-token-of-the-owner"


@pytest.fixture(params=[postgres_url, mariadb_url], ids=["postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param(tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "b")


def put_office(url: str, folder: Path, token: str = TOKEN) -> None:
    with open_sync(url, actor="a", housekeeping=False) as room:
        SharedSettings(folder / "a.json", lambda: room, lambda is_new: token).establish(
            {"agents": {"coder": {}}, "teams": {}}
        )


def files(home: Home) -> dict[str, str]:
    return {
        path.name: path.read_text()
        for path in (home.path.iterdir() if home.path.exists() else ())
        if path.is_file() and not path.name.endswith(".lock")
    }


def test_what_does_not_fit_changes_nothing(url: str, home: Home, tmp_path: Path) -> None:
    with pytest.raises(NoOfficeThere):
        join_office(home, url, TOKEN)
    with open_sync(url, housekeeping=False):
        pass
    with pytest.raises(NoOfficeThere):
        join_office(home, url, TOKEN)
    put_office(url, tmp_path)
    for token in ("not-the-token-of-the-owner", "short"):
        with pytest.raises((TokenDiffers, Exception), match="token"):
            join_office(home, url, token)
    with pytest.raises(InvalidField, match="database server"):
        join_office(home, "sqlite:///room.db", TOKEN)
    for unreachable in ("postgresql://nobody@127.0.0.1:9/none", "mariadb://nobody@127.0.0.1:9/none"):
        with pytest.raises(StoreFailed):
            join_office(home, unreachable, TOKEN)
    assert files(home) == {}


def test_a_host_that_joins_has_the_address_the_token_and_a_name(url: str, home: Home, tmp_path: Path) -> None:
    put_office(url, tmp_path)
    joined = join_office(home, url, TOKEN)
    assert joined.kept == []
    assert abs(joined.clock_s) < 30
    assert home.token.read_text() == f"{TOKEN}\n"
    assert home.token.stat().st_mode & 0o777 == 0o600
    document = home.settings.document()
    assert (list(document), document["store"]) == (["workspace", "store"], {"url": url})
    again = join_office(home, url, TOKEN)
    assert (again.host, again.kept, home.host) == (joined.host, [], joined.host)
    other = join_office(Home(tmp_path / "c"), "env:WHERE", TOKEN, redis="env:R", environment={"WHERE": url})
    assert other.host == f"{joined.host}-2"
    assert Home(tmp_path / "c").settings.document()["store"] == {"url": "env:WHERE", "redis": "env:R"}


def test_what_a_home_held_before_is_kept_beside_it(url: str, home: Home, tmp_path: Path) -> None:
    put_office(url, tmp_path)
    home.make()
    before = {"agents": {"mine": {}}, "api": {"port": 4000}, "workspace": {"path": "/mine", "name": "M"}}
    home.settings.replace(before)
    home.token.write_text("a-token-of-another-office\n")
    joined = join_office(home, url, TOKEN)
    settings, token = map(Path, joined.kept)
    assert json.loads(settings.read_text()) == before
    assert token.read_text() == "a-token-of-another-office\n"
    assert home.settings.document() == {
        "api": {"port": 4000},
        "store": {"url": url},
        "workspace": {"path": "/mine"},
    }


def test_tables_of_another_version_are_told_and_left_alone(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_url(tmp_path)
    put_office(url, tmp_path)
    newest = max(info.steps())
    for known, refusal in ((newest + 1, OfficeOlder), (newest - 1, StoreTooNew)):
        monkeypatch.setattr(info, "steps", lambda known=known: {known: ""})
        with pytest.raises(refusal):
            join_office(home, url, TOKEN)
    assert files(home) == {}


def test_a_rotation_that_was_cut_short_is_finished_by_what_the_store_says(
    url: str, home: Home, tmp_path: Path
) -> None:
    put_office(url, tmp_path)
    home.make()
    for coming, left in (("never-sealed-with-this-one", "old-token-of-the-owner"), (TOKEN, TOKEN)):
        home.token.write_text("old-token-of-the-owner")
        (home.path / "token.next").write_text(coming)
        with open_sync(url, housekeeping=False) as room:
            finish_rotation(home, room)
            finish_rotation(home, room)
        assert home.token.read_text() == left
        assert not (home.path / "token.next").exists()


def test_an_owner_who_lost_the_token_opens_the_office_again(url: str, home: Home, tmp_path: Path) -> None:
    with open_sync(url, actor="a", housekeeping=False) as room:
        SharedSettings(tmp_path / "a.json", lambda: room, lambda is_new: TOKEN).establish(
            {"agents": {"coder": {}}, "models": {"openai": {"api_key": "sk-a-key-of-mine"}}}
        )
    home.make()
    home.settings.replace({"store": {"url": url}})
    with pytest.raises(OwnerTokenMissing):
        rotate_token(home, "another-token-of-the-owner", {})
    assert rotate_token(home, "another-token-of-the-owner", {}, is_lost=True) == ["models.openai.api_key"]
    assert home.token.read_text() == "another-token-of-the-owner\n"
    assert list(load_settings(home, {}).agents) == ["coder"]
    assert not (home.path / "token.next").exists()


def join(host: HostProcess, *words: str, token: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "postroom", "join", *words],
        env=host.env,
        cwd=host.folder,
        input=token,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_hosts_join_share_a_login_and_take_up_a_new_token(tmp_path: Path, ended: Ended) -> None:
    url = postgres_url(tmp_path)
    a = ended(first_host(tmp_path, url))
    a.start()
    b = ended(HostProcess(tmp_path, "b"))
    refused = join(b, url, token="not-the-token-of-the-owner\n")
    assert (refused.returncode, "not that of the office" in refused.stderr) == (3, True)
    assert not b.home.settings.path.exists()
    done = join(b, url, "--json", token=f"{a.token}\n")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["hosts"] == [a.home.host]
    b.start()
    status = a.json("status")
    [other] = status["elsewhere"]
    assert (other["host"], other["silent"], other["pid"]) == (told["host"], False, b.now().pid)
    assert told["host"] in a.cli("status").stdout
    old = a.token
    rotated = subprocess.run(
        [sys.executable, "-m", "postroom", "token", "rotate", "--yes"],
        env=a.env, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert rotated.returncode == 0, rotated.stderr
    assert a.token != old

    def answers(host: HostProcess, token: str) -> int | None:
        try:
            headers = {"authorization": f"Bearer {token}"}
            return httpx2.get(f"{host.url}/api/status", headers=headers, timeout=60).status_code
        except (httpx2.TransportError, ValueError, AssertionError):
            return None

    until(lambda: answers(a, a.token) == 200)
    assert answers(a, old) == 401
    # The other host has only the old one, and does not go on with it.
    until(lambda: answers(b, old) is None)
    refused = b.cli("start", check=False)
    assert "postroom join" in refused.stderr
    assert join(b, token=f"{a.token}\n").returncode == 0
    b.start()
    assert answers(b, a.token) == 200


def test_on_a_file_a_new_token_holds_with_the_next_start(tmp_path: Path, ended: Ended) -> None:
    a = ended(HostProcess(tmp_path, "a", {"workspace": {"path": str(tmp_path / "w")}}))
    a.cli("start")
    old = a.token
    assert "postroom restart" in a.cli("token", "rotate", "--yes").stdout
    assert a.token != old
    assert os.stat(a.home.token).st_mode & 0o777 == 0o600
    a.env["POSTROOM_TOKEN"] = "a-token-that-was-given"
    refused = a.cli("token", "rotate", "--yes", check=False)
    assert (refused.returncode, "--given" in refused.stderr) == (5, True)
    before = a.token
    given = subprocess.run(
        [sys.executable, "-m", "postroom", "token", "rotate", "--given", "--yes"],
        env=a.env, input="a-new-token-for-us\n", capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (given.returncode, "Set it in POSTROOM_TOKEN" in given.stdout, a.token) == (0, True, before)
