"""The examples for people who work with data are run as they are: the notebook, and the asset for Dagster."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import MESSAGE_LIFE
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import rows, same

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.timeout(300)
def test_every_cell_of_the_notebook_runs_and_its_last_answer_is_right(
    filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_LAKE", filled.location)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook: Any = nbformat.read(EXAMPLES / "lake.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without answers"
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    answers = [cell.outputs[-1].data["text/plain"] for cell in notebook.cells if cell.get("outputs")]
    assert len(answers) == 5
    lives = len(rows(filled, MESSAGE_LIFE))
    assert answers[-1] == str({"version": filled.snapshot(MESSAGE_LIFE).version, "messages": lives})


@pytest.fixture(scope="module")
def dagster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dagster in an environment of its own: it is far too heavy to be a library of ours."""
    place = tmp_path_factory.mktemp("dagster")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    done = subprocess.run([place / "bin/pip", "install", "-q", "dagster"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("Dagster cannot be installed here")
    return place / "bin/dagster"


def materialize(dagster: Path, home: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    home.mkdir(exist_ok=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [dagster, "asset", "materialize", "--select", "postroom_lake", "-f", EXAMPLES / "dagster_lake.py"],
        env={**os.environ, "PATH": path, "DAGSTER_HOME": str(home), **env},
        cwd=home, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_dagster_fills_the_lake_and_is_told_when_it_cannot(
    dagster: Path, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    done = materialize(dagster, tmp_path / "home", POSTROOM_STORE=month.path, POSTROOM_LAKE=lake)
    assert done.returncode == 0, done.stderr[-3000:]
    same(Lake(lake), filled)
    missing = str(tmp_path / "missing.db")
    done = materialize(dagster, tmp_path / "home", POSTROOM_STORE=missing, POSTROOM_LAKE=lake)
    assert done.returncode != 0
    assert "There is no store" in done.stderr
    assert "STEP_UP_FOR_RETRY" not in done.stderr


def test_the_notebook_is_valid_and_names_the_kernel_that_everybody_has() -> None:
    document = json.loads((EXAMPLES / "lake.ipynb").read_text("utf-8"))
    nbformat.validate(document)
    assert document["metadata"]["kernelspec"]["name"] == "python3"
