"""The examples of the README run as they stand."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import mariadb_server, postgres_server
from tests.docs.blocks import texts_of
from tests.docs.shell_pages import type_in

README = Path(__file__).parents[2] / "README.md"


def python_blocks() -> list[str]:
    return texts_of("README.md", "python")


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_first_example_runs_and_leaves_a_completed_order(tmp_path: Path) -> None:
    done = run(python_blocks()[0], tmp_path)
    assert done.returncode == 0, done.stderr
    check = run(
        "import postroom\n"
        "with postroom.open_sync('sqlite:///room.db') as room:\n"
        "    print(room.counts('orders').completed, len(room.records('cost')))",
        tmp_path,
    )
    assert check.stdout.split() == ["1", "1"], check.stderr


def test_the_worker_example_handles_a_message(tmp_path: Path) -> None:
    worker = python_blocks()[1].replace("await room.run_workers()", "")
    body = "\n".join(f"        {line}" for line in worker.splitlines())
    program = (
        "import asyncio, postroom\n"
        "async def main():\n"
        "    async with postroom.open('memory://') as room:\n"
        "        await room.create_queue('orders')\n"
        "        sent = await room.publish('orders', 1)\n"
        f"{body}\n"
        "        running = asyncio.create_task(room.run_workers())\n"
        "        while (await room.get(sent.id)).state != 'completed':\n"
        "            await asyncio.sleep(0.01)\n"
        "        room.stop_workers()\n"
        "        await running\n"
        "        print((await room.get(sent.id)).result)\n"
        "asyncio.run(main())\n"
    )
    done = run(program, tmp_path)
    assert done.stdout.strip() == "{'paid': True}", done.stderr


@pytest.mark.parametrize("page", [*sorted(README.parent.glob("docs/**/*.md")), README], ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


DOCS = README.parent / "docs"


def blocks_of(page: str) -> list[str]:
    return texts_of(f"docs/{page}", "python")


def test_the_page_about_agents_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("\n".join(blocks_of("how-to/agents.md")), tmp_path)
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first == "opus ('dev',)"
    assert last.endswith(" moved")


def test_the_page_about_providers_runs_as_it_stands(tmp_path: Path) -> None:
    [program] = blocks_of("reference/providers.md")
    done = run(f"{program}\nimport asyncio\nasyncio.run(main())\n", tmp_path)
    assert "answer:" in done.stdout, done.stderr


def test_the_page_about_documents_runs_as_it_stands(tmp_path: Path) -> None:
    [program] = blocks_of("concepts/documents.md")
    imports, *body = program.splitlines()
    lines = "\n".join(f"        {line}" for line in body)
    done = run(
        f"import asyncio, postroom\n{imports}\n"
        "async def main():\n"
        "    async with postroom.open('memory://') as room:\n"
        f"{lines}\n"
        "        print(version, len(listed), await room.document('task', 't1'))\n"
        "asyncio.run(main())\n",
        tmp_path,
    )
    assert done.stdout.strip() == "1 1 None", done.stderr


def test_functions_named_in_the_page_about_guards_are_there() -> None:
    from postroom.office.guards import pauses

    table = (DOCS / "concepts" / "guards.md").read_text("utf-8").partition("guards.pauses`")[2]
    names = re.findall(r"`(\w+)\(room", table.partition("Each is one transaction")[0])
    assert len(names) > 6
    assert [name for name in names if not callable(getattr(pauses, name, None))] == []


def test_every_setting_of_the_code_is_on_the_page_and_the_other_way_round() -> None:
    from postroom.settings.field_names import known_names, unknown_names
    from postroom.settings.model import Settings
    from postroom.settings.part import SettingsPart

    text = (DOCS / "reference" / "settings.md").read_text("utf-8").partition("## Fields of our own")[2]
    told: set[str] = set()
    for first in re.findall(r"^\| (`.+?) \|", text, re.MULTILINE):
        part, *names = re.findall(r"`(\w+)`", first)
        told |= {f"{part}.{name}" for name in names} or {part}
    assert [name for name in told if unknown_names(name)] == []
    own = ("workspace", "channels", "models", "agents", "custom_providers", "teams", "monitoring")
    known = {
        name
        for name in known_names()
        if name.partition(".")[0] not in own and not isinstance(getattr(Settings(), name, None), SettingsPart)
    }
    assert known == told


def test_the_example_of_a_channel_test_runs(tmp_path: Path) -> None:
    [program] = blocks_of("how-to/test-a-channel.md")
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_page_about_workers_runs_as_it_stands(tmp_path: Path) -> None:
    worker, unit = blocks_of("how-to/workers.md")
    done = run(worker, tmp_path)
    assert done.stdout.splitlines() == [
        "completed 1 {'paid': 12}",
        "completed 2 {'paid': 7}",
        "dead 1 an order cannot be negative",
        "delayed 0 comes back in an hour",
    ], done.stderr
    done = run(unit, tmp_path)
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_the_page_about_queues_runs_as_it_stands(tmp_path: Path) -> None:
    create, graph = blocks_of("how-to/queues.md")
    body = "".join(f"        {line}\n" for line in f"{create}{graph}".splitlines())
    done = run(
        "import asyncio, postroom\n"
        "async def main():\n"
        "    async with postroom.open('memory://') as room:\n"
        f"{body}"
        "        print((await room.counts('orders')).pending, (await room.counts('orders')).delayed)\n"
        "asyncio.run(main())\n",
        tmp_path,
    )
    assert done.stdout.split() == ["2", "1"], done.stderr


def test_the_plugin_of_the_page_changes_what_it_says(tmp_path: Path) -> None:
    [program] = blocks_of("how-to/plugins.md")
    [allowed] = texts_of("docs/how-to/plugins.md", "json")
    home = tmp_path / ".postroom"
    (home / "plugins").mkdir(parents=True)
    (home / "plugins" / "greeter.py").write_text(program)
    here = json.loads(allowed) | {"agents": {"assistant": {"name": "Assistant", "provider": "script"}}}
    (home / "settings.json").write_text(json.dumps(here))
    said = type_in('postroom send "@assistant call me asap" --wait; postroom plugins list', tmp_path)
    assert "call me as soon as you can" in said
    assert "greeter" in said


@pytest.mark.parametrize("server", [postgres_server.shared_server, mariadb_server.shared_server])
def test_a_room_on_a_server_is_opened_as_the_page_says(server: Callable[[], Any], tmp_path: Path) -> None:
    found = server()
    if found is None:
        pytest.skip("the server is not installed")
    url = found.url_of_empty_room(tmp_path)
    [program] = [each for each in blocks_of("operations/scale-out.md") if url.partition(":")[0] in each]
    here = re.sub(r'"\w+://[^"]+"', repr(url), program).replace("...", "print(len(await room.scopes()))")
    lines = "".join(f"    {line}\n" for line in here.splitlines())
    done = run(f"import asyncio, postroom\nasync def main():\n{lines}asyncio.run(main())\n", tmp_path)
    assert done.stdout.split() == ["1"], done.stderr
