"""The examples of the README run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)


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
