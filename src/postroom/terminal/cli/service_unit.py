"""The systemd unit of one user, written where its manager looks, and started if that is wanted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from postroom.app.home import Home

NAME = "postroom.service"
PROGRAM = "%h/.local/bin/postroom"
UNIT = """\
# A systemd unit for one user: copy it to ~/.config/systemd/user/, then
#   systemctl --user enable --now postroom
# It keeps its files in ~/.postroom; `loginctl enable-linger` lets it run without a login.
[Unit]
Description=Postroom, the post room of a team of AI agents

[Service]
Type=exec
{environment}ExecStart={program} start --foreground
# Turns in hand may finish; what is accepted survives a kill as well.
TimeoutStopSec=45
# A second start while one runs (5) and settings that are wrong (2) are not cured by trying again.
Restart=on-failure
RestartPreventExitStatus=2 5
RestartSec=2
# A user's own manager cannot close off the file system; agents are kept to their folders by their programs.
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
"""


def build_unit(program: str = PROGRAM, home: str | None = None) -> str:
    """`home` only where it is not the usual one."""
    environment = "" if home is None else f"Environment=POSTROOM_HOME={_quote(home)}\n"
    return UNIT.format(program=_quote(program), environment=environment)


def write_unit(home: Home) -> Path:
    """For the program that runs now, and this home."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "systemd" / "user"
    folder.mkdir(parents=True, exist_ok=True)
    program = Path(sys.executable).with_name("postroom")
    usual = Path("~/.postroom").expanduser()
    unit = folder / NAME
    unit.write_text(build_unit(str(program), None if home.path == usual else str(home.path)), "utf-8")
    return unit


def start_unit() -> str:
    """What went wrong, or nothing."""
    systemctl = shutil.which("systemctl")
    if systemctl is None:
        return "there is no systemctl here"
    for words in (["daemon-reload"], ["enable", "--now", NAME]):
        done = subprocess.run([systemctl, "--user", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr or done.stdout).strip() or f"systemctl ended with {done.returncode}"
    return ""


def _quote(text: str) -> str:
    """As systemd reads words: spaces need quotes."""
    return f'"{text}"' if " " in text else text
