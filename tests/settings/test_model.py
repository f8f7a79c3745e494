"""Existing settings load as they are, ours have sensible values, and mistakes are told with their fix."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import InvalidField
from postroom.kernel.checks import YEAR_S
from postroom.kernel.limits import Limits
from postroom.settings import (
    InvalidSettings,
    Settings,
    check_id,
    check_new_id,
    find_warnings,
    home_folder,
    is_id,
    parse,
    with_environment,
)
from postroom.settings.field_names import ANY, known_names

# As its program answers it, with one more unknown field on each level.
EXISTING: dict[str, Any] = {
    "workspace": {"path": "/home/u/ws", "name": "ws", "colour": "red"},
    "channels": {
        "enabled": ["telegram"],
        "telegram": {"bot_token": "12:ab"},
        "discord": {},
        "whatsapp": {},
        "defaults": {"4711": "coder"},
        "matrix": {"room": "!x"},
    },
    "models": {"provider": "anthropic", "anthropic": {"model": "sonnet", "api_key": "sk-1"}, "openai": None},
    "agents": {
        "tinyagi": {
            "name": "TinyAGI",
            "provider": "anthropic",
            "model": "sonnet",
            "working_directory": "/home/u/ws/t",
        },
        "lead": {
            "name": "Lead",
            "provider": "anthropic",
            "model": "opus",
            "heartbeat": {"enabled": False, "interval": 900},
        },
        "cust": {
            "name": "Cust",
            "provider": "custom:loc",
            "model": "m2",
            "system_prompt": None,
            "mood": "good",
        },
    },
    "monitoring": {"heartbeat_interval": 7200},
    "custom_providers": {
        "loc": {
            "name": "Local",
            "harness": "claude",
            "base_url": "http://127.0.0.1:9",
            "api_key": "k",
            "model": "m1",
        }
    },
    "teams": {"dev": {"name": "Dev Team", "agents": ["lead", "coder"], "leader_agent": "lead"}},
    "someone_elses": {"kept": True},
}


def problems(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidSettings) as error:
        parse(document)
    assert "sk-secret" not in str(error.value) + repr(error.value)
    assert error.value.__cause__ is error.value.__context__ is None
    return dict(error.value.data["details"])


def test_an_existing_file_loads() -> None:
    loaded = parse(EXISTING)
    assert loaded.agents["lead"].heartbeat.interval == 900
    assert loaded.teams["dev"].agents == ("lead", "coder")
    assert loaded.custom_providers["loc"].harness == "claude"
    assert loaded.channels.defaults == {"4711": "coder"}
    assert loaded.monitoring.heartbeat_interval == 7200


def test_an_empty_file_gives_a_room_with_one_agent_and_sensible_values() -> None:
    empty = parse({})
    assert empty == Settings()
    agent = empty.present_agents()["tinyagi"]
    assert (agent.name, agent.provider, agent.model) == ("TinyAGI Agent", "anthropic", "sonnet")
    assert (empty.api.host, empty.api.port, empty.api.auth, empty.api.origins) == (
        "127.0.0.1",
        3777,
        "token",
        (),
    )
    assert (empty.sessions.scope, empty.replies.mode, empty.replies.detail) == ("agent", "each", "quiet")
    assert empty.monitoring.heartbeat_interval == 3600


def test_every_bound_has_a_default() -> None:
    empty = parse({})
    bounds = empty.guards.values() | empty.limits.values() | empty.budgets.values()
    assert bounds.pop("turns_per_provider") == {}, "turns_at_once holds for all"
    unbounded = {name for name, value in bounds.items() if value is None}
    assert unbounded == {"turn_usd", "owner_requests_per_minute"}, "their own budgets and keys bound these"
    assert all(value > 0 for value in bounds.values() if value is not None)


@pytest.mark.parametrize(
    ("models", "chosen"),
    [
        ({}, ("anthropic", "sonnet")),
        ({"openai": {}, "anthropic": {}}, ("openai", "gpt-5.3-codex")),
        ({"opencode": {"model": "x"}, "anthropic": {}}, ("opencode", "x")),
        ({"provider": "anthropic", "openai": {}, "anthropic": {"model": "opus"}}, ("anthropic", "opus")),
        ({"provider": "script"}, ("script", "")),
    ],
)
def test_the_provider_is_inferred_where_it_is_not_named(
    models: dict[str, Any], chosen: tuple[str, str]
) -> None:
    assert parse({"models": models}).models.chosen() == chosen


def test_our_own_fields_are_read() -> None:
    document = {
        "sessions": {"scope": "thread"},
        "replies": {"mode": "combined", "detail": "verbose"},
        "budgets": {"daily_usd": None, "conversation_usd": 0},
        "api": {"auth": "loopback", "origins": ["HTTP://Localhost:3000/"], "token": "env:T"},
        "schedules": {"zone": "Europe/Berlin"},
        "agents": {
            "coder": {
                "session": "sender",
                "fallbacks": [{"provider": "openai", "model": "gpt"}],
                "budget": {"daily_usd": 3},
            },
            "writer": {},
        },
    }
    loaded = parse(document)
    assert (loaded.session_scope("coder"), loaded.session_scope("writer")) == ("sender", "thread")
    assert loaded.agents["coder"].fallbacks[0].model == "gpt"
    assert loaded.api.origins == ("http://localhost:3000",)
    assert (loaded.budgets.daily_usd, loaded.budgets.conversation_usd) == (None, 0)


@pytest.mark.parametrize(
    ("document", "field", "problem"),
    [
        ({"api": {"auth": "none"}}, "api.auth", "must be 'token' or 'loopback'"),
        ({"api": {"port": 70000}}, "api.port", "must be 65535 or less"),
        ({"api": {"origins": ["*"]}}, "api.origins.0", '"*" would let every web page in'),
        ({"api": {"origins": ["http://x/path"]}}, "api.origins.0", "must be an origin like"),
        ({"sessions": {"scope": "chat"}}, "sessions.scope", "must be 'agent', 'sender' or 'thread'"),
        ({"agents": []}, "agents", "must be an object in {braces}"),
        ({"agents": {"a": "x"}}, "agents.a", "must be an object in {braces}"),
        ({"agents": {"a": {"name": 5}}}, "agents.a.name", 'must be a text in "quotes"'),
        ({"agents": {"..": {}}}, "agents", '".." is no id'),
        ({"agents": {"a/b": {}}}, "agents", '"a-b" would be one'),
        ({"agents": {"Fix It": {}}}, "agents", '"fix-it" would be one'),
        ({"teams": {"": {}}}, "teams", '"" is no id'),
        ({"agents": {"A": {}, "a": {}}}, "agents", "is there twice"),
        (
            {"agents": {"a": {"working_directory": "../out"}}},
            "agents.a.working_directory",
            "leads out of the workspace",
        ),
        ({"agents": {"a": {"fallbacks": [{}]}}}, "agents.a.fallbacks.0.provider", "is missing; add it"),
        (
            {"custom_providers": {"x": {"harness": "z"}}},
            "custom_providers.x.harness",
            "must be 'claude', 'codex' or 'api'",
        ),
        ({"monitoring": {"heartbeat_interval": -1}}, "monitoring.heartbeat_interval", "must be 0 or more"),
        (
            {"monitoring": {"heartbeat_interval": "often"}},
            "monitoring.heartbeat_interval",
            "must be a number",
        ),
        ({"schedules": {"zone": "Mars/Base"}}, "schedules.zone", "like Europe/Berlin"),
        ({"schedules": {"zone": "../../etc"}}, "schedules.zone", "like Europe/Berlin"),
        ({"guards": {"hops": 0}}, "guards.hops", "must be 1 or more"),
        ({"guards": {"turn_timeout_s": 0}}, "guards.turn_timeout_s", "must be more than 0"),
        ({"budgets": {"daily_usd": 1e308}}, "budgets.daily_usd", "must be 1000000000 or less"),
        ({"budgets": {"daily_usd": float("inf")}}, "budgets.daily_usd", "not infinite"),
        (
            {"channels": {"telegram": {"bot_token": ["sk-secret"]}}},
            "channels.telegram.bot_token",
            "must be a text",
        ),
        ({"models": {"openai": {"api_key": 5}, "x": "sk-secret"}}, "models.openai.api_key", "must be a text"),
    ],
)
def test_a_mistake_is_told_by_its_field_and_its_fix(
    document: dict[str, Any], field: str, problem: str
) -> None:
    found = problems(document)
    assert list(found) == [field]
    assert problem in found[field]


def test_all_mistakes_are_told_at_once() -> None:
    assert list(problems({"api": {"auth": 1}, "guards": {"hops": "x"}, "agents": 5})) == [
        "agents",
        "guards.hops",
        "api.auth",
    ]


def test_ids_in_capitals_can_be_addressed_and_keep_their_folder() -> None:
    loaded = parse({"workspace": {"path": "/w"}, "agents": {"Coder": {}, "Bob": {"working_directory": "/b"}}})
    assert loaded.agent_directory("coder") == Path("/w/Coder")
    assert loaded.agent_directory("bob") == Path("/b")


def test_an_agent_has_one_folder() -> None:
    home = Path("/home/u")
    loaded = parse({"agents": {"a": {"working_directory": "~/x"}, "b": {"working_directory": "b2"}, "c": {}}})
    assert loaded.agent_directory("a", home) == Path("/home/u/x")
    assert loaded.agent_directory("b", home) == Path("/home/u/postroom-workspace/b2")
    assert loaded.agent_directory("c", home) == Path("/home/u/postroom-workspace/c")
    assert parse({"workspace": {"path": "$HOME/w"}}).agent_directory("new", home) == Path("/home/u/w/new")
    with pytest.raises(InvalidField):
        loaded.agent_directory("..", home)


@settings(deadline=None)
@given(st.text(max_size=70))
def test_an_id_is_a_single_harmless_word(text: str) -> None:
    if is_id(text):
        assert check_id("agent", text) == text
        assert Path("/w", text).parent == Path("/w")
        assert text == text.lower().strip()
    else:
        with pytest.raises(InvalidField):
            check_id("agent", text)


@pytest.mark.parametrize("bad", ["", ".", "..", "-a", "_a", "A", "a b", "a/b", "a\n", "ä", "a" * 64, None, 5])
def test_what_is_no_id_is_refused(bad: object) -> None:
    assert not is_id(bad)
    with pytest.raises(InvalidField, match="is no id"):
        check_id("agent", bad)


def test_new_ids_are_neither_reserved_nor_taken() -> None:
    assert check_new_id("agent", "a" * 63, taken={"b"}) == "a" * 63
    for reserved in ("default", "user", "system"):
        with pytest.raises(InvalidField, match="choose another id"):
            check_new_id("agent", reserved)
    with pytest.raises(InvalidField, match="in use already"):
        check_new_id("team", "coder", taken={"coder": 1})


def test_an_agent_called_default_in_an_old_file_is_the_default_agent() -> None:
    loaded = parse({"agents": {"other": {}, "default": {}}})
    assert loaded.default_agent_id() == "default"
    assert any("agents.default" in concern for concern in find_warnings(loaded))


def test_what_will_not_work_is_a_concern_and_no_error() -> None:
    loaded = parse(
        {
            "default_agent": "boss",
            "agents": {
                "a": {"provider": "custom:x"},
                "b": {"provider": "magic"},
                "t": {"provider": "openai"},
            },
            "teams": {"t": {"agents": ["a", "ghost"], "leader_agent": "b"}, "u": {"leader_agent": "nobody"}},
            "channels": {"defaults": {"1": "gone", "2": "T"}},
        }
    )
    fields = [concern.partition(":")[0] for concern in find_warnings(loaded)]
    assert fields == [
        *("agents.a.provider", "agents.b.provider", "agents.t"),
        *("teams.t.agents", "teams.t.leader_agent", "teams.u.leader_agent"),
        *("default_agent", "channels.defaults.1"),
    ]
    assert find_warnings(parse({})) == []


def test_the_environment_is_heard_before_the_file() -> None:
    said = {
        "POSTROOM_HOST": "0.0.0.0",
        "POSTROOM_API_PORT": "4000",
        "POSTROOM_TOKEN": "t",
        "POSTROOM_STORE": "postgresql://u:pw@h/db",
        "TELEGRAM_BOT_TOKEN": "tg",
    }
    heard = with_environment(parse(EXISTING), said)
    assert (heard.api.host, heard.api.port) == ("0.0.0.0", 4000)
    assert heard.api.token
    assert heard.api.token.reveal() == "t"
    assert heard.store.url
    assert heard.channels.telegram.bot_token
    assert heard.channels.telegram.bot_token.reveal() == "tg"
    assert heard.channels.defaults == {"4711": "coder"}
    assert "pw" not in repr(heard)
    assert with_environment(parse(EXISTING), {}) == parse(EXISTING)
    for port in ("x", "-1", "70000", "٣"):
        with pytest.raises(InvalidField, match="POSTROOM_API_PORT"):
            with_environment(parse({}), {"POSTROOM_API_PORT": port})


def test_a_heartbeat_is_never_hasty_and_the_owner_is_told() -> None:
    loaded = parse(
        {
            "monitoring": {"heartbeat_interval": 2},
            "agents": {
                "usual": {},
                "own": {"heartbeat": {"interval": 9.5}},
                "slow": {"heartbeat": {"interval": 10}},
                "never": {"heartbeat": {"interval": 0}},
                "off": {"heartbeat": {"enabled": False, "interval": 60}},
            },
        }
    )
    assert {agent: loaded.heartbeat_s(agent) for agent in loaded.agents} == {
        "usual": 10,
        "own": 10,
        "slow": 10,
        "never": 0,
        "off": 0,
    }
    assert find_warnings(loaded) == [
        "monitoring.heartbeat_interval: 2 s is too short; every 10 s is used.",
        "agents.own.heartbeat.interval: 9.5 s is too short; every 10 s is used.",
    ]


def test_the_home_of_the_room_can_be_named() -> None:
    assert home_folder({"POSTROOM_HOME": "/srv/room"}) == Path("/srv/room")
    assert home_folder({}) == Path.home() / ".postroom"


def test_every_field_is_in_the_reference() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/settings.md").read_text()

    names = {word for name in known_names() for word in name.split(".")} - {ANY}
    assert len(names) > 100
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_the_longest_answer_of_claude_code_fits_into_the_output_of_a_turn() -> None:
    """It is written in pieces of a few letters, each in a line of its own, and the tools' results besides."""
    piece = (
        '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
        '"text":"word"}},"session_id":"cb7c5622-0000-4000-8000-000000000000","parent_tool_use_id":null,'
        '"uuid":"fa08c5d2-0000-4000-8000-000000000000"}'
    )
    most_tokens = 64_000
    assert parse({}).guards.output_bytes > 2 * most_tokens * len(piece)


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("guards.attempts", 100),
        ("guards.hops", Limits().hops - 1),
        ("limits.files_per_message", 50),
        ("limits.lease_s", Limits().lease_s),
        ("replies.combined_timeout_s", YEAR_S),
    ],
)
def test_what_the_room_would_not_take_is_refused_when_it_is_written(field: str, most: float) -> None:
    """Or it would only come out when an answer cannot be kept."""
    part, name = field.split(".")
    assert getattr(getattr(parse({part: {name: most}}), part), name) == most
    with pytest.raises(InvalidSettings, match=rf"{field}.*{most:.15g}"):
        parse({part: {name: most + 1}})


def test_an_answer_with_all_its_files_and_its_long_text_is_one_message() -> None:
    assert Limits().files >= 50 + 1


@pytest.mark.parametrize(
    "url", ["https://models.example.org/v1", "http://127.0.0.1:8000/", "http://[::1]:80/x"]
)
def test_a_model_server_can_be_named_by_http_or_https(url: str) -> None:
    model = parse({"models": {"openai": {"base_url": url}}}).models.openai
    assert model is not None
    assert model.base_url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://h/",
        "localhost:8000",
        "http://",
        "https://me:secret@h/",
        "http://h:99999/",
        "http://h/?key=1",
        "http://h/a b",
        "",
    ],
)
def test_a_model_server_by_any_other_address_is_refused_with_the_field(url: str) -> None:
    with pytest.raises(InvalidSettings, match=r"models\.anthropic\.base_url") as refused:
        parse({"models": {"anthropic": {"base_url": url}}})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["ftp://models.example", "models.example:8080", "file:///etc/passwd", "http://"]
)
def test_a_server_of_ones_own_is_asked_by_http_or_https_only(tmp_path: Path, address: str) -> None:
    document = {"custom_providers": {"own": {"name": "own", "base_url": address}}}
    with pytest.raises(InvalidSettings, match="http"):
        parse(document, tmp_path / "settings.json")
    document["custom_providers"]["own"]["base_url"] = "http://127.0.0.1:8080/v1/"
    kept = parse(document, tmp_path / "settings.json").custom_providers["own"]
    assert kept.base_url == "http://127.0.0.1:8080/v1/"


@pytest.mark.parametrize(
    ("field", "written", "read"),
    [
        ("guards.hops", "5", 5),
        ("guards.hops", 5.0, 5),
        ("guards.hops", " 1_0 ", 10),
        ("guards.turn_timeout_s", "1e3", 1000.0),
        ("api.remote", "yes", True),
        ("api.remote", 0, False),
        ("replies.history", "OFF", False),
    ],
)
def test_numbers_in_quotes_and_words_for_yes_are_understood(
    field: str, written: object, read: object
) -> None:
    part, name = field.split(".")
    found = getattr(getattr(parse({part: {name: written}}), part), name)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize("written", [True, "٣", "1.5", "0x10", "", [], None, 1e308, float("nan"), 2.5])
def test_what_is_no_whole_number_is_refused(written: object) -> None:
    assert list(problems({"guards": {"hops": written}})) == ["guards.hops"]
