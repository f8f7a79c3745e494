"""`postroom demo portal` opens an office that lives, by a link that logs in, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2


def test_the_demo_office_opens_by_its_link_and_is_removed_by_ctrl_c(tmp_path: Path) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM")}
    with subprocess.Popen(
        [sys.executable, "-m", "postroom", "demo", "portal"],
        env={**own, "TMPDIR": str(tmp_path), "POSTROOM_HOME": str(tmp_path / "untouched")},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            said = ""
            while not (found := re.search(r"http://127\.0\.0\.1:\d+/login\?code=\S+", said)):
                line = process.stdout.readline()
                assert line, said
                said += line
            with httpx2.Client(timeout=60, follow_redirects=True) as browser:
                page = browser.get(found[0])
                assert page.status_code == 200
                assert "@books asks" in page.text
                assert "Demo" in page.text
                assert "front-desk" in browser.get(page.url.join("/agents")).text
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            process.wait(120)
    assert process.returncode == 0
    assert not list(tmp_path.glob("postroom-demo-*"))
    assert not (tmp_path / "untouched").exists()
