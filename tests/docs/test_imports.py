"""The import contracts refuse every direction that the layers forbid, and name every package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("planted_imports.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("planted")
    source = REPOSITORY / "src" / "postroom"
    shutil.copytree(source, folder / "postroom", ignore=_other_than_python)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), str(REPOSITORY / "pyproject.toml")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _other_than_python(where: Any, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py") and not Path(where, name).is_dir()]


@pytest.mark.xdist_group("imports")
def test_the_package_as_it_is_keeps_every_contract(found: dict[str, Any]) -> None:
    assert found["clean"] == []


@pytest.mark.xdist_group("imports")
def test_each_forbidden_import_breaks_a_contract(found: dict[str, Any]) -> None:
    pairs = {(source, target): broken for source, target, broken in found["pairs"]}
    assert {
        ("postroom.kernel", "postroom.app"),
        ("postroom.office", "postroom.api"),
        ("postroom.stores", "postroom.pipeline"),
        ("postroom.services", "postroom.api"),
        ("postroom.providers", "postroom.kernel"),
        ("postroom.client", "postroom.kernel"),
        ("postroom.pipeline", "postroom.office"),
        ("postroom.errors", "postroom.clock"),
    } <= pairs.keys()
    assert [pair for pair, broken in pairs.items() if not broken] == []


@pytest.mark.xdist_group("imports")
def test_a_package_that_no_layer_names_breaks_the_contract(found: dict[str, Any]) -> None:
    assert found["newcomer"] == ["Dependencies point inward"]
