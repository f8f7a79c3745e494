"""No block of any page is only to be believed: each is run, read as the data it is, or excused by name."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from postroom.providers.script_rules import read_script
from postroom.settings.model import parse
from tests.docs.blocks import ROOT, Block, read_all, read_page
from tests.docs.shell_pages import PAGES, TELEGRAM, ShellPage
from tests.spark.pipeline_page import PIPELINE

SHELL_PAGES: dict[str, ShellPage] = {page.path: page for page in (*PAGES, TELEGRAM, PIPELINE)}
# Which test runs the blocks of a kind on a page. Each takes all of them, by their number.
RUN_BY = {
    ("README.md", "python"): "tests/docs/test_examples.py",
    ("docs/concepts/documents.md", "python"): "tests/docs/test_examples.py",
    ("docs/how-to/agents.md", "python"): "tests/docs/test_examples.py",
    ("docs/how-to/pipeline.md", "python"): "tests/spark/test_pipeline_page.py",
    ("docs/how-to/plugins.md", "python"): "tests/docs/test_examples.py",
    ("docs/how-to/queues.md", "python"): "tests/docs/test_examples.py",
    ("docs/how-to/reviews.md", "python"): "tests/docs/test_work_queue_examples.py",
    ("docs/how-to/rules.md", "python"): "tests/docs/test_work_queue_examples.py",
    ("docs/how-to/schedules.md", "python"): "tests/office/schedules/test_page.py",
    ("docs/how-to/test-a-channel.md", "python"): "tests/docs/test_examples.py",
    ("docs/how-to/work-queue.md", "python"): "tests/docs/test_work_queue_examples.py",
    ("docs/how-to/work-queue.md", "ts"): "tests/client/test_typescript.py",
    ("docs/how-to/work-queue.md", "sh"): "tests/docs/test_work_queue_examples.py",
    ("docs/how-to/workers.md", "python"): "tests/docs/test_examples.py",
    ("docs/operations/scale-out.md", "python"): "tests/docs/test_examples.py",
    ("docs/operations/scale-out.md", "sh"): "tests/docs/test_scale_out_page.py",
    ("docs/operations/spark-cluster.md", "sh"): "tests/spark/test_cluster_page.py",
    ("docs/reference/providers.md", "python"): "tests/docs/test_examples.py",
    ("docs/reference/python.md", "pycon"): "tests/docs/test_python_reference.py",
    ("docs/reference/python.md", "python"): "tests/docs/test_python_reference.py",
}
BLOCKS = read_all()
SETTINGS = {"docs/how-to/teams.md", "docs/how-to/plugins.md", "docs/operations/scale-out.md"}
COMMAND = re.compile(r"^\s*(\$ )?(postroom|pip|curl|scripts/\w+|export) ", re.MULTILINE)


def find_gap(block: Block) -> str | None:
    """Why a block could be wrong without any test telling."""
    match block.kind:
        case "":
            return "has no kind: say sh, python, json, toml or text"
        case "text":
            return "shows commands that no test types" if COMMAND.search(block.text) else None
        case "json" | "toml":
            return None  # test_data_is_what_it_says reads all of them
        case "sh" if block.page in SHELL_PAGES:
            return None
        case _:
            runner = RUN_BY.get((block.page, block.kind))
            return None if runner else f"is {block.kind} that no test runs"


def test_every_block_is_run_or_excused() -> None:
    assert {str(block): gap for block in BLOCKS if (gap := find_gap(block))} == {}


def test_whatever_is_said_to_be_run_is() -> None:
    shown = {(block.page, block.kind) for block in BLOCKS}
    for (page, kind), runner in RUN_BY.items():
        assert (page, kind) in shown, f"{page} has no {kind} any more"
        assert Path(page).name in (ROOT / runner).read_text("utf-8"), f"{runner} does not read {page}"
    assert {path for path in SHELL_PAGES if (path, "sh") not in shown} == set()


@pytest.mark.parametrize("page", SHELL_PAGES.values(), ids=lambda page: page.path)
def test_lines_that_are_not_run_are_there_and_have_a_reason(page: ShellPage) -> None:
    shown = "".join(block.text for block in read_page(ROOT / page.path) if block.kind == "sh")
    for start, reason in page.excuses.items():
        assert re.search(rf"^{re.escape(start)}", shown, re.MULTILINE), (
            f"{page.path} has no {start!r} any more"
        )
        assert len(reason) > 10, start


def test_a_block_without_a_test_would_be_found() -> None:
    def gap(kind: str, text: str, page: str = "docs/new.md") -> bool:
        return find_gap(Block(page, 1, kind, text)) is not None

    assert gap("", "anything")
    assert gap("sh", "postroom status")
    assert gap("python", "print(1)")
    assert gap("text", "a\npostroom status\n")
    assert not gap("text", "a ──► b")
    assert not gap("sh", "postroom status", "README.md")
    assert len(BLOCKS) > 200


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.kind in ("json", "toml")], ids=str)
def test_data_is_what_it_says(block: Block) -> None:
    if block.kind == "toml":
        assert tomllib.loads(block.text)
        return
    document = json.loads(block.text)
    if block.page in SETTINGS or "channels" in document:
        assert parse(document)
    if "rules" in document:
        assert len(read_script(block.text).rules) == len(document["rules"])


def test_the_scripts_that_contributors_are_told_of_are_there() -> None:
    told = set(re.findall(r"`?(scripts/\w+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    assert len(told) > 5
    for script in told:
        assert (ROOT / script).stat().st_mode & 0o111, script
