"""Only what the settings name is run; what cannot be loaded is listed, and the others work."""

import sys
from pathlib import Path

import pytest
from tests.office.plugins.shop import opened, states, status, write

from postroom.office.plugins import HookContext, PluginState
from postroom.settings import InvalidSettings, parse

UPPER = "def transform_incoming(text, context):\n    return text.upper()\n"


async def test_nothing_runs_unless_it_is_named(tmp_path: Path) -> None:
    write(tmp_path, "loud.py", f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n{UPPER}")
    plugins = await opened(tmp_path)
    assert {each.name: each.state for each in await plugins.look()} == {"loud": PluginState.NOT_ALLOWED}
    assert await plugins.incoming("hi", HookContext()) == "hi"
    assert not (tmp_path / "ran").exists()
    plugins = await opened(tmp_path, "loud")
    assert (tmp_path / "ran").exists()
    assert await plugins.incoming("hi", HookContext()) == "HI"
    await plugins.close()


async def test_files_packages_and_installed_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "single.py", UPPER)
    write(tmp_path, "folder/__init__.py", "from .inner import transform_incoming\n")
    write(tmp_path, "folder/inner.py", "def transform_incoming(text, context):\n    return text + '!'\n")
    site = tmp_path / "site"
    (site / "shout-1.0.dist-info").mkdir(parents=True)
    (site / "shout-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: shout\nVersion: 1.0\n")
    (site / "shout-1.0.dist-info/entry_points.txt").write_text(
        "[postroom.plugins]\nShout = shout_plugin:Shout\n"
    )
    (site / "shout_plugin.py").write_text(
        "class Shout:\n    def transform_incoming(self, text, context):\n        return text + '?'\n"
    )
    monkeypatch.syspath_prepend(str(site))
    plugins = await opened(tmp_path, "folder", "shout", "single")
    assert states(plugins) == dict.fromkeys(("folder", "shout", "single"), PluginState.RUNNING)
    assert [status.source for status in plugins.statuses()] == ["file", "package", "file"]
    assert await plugins.incoming("hi", HookContext()) == "HI!?"  # in the order of the settings
    await plugins.close()
    sys.modules.pop("shout_plugin", None)


async def test_a_file_cannot_take_the_place_of_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "real-1.0.dist-info").mkdir(parents=True)
    (site / "real-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: real\nVersion: 1.0\n")
    (site / "real-1.0.dist-info/entry_points.txt").write_text("[postroom.plugins]\nreal = real_plugin\n")
    (site / "real_plugin.py").write_text("def transform_incoming(text, context):\n    return 'real'\n")
    monkeypatch.syspath_prepend(str(site))
    write(tmp_path, "real.py", "def transform_incoming(text, context):\n    return 'false'\n")
    plugins = await opened(tmp_path, "real")
    assert await plugins.incoming("hi", HookContext()) == "real"
    assert [(status.source, status.state) for status in plugins.statuses()] == [
        ("package", PluginState.RUNNING),
        ("file", PluginState.BROKEN),
    ]
    await plugins.close()
    sys.modules.pop("real_plugin", None)


BROKEN = {
    "syntax.py": ("\ndef transform_incoming(text, context) return text", "SyntaxError in syntax.py, line 2"),
    "raises.py": ("raise ValueError('no')", "ValueError in raises.py, line 1: no"),
    "missing.py": ("import a_module_that_is_not_there", "ModuleNotFoundError"),
    "exits.py": ("import sys; sys.exit(0)", "SystemExit"),
    "empty.py": ("", "it has no hook"),
    "junk.py": ("transform_incoming = 3", "transform_incoming is not a function"),
    "junk2.py": ("activate = 'yes'", "activate is not a function"),
    "activates.py": ("def activate(plugin): raise OSError('disk')", "OSError in activates.py"),
    "wrong_on.py": ("def activate(plugin): plugin.on('x', 3)", "TypeError"),
    "hangs.py": ("import time; time.sleep(60)", "it took longer than 3 s"),
    "prints.py": ("print('x' * 10); print(undefined)", "NameError"),
}


async def test_what_cannot_be_loaded_is_listed_and_the_others_work(tmp_path: Path) -> None:
    for name, (source, _) in BROKEN.items():
        write(tmp_path, name, source)
    write(tmp_path, "good.py", UPPER)
    (tmp_path / "plugins/bytes.py").write_bytes(b"\xff\xfe\x00")
    names = [name.removesuffix(".py") for name in BROKEN]
    plugins = await opened(tmp_path, *names, "bytes", "ghost", "good", load_s=3)
    assert await plugins.incoming("hi", HookContext()) == "HI"
    for name, (_, problem) in BROKEN.items():
        found = status(plugins, name.removesuffix(".py"))
        assert found.state is PluginState.BROKEN
        assert problem in (found.last_error or "")
    assert status(plugins, "bytes").state is PluginState.BROKEN
    assert status(plugins, "ghost").state is PluginState.MISSING
    await plugins.close()


async def test_names_with_tricks_and_files_that_are_no_plugins_are_not_run(tmp_path: Path) -> None:
    for name in (".hidden.py", "_private.py", "a b.py", "notes.txt", "UPPER.py"):
        write(tmp_path, name, UPPER)
    (tmp_path / "plugins/empty_folder").mkdir()
    (tmp_path / "plugins/dangling.py").symlink_to(tmp_path / "nowhere.py")
    plugins = await opened(tmp_path, "upper")
    assert states(plugins) == {"upper": PluginState.RUNNING, "a b": PluginState.BROKEN}
    await plugins.close()
    for name in ("../x", "a/b", "", "a b"):
        with pytest.raises(InvalidSettings, match=r"plugins\.allowed"):
            parse({"plugins": {"allowed": [name]}})


async def test_code_that_everybody_may_change_is_not_run(tmp_path: Path) -> None:
    write(tmp_path, "open.py", UPPER).chmod(0o666)
    write(tmp_path, "package/__init__.py", UPPER)
    (tmp_path / "plugins/package").chmod(0o777)
    plugins = await opened(tmp_path, "open", "package")
    assert set(states(plugins).values()) == {PluginState.BROKEN}
    assert "everybody may write" in (status(plugins, "open").last_error or "")
    assert await plugins.incoming("hi", HookContext()) == "hi"


async def test_a_plugin_hides_no_module_of_others(tmp_path: Path) -> None:
    write(tmp_path, "json.py", UPPER)
    plugins = await opened(tmp_path, "json")
    import json

    assert json.loads("1") == 1
    assert "plugins" not in str(json.__file__)
    await plugins.close()


async def test_a_room_without_plugins_has_none(tmp_path: Path) -> None:
    plugins = await opened(tmp_path)
    assert plugins.statuses() == []
    (tmp_path / "plugins").write_text("a file")
    assert (await opened(tmp_path)).statuses() == []
