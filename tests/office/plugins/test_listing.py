"""The list of plugins shows what is there now, not only what was there at the start."""

from pathlib import Path

from tests.office.plugins.shop import opened, write

from postroom.office.plugins import PluginState

UPPER = "def transform_incoming(text, context):\n    return text.upper()\n"


async def test_a_plugin_that_came_since_the_start_is_listed_and_does_not_run(tmp_path: Path) -> None:
    write(tmp_path, "loud.py", UPPER)
    plugins = await opened(tmp_path, "loud")
    write(tmp_path, "late.py", UPPER)
    write(tmp_path, "No Id.py", UPPER)
    found = {status.name: status for status in await plugins.look()}
    assert {name: status.state for name, status in found.items()} == {
        "loud": PluginState.RUNNING,
        "late": PluginState.NOT_ALLOWED,
        "no id": PluginState.BROKEN,
    }
    assert found["late"].path == str(tmp_path / "plugins" / "late.py")
    assert [status.name for status in plugins.statuses()] == ["loud"]
    await plugins.close()
