"""How the commands of a page are run as they stand: in one shell, with an empty home and the script provider.

A page may take something for granted (`before`), name things that only the reader has (`names`), and show
lines that cannot be run here (`not_run`, each with its reason). Nothing else of a page is changed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.blocks import texts_of

_INSTALLS = "takes packages from an index; the test of the built wheel resolves every extra"


@dataclass(frozen=True)
class ShellPage:
    path: str
    says: tuple[str, ...]
    """What must be found in the output, in this order."""
    before: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Beginnings of lines, and why these are not run."""

    def script(self) -> str:
        lines = "\n".join(texts_of(self.path, "sh"))
        for start in self.excuses:
            lines = re.sub(rf"^{re.escape(start)}(.*\\\n)*.*$", ": not run", lines, flags=re.MULTILINE)
        for name, here in self.names.items():
            assert name in lines, f"{self.path} no longer says {name!r}"
            lines = lines.replace(name, here)
        return f"{self.before}\n{lines}"

    @property
    def excuses(self) -> Mapping[str, str]:
        shown = "\n".join(texts_of(self.path, "sh"))
        installs = re.findall(r"^pip install .*$", shown, re.MULTILINE)
        return {**dict.fromkeys(installs, _INSTALLS), **self.not_run}


def reader_environment(folder: Path, **more: str) -> dict[str, str]:
    """Somebody with nothing but Postroom: an empty home, no settings, no keys, any free port."""
    kept = {name: os.environ[name] for name in ("LANG", "JAVA_HOME", "TMPDIR") if name in os.environ}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(folder), "TERM": "xterm",
            "POSTROOM_API_PORT": "0", "PYTHONWARNINGS": "error", **more}  # fmt: skip


def type_in(script: str, folder: Path, **environment: str) -> str:
    """What a shell says to these lines."""
    log = folder / "typed.log"
    with log.open("w") as out:
        done = subprocess.run(
            ["bash", "-xeuo", "pipefail", "-c", script], cwd=folder,
            env=reader_environment(folder, **environment), stdin=subprocess.DEVNULL, stdout=out,
            stderr=out, timeout=240, check=False,
        )  # fmt: skip
    said = log.read_text("utf-8", "replace")
    assert done.returncode == 0, said[-4000:]
    return said


def stop_office(folder: Path) -> None:
    """What a page started is stopped, also when it does not say so."""
    subprocess.run(
        ["postroom", "stop"], cwd=folder, env=reader_environment(folder), capture_output=True, timeout=240,
        check=False,
    )  # fmt: skip


def run_page(page: ShellPage, folder: Path, **environment: str) -> None:
    try:
        rest = type_in(page.script(), folder, **environment)
    finally:
        stop_office(folder)
    for words in page.says:
        _, found, rest = rest.partition(words)
        assert found, f"{page.path} did not say {words!r}: {rest[-3000:]}"


TELEGRAM = ShellPage("docs/how-to/telegram.md", ())
PAGES = (
    ShellPage(
        "README.md",
        ("postroom ready on", "/login?code=", "This is @assistant", "coder works in", "For team #dev",
         "is scheduled", "waiting 0", "→ @assistant", "budget of today", "ok"),
        names={
            "postroom setup ": "postroom setup --provider script ",
            "postroom trace ID": "postroom trace $(postroom send '@assistant hi' --json | jq -r .messageId)",
        },
        not_run={
            "scripts/run": "tests/app/test_first_run.py runs it",
            "source .venv": "the environment of the tests is active already",
            "scripts/test": "is what runs this test",
        },
    ),
    ShellPage("CONTRIBUTING.md", (), not_run={
        "scripts/": "they build, check and measure this checkout; one of them runs this",
    }),
    ShellPage("docs/how-to/channels.md", ("matrix",)),
    ShellPage(
        "docs/how-to/command-line.md",
        ("hello", "postroom ready on", "/login?code=", "works in"),
        before="""
            work() { grep -q world <<<"$1"; }
            postroom team add dev assistant --leader assistant
            git config --global user.name Ann
            git config --global user.email ann@example.org
            git init -q ~/notes
            git -C ~/notes commit -q --allow-empty -m first
        """,
        names={
            "01890a5d-ac96-774b-bcce-b302099a8057":
                "$(postroom publish jobs '{\"hello\": \"world\"}' --key greeting-1 --json | jq -r .id)",
            "/mnt/old/": "old/",
            "/somewhere/else/": "",
        },
    ),
    ShellPage(
        "docs/how-to/office.md",
        ("postroom ready on", "This is @assistant"),
        before="echo 'what is new?' > question.txt",
        names={
            "postroom setup\n": "postroom setup --provider script\n",
            "import tinyagi\n": "import tinyagi <<<y\n",
        },
    ),
    ShellPage("docs/how-to/test-a-channel.md", ()),
    ShellPage(
        "docs/reference/providers.md",
        ("scout works in",),
        before="postroom agent add coder --provider anthropic",
    ),
)  # fmt: skip
