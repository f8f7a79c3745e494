"""Skills of an agent: listed from its workspace, found and installed with the registry's own program."""

import asyncio
import contextlib
import os
import re
import shutil
from typing import Any

from postroom.errors import InvalidField, PostroomError
from postroom.office.memory_index import front_matter
from postroom.office.workspaces import SKILLS, Workspace

TIMEOUT_S = 120.0
MOST_BYTES = 200_000
_REF = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*@[A-Za-z0-9][\w.:-]*")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PASSED = ("PATH", "HOME", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "npm_config_registry")


class SkillsFailed(PostroomError):
    """{reason}"""

    code = "SKILLS_FAILED"
    http_status = 503


def installed(workspace: Workspace) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    folder = workspace.place(SKILLS)
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return []
    for name in names:
        if name.startswith("."):
            continue
        about: dict[str, str] = {}
        with contextlib.suppress(PostroomError):
            about = front_matter(workspace.read_text(f"{SKILLS}/{name}/SKILL.md", max_bytes=16_384))
        found.append(
            {"id": name, "name": about.get("name", name), "description": about.get("description", "")}
        )
    return found


async def find(workspace: Workspace, query: str) -> dict[str, Any]:
    words = query.split()
    if not words:
        return {"results": []}
    if any(word.startswith("-") for word in words):
        raise InvalidField("query", "holds a word that begins with -")
    raw = await _npx(workspace, "find", *words)
    return {"results": results(raw), "raw": raw}


def results(raw: str) -> list[dict[str, str]]:
    """`owner/repository@skill  1.2K installs`, and below it perhaps its address."""
    found: list[dict[str, str]] = []
    for line in raw.splitlines():
        if match := _REF.search(line):
            entry = {"ref": match[0]}
            if count := re.search(r"([\d.]+[KM]?) installs", line):
                entry["installs"] = count[1]
            found.append(entry)
        elif found and (address := re.search(r"https?://\S+", line)):
            found[-1].setdefault("url", address[0])
    return found


async def install(workspace: Workspace, ref: str) -> str:
    if not _REF.fullmatch(ref):
        raise InvalidField("ref", "must be like owner/repository@skill")
    return await _npx(workspace, "add", ref, "-a", "codex", "-y")


async def _npx(workspace: Workspace, *words: str) -> str:
    program = shutil.which("npx")
    if program is None:
        raise SkillsFailed(reason="npx is not installed. Install Node.js to use the registry of skills.")
    workspace.check()
    workspace.root.mkdir(parents=True, exist_ok=True)
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        program,
        "--yes",
        "skills",
        *words,
        cwd=workspace.root,
        env={**environment, "CI": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        raise SkillsFailed(reason=f"The registry did not answer within {TIMEOUT_S:g} seconds.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()
    text = _ANSI.sub("", output[:MOST_BYTES].decode("utf-8", "replace")).strip()
    if process.returncode:
        raise SkillsFailed(reason=text[-2000:] or f"npx ended with code {process.returncode}.")
    return text
