"""No change to the settings is lost, half-written or accepted wrong; a damaged file is repaired and kept."""

import json
import multiprocessing
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import ManualClock
from postroom.errors import InvalidField
from postroom.settings import (
    MASK,
    InvalidSettings,
    SettingsBroken,
    SettingsBusy,
    SettingsFile,
    SettingsUnwritable,
    durable,
    parse,
)
from postroom.settings import file as settings_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "room" / "settings.json"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def file(path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch) -> SettingsFile:
    monkeypatch.setattr(settings_file, "_PAUSE_S", 0.0)
    path.parent.mkdir()
    return SettingsFile(path, clock=ManualClock(), tell=told.append, patience_s=0.2)


DEEP = '{"a":' + "[" * 900 + "]" * 900 + "}"


def write(path: Path, document: dict[str, Any] | str) -> None:
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def test_a_file_that_is_not_there_gives_the_defaults_and_is_made_by_the_first_change(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "a" / "b" / "settings.json")
    assert file.load() == parse({})
    assert not file.path.parent.exists()
    file.merge({"default_agent": "coder"})
    assert json.loads(file.path.read_text()) == {"default_agent": "coder"}
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


def test_unknown_fields_pass_through_in_their_order(file: SettingsFile, path: Path) -> None:
    stored = {
        "zebra": {"x": [1, None, 1.5]},
        "agents": {"a": {"mood": "gut 😀", "name": "A"}},
        "alpha": "\ud800",
    }
    write(path, stored)
    file.update(lambda document: document["agents"]["a"].update(model="opus"))
    stored["agents"]["a"]["model"] = "opus"
    assert list(json.loads(path.read_text()).items()) == list(stored.items())


def test_a_change_of_the_file_is_seen_at_the_next_load(file: SettingsFile, path: Path) -> None:
    write(path, {"default_agent": "a"})
    first = file.load()
    assert file.load() is first
    SettingsFile(path).merge({"default_agent": "b"})
    assert file.load().default_agent == "b"


def test_a_top_level_field_is_replaced_or_removed(file: SettingsFile, path: Path) -> None:
    write(path, {"monitoring": {"heartbeat_interval": 5}, "teams": {"t": {}}, "other": 1})
    file.merge({"monitoring": {"heartbeat_interval": 7200}, "teams": None})
    assert file.document() == {"monitoring": {"heartbeat_interval": 7200}, "other": 1}


def test_a_change_that_fails_or_is_not_valid_leaves_the_file_as_it_was(
    file: SettingsFile, path: Path
) -> None:
    write(path, {"default_agent": "a"})
    before = path.read_bytes()

    def fail(document: dict[str, Any]) -> None:
        document["default_agent"] = "b"
        raise OSError("of the caller")

    with pytest.raises(OSError, match="of the caller"):
        file.update(fail)
    with pytest.raises(InvalidSettings, match=r"api.port: must be 65535 or less"):
        file.merge({"api": {"port": 70000}})
    with pytest.raises(InvalidField, match="cannot be written as JSON"):
        file.merge({"extra": {1, 2}})
    with pytest.raises(InvalidField, match="cannot be written as JSON"):
        file.merge({"extra": float("nan")})
    with pytest.raises(InvalidField, match="nested too deeply"):
        file.merge({"extra": json.loads("[" * 900 + "]" * 900)})
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["settings.json", "settings.json.lock"]


def test_a_change_that_changes_nothing_writes_nothing(file: SettingsFile, path: Path) -> None:
    write(path, '{"default_agent":    "a"}')
    file.update(lambda document: None)
    assert path.read_text() == '{"default_agent":    "a"}'


def test_a_file_that_is_not_valid_can_be_corrected_by_a_change(file: SettingsFile, path: Path) -> None:
    write(path, {"api": {"port": "x"}, "kept": 1})
    with pytest.raises(InvalidSettings, match=r"api.port: must be a whole number"):
        file.load()
    file.merge({"api": {"port": 3777}})
    assert file.document() == {"api": {"port": 3777}, "kept": 1}


def test_a_mask_written_back_never_replaces_a_secret(file: SettingsFile, path: Path) -> None:
    write(
        path, {"models": {"openai": {"api_key": "sk-secret"}}, "channels": {"telegram": {"bot_token": "tg"}}}
    )
    shown = file.masked()
    assert shown["models"]["openai"]["api_key"] == MASK
    shown["models"]["openai"]["model"] = "new"
    file.merge(shown)
    stored = json.loads(path.read_text())
    assert stored["models"]["openai"] == {"api_key": "sk-secret", "model": "new"}
    assert stored["channels"]["telegram"]["bot_token"] == "tg"
    with pytest.raises(InvalidField, match=r"custom_providers.x.api_key"):
        file.merge({"custom_providers": {"x": {"api_key": MASK}}})
    file.replace(shown)
    assert MASK not in path.read_text()


def test_a_damaged_file_is_repaired_told_and_kept(file: SettingsFile, path: Path, told: list[str]) -> None:
    damaged = '{"default_agent": "a", // mine\n "agents": {"a": {"name": "sk-secret",},}'
    write(path, damaged)
    assert file.load().agents["a"].name == "sk-secret"
    kept = path.with_name("settings.json.broken-20270115T080000Z")
    assert kept.read_text() == damaged
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {"default_agent": "a", "agents": {"a": {"name": "sk-secret"}}}
    [message] = told
    assert str(kept) in message
    assert "line 1: a comment was left out" in message
    assert "sk-secret" not in message
    file.load()
    assert len(told) == 1


def test_older_copies_of_damaged_files_stay(file: SettingsFile, path: Path) -> None:
    for number in range(3):
        write(path, f'{{"n": {number},}}')
        file.document()
    stamp = "settings.json.broken-20270115T080000Z"
    kept = {entry.name: entry.read_text() for entry in path.parent.glob("*broken*")}
    assert kept == {stamp: '{"n": 0,}', f"{stamp}-1": '{"n": 1,}', f"{stamp}-2": '{"n": 2,}'}


@pytest.mark.parametrize("damaged", ["{a: 1}", "[]", "\0\0\0\0", '{"a": NaN}', b"\xff\xfe{}", DEEP])
def test_a_file_beyond_repair_is_never_overwritten(
    file: SettingsFile, path: Path, damaged: str | bytes
) -> None:
    data = damaged if isinstance(damaged, bytes) else damaged.encode()
    path.write_bytes(data)
    with pytest.raises(SettingsBroken, match="Nothing was changed"):
        file.load()
    with pytest.raises(SettingsBroken):
        file.merge({"default_agent": "a"})
    assert path.read_bytes() == data
    assert list(path.parent.glob("*broken*")) == []


def test_an_empty_file_and_a_byte_order_mark_are_no_damage(
    file: SettingsFile, path: Path, told: list[str]
) -> None:
    write(path, " \n")
    assert file.load() == parse({})
    path.write_bytes(b"\xef\xbb\xbf" + b'{"default_agent": "a"}')
    assert file.load().default_agent == "a"
    assert told == []


def test_a_file_that_is_just_being_written_is_not_taken_for_damaged(
    file: SettingsFile, path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = '{"default_agent": "a", "teams": {}}'
    write(path, whole[:25])
    lengths = iter((30, len(whole)))
    monkeypatch.setattr(settings_file.time, "sleep", lambda _: write(path, whole[: next(lengths, None)]))
    assert file.load().default_agent == "a"
    assert told == []
    assert path.read_text() == whole


@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_others_are_just_writing_anew_is_not_taken_for_empty(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """They empty it and fill it, or move it away first. A change at that moment must not lose the rest."""
    document = {"agents": {"coder": {"name": "Code Bot"}}}
    write(path, document)
    if gone:
        file.load()

    def filled(_: float) -> None:
        write(path, document)

    monkeypatch.setattr(settings_file.time, "sleep", filled)
    for use in (file.load, lambda: file.merge({"default_agent": "coder"})):
        if gone:
            path.unlink()
        else:
            path.write_bytes(b"")
        assert "coder" in use().agents
    assert json.loads(path.read_text()) == {**document, "default_agent": "coder"}


def test_a_change_is_seen_also_when_the_clock_of_the_disk_has_not_moved(
    file: SettingsFile, path: Path
) -> None:
    """Disks count time in steps; two writes in one step, of the same length, look the same."""
    write(path, {"default_agent": "a"})
    before = path.stat()
    assert file.load().default_agent == "a"
    with path.open("r+b") as opened:
        opened.write(path.read_bytes().replace(b'"a"', b'"b"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.load().default_agent == "b"


def test_a_damaged_file_that_cannot_be_repaired_on_disk_is_still_read(
    file: SettingsFile, path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, '{"default_agent": "a",}')

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "keep_copy", full)
    assert file.load().default_agent == "a"
    assert "no space left on device" in told[0]
    assert path.read_text() == '{"default_agent": "a",}'


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, {"default_agent": "a"})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(durable.os, "fsync", full)
        with pytest.raises(SettingsUnwritable, match="no space left on device"):
            file.merge({"default_agent": "b"})
    assert file.load().default_agent == "a"
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["settings.json", "settings.json.lock"]


def test_what_a_dead_writer_left_is_cleared_away(file: SettingsFile, path: Path) -> None:
    leftover = path.with_name(".settings.json.abc.tmp")
    leftover.write_text("half")
    file.merge({"default_agent": "a"})
    assert not leftover.exists()


def test_a_link_to_the_settings_stays_a_link(file: SettingsFile, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    write(target, {"default_agent": "a"})
    path.symlink_to(target)
    file.merge({"default_agent": "b"})
    assert path.is_symlink()
    assert json.loads(target.read_text()) == {"default_agent": "b"}


def test_a_folder_in_the_place_of_the_file_is_told(file: SettingsFile, path: Path) -> None:
    path.mkdir()
    with pytest.raises(SettingsBroken, match="is a directory"):
        file.load()


def test_a_lock_that_is_never_given_back_is_told(file: SettingsFile, path: Path) -> None:
    with durable.locked(path, 1), pytest.raises(SettingsBusy, match=r"more than 0\.2 s"):
        file.merge({"default_agent": "a"})
    file.merge({"default_agent": "a"})


def test_a_reader_sees_the_old_or_the_new_file_never_half_of_one(file: SettingsFile, path: Path) -> None:
    file.replace({"n": 0, "filling": "x" * 100_000})
    stop = threading.Event()
    seen: list[int] = []
    failures: list[Exception] = []

    def watch() -> None:
        while not stop.is_set():
            try:
                document = json.loads(path.read_bytes())
                assert len(document["filling"]) == 100_000
                seen.append(document["n"])
            except Exception as error:
                failures.append(error)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    for n in range(1, 30):
        file.merge({"n": n})
    stop.set()
    watcher.join()
    assert failures == []
    assert seen == sorted(seen)


def count_up(path: str, times: int) -> None:
    file = SettingsFile(path, patience_s=60)

    def one_more(document: dict[str, Any]) -> None:
        document["count"] = document.get("count", 0) + 1
        document.setdefault("writers", {}).setdefault(str(os.getpid()), 0)
        document["writers"][str(os.getpid())] += 1

    for _ in range(times):
        file.update(one_more)


def test_no_change_of_many_writers_is_lost(path: Path) -> None:
    spawning = multiprocessing.get_context("spawn")
    writers = [spawning.Process(target=count_up, args=(str(path), 40)) for _ in range(2)]
    for writer in writers:
        writer.start()
    threads = [threading.Thread(target=count_up, args=(str(path), 20)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.join(240)
        assert writer.exitcode == 0
    document = json.loads(path.read_text())
    assert document["count"] == 140
    assert sorted(document["writers"].values()) == [40, 40, 60]
