"""Java is found where it may be, and its absence is told with what to install."""

import os
import stat
from pathlib import Path

import pytest

from postroom.pipeline.errors import JavaMissing
from postroom.pipeline.jobs.java import find_java


def java(home: Path, version: str, release: str | None = None) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    answer = f"echo 'openjdk version \"{version}\"' >&2"
    program.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then {answer}; else echo "$@"; fi\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if release is not None:
        (home / "release").write_text(release)
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = java(tmp_path / "jdk", "21.0.2")
    found = find_java({"JAVA_HOME": str(home), "PATH": os.environ["PATH"]}, tmp_path)
    assert (found.home, found.version) == (home, 21)


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = java(tmp_path / "old", "1.8.0_392"), java(tmp_path / "new", "17.0.1")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, tmp_path)
    assert found.version == 17


def test_without_any_the_message_says_what_to_install(tmp_path: Path) -> None:
    old = java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing) as told:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)}, tmp_path)
    assert "is Java 11" in str(told.value)
    assert "apt install openjdk-17-jre-headless" in str(told.value)


def test_a_runtime_without_the_vector_module_gets_a_launcher_that_leaves_it_out(tmp_path: Path) -> None:
    import subprocess

    home = java(tmp_path / "slim", "21.0.1", release='MODULES="java.base java.sql"\n')
    found = find_java({"JAVA_HOME": str(home), "PATH": ""}, tmp_path / "scratch")
    assert found.home != home
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "Main", "a b"]
    said = subprocess.run([str(found.home / "bin/java"), *words], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "-Xmx1g Main a b"
