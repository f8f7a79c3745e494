"""The first run brings what users need and no tools of developers, the office first; so does the wheel."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.docs.test_pins import read_pins

ROOT = Path(__file__).parents[2]
DEVELOPERS = {
    "coverage",
    "hypothesis",
    "import-linter",
    "moto",
    "playwright",
    "pyright",
    "pytest",
    "ruff",
    "schemathesis",
}
EXTRAS = [
    each for each in metadata("postroom").get_all("Provides-Extra") or [] if each not in ("dev", "bench")
]


def read_versions(name: str) -> dict[str, str]:
    """Of what is for this machine."""
    lines = (ROOT / "requirements" / name).read_text("utf-8").splitlines()
    pins = [Requirement(line.removesuffix("\\").strip()) for line in lines if line[:1].isalnum()]
    return {pin.name: str(pin.specifier) for pin in pins if pin.marker is None or pin.marker.evaluate()}


def test_what_is_installed_first_is_never_replaced_by_what_comes_later() -> None:
    base, run, dev = (read_versions(name) for name in ("base.txt", "run.txt", "dev.txt"))
    assert {name: run[name] for name in base if name in run and run[name] != base[name]} == {}
    assert {name: dev.get(name) for name in {**base, **run}} == {**base, **run}
    needed = {Requirement(line) for line in requires("postroom") or () if "extra ==" not in line}
    assert {each.name for each in needed if each.marker is None or each.marker.evaluate()} <= set(base)


def test_users_get_no_tools_of_developers_and_spark_after_the_office() -> None:
    base, run = read_pins("base.txt"), read_pins("run.txt")
    assert DEVELOPERS & {*base, *run} == set()
    assert set(read_pins("dev.txt")) > DEVELOPERS
    assert {"pyspark", "pyarrow", "duckdb"} <= set(run) - set(base)
    assert {"textual", "fastapi", "apsw"} <= set(base)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=240)
    [found] = folder.glob("*.whl")
    return found


def test_the_wheel_holds_the_whole_program(wheel: Path, tmp_path: Path) -> None:
    """Every file of the package, and a room that works from it alone."""
    there = tmp_path / "there"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(there)
    ours = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file()}
    ours = {path for path in ours if "__pycache__" not in path.parts}
    assert sorted(path for path in ours if not (there / path).is_file()) == []
    assert not (there / "tests").exists()
    program = (
        "import postroom\n"
        "print(postroom.__file__)\n"
        "with postroom.open_sync('sqlite:///room.db') as room:\n"
        "    room.create_queue('jobs')\n"
        "    room.publish('jobs', 1)\n"
        "    print(room.counts('jobs').pending)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(there)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    where, pending = done.stdout.split()
    assert Path(where).is_relative_to(there)
    assert pending == "1"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_wheel_installs_in_an_empty_environment_alone_and_with_each_extra(
    wheel: Path, tmp_path: Path
) -> None:
    """From the index that pip is set up with."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=240)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "POSTROOM"))}
    env |= {"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.environ.get("PIP_CONFIG_FILE", "/etc/pip.conf")}

    def run(program: str, *words: str) -> str:
        done = subprocess.run(
            [tmp_path / "venv" / "bin" / program, *words],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("pip", "install", "-q", str(wheel))
    assert run("postroom", "--version").strip() == metadata("postroom")["Version"]
    assert "completed" in run("postroom", "demo", "queue", "--once")
    assert "This is @assistant" in run("postroom", "send", "@assistant hello", "--wait")
    for extra in EXTRAS:
        run("pip", "install", "-q", f"{wheel}[{extra}]")
        run("pip", "check")
    assert "This is @assistant" in run("postroom", "send", "@assistant hello", "--wait")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_new_checkout_shows_the_demo_before_spark_is_there(tmp_path: Path) -> None:
    """Both commands of the README begin with nothing but Python; this is the first of them."""
    shutil.copytree(
        ROOT, tmp_path / "new", ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*cache")
    )
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "POSTROOM"))
    }
    done = subprocess.run(
        ["scripts/run", "--once"], cwd=tmp_path / "new", env={**env, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1700, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "being installed" in done.stderr
    assert "all parts are installed, Spark included" in done.stderr
    packages = {path.name.partition("-")[0].lower() for path in (tmp_path / "new/.venv").rglob("*.dist-info")}
    assert "pyspark" in packages
    assert packages & {"pytest", "ruff", "pyright", "hypothesis", "coverage"} == set()
