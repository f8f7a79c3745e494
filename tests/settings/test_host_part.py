"""Each setting is a host's own or the office's, and what is taken apart comes together again."""

from typing import Any

from postroom.settings.catalog import list_settings
from postroom.settings.host_part import OF_HOST, combine, is_of_host, split

DOCUMENT: dict[str, Any] = {
    "workspace": {"path": "/work", "name": "Mine"},
    "api": {"port": 4000, "token": "env:T", "origins": ["http://127.0.0.1:1"]},
    "store": {"url": "postgresql://db/room"},
    "logs": {"level": "debug"},
    "agents": {"coder": {"name": "Coder"}},
    "of_another_program": {"deep": [1, {"x": None}]},
}


def test_every_name_of_a_host_is_a_setting() -> None:
    known = {each.name for each in list_settings({}, {})}
    for name in OF_HOST:
        assert any(each == name or each.startswith(f"{name}.") for each in known), name


def test_a_document_is_taken_apart_and_comes_together_again() -> None:
    host, office = split(DOCUMENT)
    assert host == {
        "workspace": {"path": "/work"},
        "api": {"port": 4000, "token": "env:T"},
        "store": {"url": "postgresql://db/room"},
        "logs": {"level": "debug"},
    }
    assert office == {
        "workspace": {"name": "Mine"},
        "api": {"origins": ["http://127.0.0.1:1"]},
        "agents": {"coder": {"name": "Coder"}},
        "of_another_program": {"deep": [1, {"x": None}]},
    }
    assert combine(host, office) == DOCUMENT


def test_neither_side_can_say_what_belongs_to_the_other() -> None:
    host = {"agents": {"mine": {}}, "logs": {"level": "error"}}
    office = {"store": {"url": "sqlite:///theirs.db"}, "agents": {"coder": {}}, "api": {"port": 1}}
    assert combine(host, office) == {"logs": {"level": "error"}, "agents": {"coder": {}}}


def test_sections_that_are_no_objects_are_left_for_whoever_checks_them() -> None:
    assert split({"api": None, "workspace": "/work"}) == ({}, {"api": None, "workspace": "/work"})
    assert combine({"logs": None}, {"api": []}) == {"logs": None, "api": []}


def test_a_section_that_is_a_hosts_covers_what_is_in_it() -> None:
    assert is_of_host("store.url")
    assert is_of_host("logs")
    assert not is_of_host("api")
    assert not is_of_host("api.hosts")
