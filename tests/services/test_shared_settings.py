"""The settings of an office on a database server: one document for all hosts, a file for what is a host's."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom import SyncRoom
from postroom.errors import InvalidField
from postroom.kernel.access.keys import NOBODY
from postroom.services import shared_settings
from postroom.services.shared_settings import KEY, KIND, SharedSettings, read_sealed
from postroom.settings.errors import InvalidSettings, SettingsContended, TokenDiffers
from tests.conftest import MARIADB, POSTGRES, StoreKind

TOKEN = "the-token-of-the-owner"
BOT = "123456:a-token-of-a-bot"
DOCUMENT: dict[str, Any] = {
    "workspace": {"path": "/work", "name": "Mine"},
    "logs": {"level": "debug"},
    "agents": {"coder": {"name": "Coder"}},
    "channels": {"enabled": ["telegram"], "telegram": {"bot_token": BOT}},
}
OpenHost = Callable[..., SharedSettings]


@pytest.fixture(params=[POSTGRES, MARIADB], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> StoreKind:
    return request.param


@pytest.fixture
def room(kind: StoreKind, tmp_path: Path) -> Iterator[SyncRoom]:
    with postroom.open_sync(kind.url(tmp_path), actor="a", housekeeping=False) as room:
        yield room


@pytest.fixture
def host(kind: StoreKind, room: SyncRoom, tmp_path: Path) -> Iterator[OpenHost]:
    """A host with a file, a room and a token of its own."""
    with ExitStack() as stack:

        def opened(name: str = "a", document: Any = None, token: str = TOKEN) -> SharedSettings:
            path = tmp_path / name / "settings.json"
            path.parent.mkdir(exist_ok=True)
            if document is not None:
                path.write_text(json.dumps(document))
            own = stack.enter_context(postroom.open_sync(kind.url(tmp_path), actor=name, housekeeping=False))
            return SharedSettings(path, lambda: own, lambda is_new: token)

        yield opened


def stored(room: SyncRoom) -> str:
    """All that the store holds of documents, events and records."""
    found = room.look(
        lambda reader: [
            reader.document(NOBODY, KIND, KEY),
            reader.events(0, 1000),
            reader.records("", KIND, None, 0, 10),
        ]
    )
    return repr(found)


def test_the_first_start_puts_the_files_settings_into_the_store_once(host: OpenHost, room: SyncRoom) -> None:
    file = host(document=DOCUMENT)
    assert (file.load().default_agent_id(), file.source_of("agents")) == ("coder", "file")
    assert file.establish({})
    assert not file.establish({})
    assert not host("b", {"agents": {"other": {}}}).establish({"agents": {"another": {}}})
    found = room.look(read_sealed)
    assert found is not None
    assert found[1].settings.keys() == {"workspace", "agents", "channels"}
    assert found[1].settings["workspace"] == {"name": "Mine"}
    assert file.document() == DOCUMENT
    assert (file.source_of("agents"), file.source_of("logs.level")) == ("store", "file")


def test_a_host_without_settings_begins_with_the_defaults(host: OpenHost) -> None:
    file = host(document={"logs": {"level": "error"}})
    assert file.establish({"agents": {"assistant": {}}, "workspace": {"path": "/elsewhere"}})
    assert file.document() == {"logs": {"level": "error"}, "agents": {"assistant": {}}}


def test_no_secret_is_in_the_store(host: OpenHost, room: SyncRoom) -> None:
    file = host(document=DOCUMENT)
    file.establish({})
    file.merge({"models": {"openai": {"api_key": "sk-a-key-that-nobody-reads"}}})
    text = stored(room)
    assert "sealed:1:" in text
    assert BOT not in text
    assert "sk-a-key" not in text
    assert room.records(KIND) == []
    settings = host("b").load()
    assert settings.channels.telegram is not None
    assert settings.channels.telegram.bot_token is not None
    assert settings.channels.telegram.bot_token.reveal({}) == BOT


def test_a_change_of_one_host_holds_for_the_others_and_what_is_a_hosts_does_not(host: OpenHost) -> None:
    a, b = host("a", DOCUMENT), host("b", {"logs": {"level": "error"}})
    a.establish({})
    before = b.load()
    assert b.load() is before
    a.merge({"default_agent": "coder", "logs": {"level": "warning"}})
    assert (b.load().default_agent, b.load().logs.level) == ("coder", "error")
    assert a.load().logs.level == "warning"
    b.merge({"agents": {"coder": {"name": "Second"}}, "api": {"port": 4001, "origins": []}})
    assert (a.load().agents["coder"].name, a.load().api.port, b.load().api.port) == ("Second", 3777, 4001)
    assert json.loads(b.path.read_text()) == {"logs": {"level": "error"}, "api": {"port": 4001}}


def test_what_else_stands_in_a_file_is_neither_read_nor_lost(host: OpenHost) -> None:
    host("a", DOCUMENT).establish({})
    b = host("b", {"agents": {"mine": {}}, "logs": {"level": "error"}})
    b.merge({"logs": {"level": "info"}})
    assert list(b.load().agents) == ["coder"]
    assert json.loads(b.path.read_text()) == {"agents": {"mine": {}}, "logs": {"level": "info"}}


def test_changes_at_the_same_time_are_all_kept(host: OpenHost) -> None:
    host("a", DOCUMENT).establish({})
    hosts = [host(name) for name in ("a", "b", "c")]

    def change(file: SharedSettings, name: str) -> None:
        for agent in (f"{name}{number}" for number in range(4)):
            file.update(lambda found, agent=agent: found["agents"].update({agent: {}}))

    threads = [
        threading.Thread(target=change, args=(file, name)) for file, name in zip(hosts, "abc", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hosts[0].load().agents) == 1 + 3 * 4


def test_who_never_gets_a_chance_is_told_and_has_changed_nothing(
    host: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_settings, "TRIES", 2)
    a, b = host("a", DOCUMENT), host("b")
    a.establish({})
    count = iter(range(100))

    def change(found: dict[str, Any]) -> None:
        a.merge({"default_agent": f"x{next(count)}"})
        found["default_agent"] = "mine"

    with pytest.raises(SettingsContended):
        b.update(change)
    assert b.load().default_agent == "x1"
    fetch = b._fetch

    def fetch_late() -> Any:
        found = fetch()
        a.merge({"default_agent": f"y{next(count)}"})
        return found

    monkeypatch.setattr(b, "_fetch", fetch_late)
    with pytest.raises(SettingsContended):
        b.reseal("another-token-of-the-owner")


def test_what_is_not_valid_changes_nothing(host: OpenHost, room: SyncRoom) -> None:
    file = host("a", DOCUMENT)
    file.establish({})
    before = room.look(read_sealed)
    for wrong in ({"budgets": {"daily_usd": "much"}}, {"logs": {"level": "loud"}}):
        with pytest.raises(InvalidSettings):
            file.merge(wrong)
    with pytest.raises(InvalidField):
        file.merge({"models": {"openai": {"api_key": "********"}}})
    assert room.look(read_sealed) == before
    assert file.document() == DOCUMENT


def test_a_wrong_token_reads_and_changes_nothing(host: OpenHost, room: SyncRoom) -> None:
    host("a", DOCUMENT).establish({})
    before = room.look(read_sealed)
    stranger = host("b", {}, token="a-token-of-somebody-else")
    for act in (stranger.load, lambda: stranger.merge({"agents": {}}), lambda: stranger.establish({})):
        with pytest.raises(TokenDiffers, match="postroom join"):
            act()
    assert room.look(read_sealed) == before


def test_of_two_first_starts_with_tokens_of_their_own_one_is_refused(
    host: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = host("a", DOCUMENT), host("b", {}, token="a-token-of-somebody-else")
    put = b._put

    def put_late(*args: Any) -> None:
        assert a.establish({})
        put(*args)

    monkeypatch.setattr(b, "_put", put_late)
    with pytest.raises(TokenDiffers):
        b.establish({})
    c, d = host("c"), host("d")
    assert not c.establish({})
    assert d.load().default_agent_id() == "coder"


def test_a_second_start_at_the_same_moment_finds_the_settings_of_the_first(
    host: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = host("a", DOCUMENT), host("b", {"agents": {"other": {}}})
    put = b._put

    def put_late(*args: Any) -> None:
        assert a.establish({})
        put(*args)

    monkeypatch.setattr(b, "_put", put_late)
    assert not b.establish({})
    assert list(b.load().agents) == ["coder"]


def test_a_new_token_seals_all_anew_and_the_old_one_opens_nothing(host: OpenHost, room: SyncRoom) -> None:
    a, tokens = host("a", DOCUMENT), {"now": TOKEN}
    a._find_token = lambda is_new: tokens["now"]
    a.establish({})
    b = host("b")
    b.load()
    before = room.look(read_sealed)
    a.reseal("another-token-of-the-owner")
    after = room.look(read_sealed)
    assert before is not None
    assert after is not None
    assert before[1].settings["channels"] != after[1].settings["channels"]
    with pytest.raises(TokenDiffers):
        b.load()
    tokens["now"] = "another-token-of-the-owner"
    assert a.document() == DOCUMENT


def test_who_has_lost_the_token_loses_the_secrets_and_nothing_else(
    host: OpenHost, room: SyncRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = "another-token-of-the-owner"
    later = host("c", token=new)
    assert later.give_up_secrets(new) == []
    host("a", {**DOCUMENT, "of_others": [{"password": "hunter22"}, {"password": "env:X"}]}).establish({})
    assert sorted(later.give_up_secrets(new)) == ["channels.telegram.bot_token", "of_others.password"]
    assert later.document() == {
        "workspace": {"name": "Mine"},
        "agents": {"coder": {"name": "Coder"}},
        "channels": {"enabled": ["telegram"], "telegram": {}},
        "of_others": [{}, {"password": "env:X"}],
    }
    monkeypatch.setattr(shared_settings, "TRIES", 1)
    found = room.look(read_sealed)
    assert found is not None
    monkeypatch.setattr(shared_settings, "read_sealed", lambda reader: (found[0] - 1, found[1]))
    with pytest.raises(SettingsContended):
        later.give_up_secrets(new)
