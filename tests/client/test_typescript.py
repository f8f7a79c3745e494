"""The TypeScript client that `scripts/build` makes of the OpenAPI document, tried with Node."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postroom.client import AsyncClient
from tests.api.house import TOKEN, opened
from tests.docs.blocks import texts_of

GENERATE = Path(__file__).parents[2] / "scripts" / "typescript" / "generate"
COMPILER = "typescript@7.0.2"
ROUND = Path(__file__).with_name("round.mts")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typescript")
    subprocess.run([sys.executable, GENERATE, folder], check=True, timeout=300)
    return folder


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: the TypeScript client is not tried with it")
    return found


async def run_node(program: Path, url: str) -> str:
    process = await asyncio.create_subprocess_exec(
        need("node"), program, url, TOKEN, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "URL": url, "TOKEN": TOKEN},
    )  # fmt: skip
    printed, wrong = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == 0, wrong.decode()
    return printed.decode()


async def test_the_client_does_a_round_with_node_and_so_does_the_page(package: Path, tmp_path: Path) -> None:
    shutil.copytree(package, tmp_path / "node_modules" / "postroom")
    program = tmp_path / "round.mjs"
    shutil.copy(ROUND, program)
    [example] = texts_of("docs/how-to/work-queue.md", "ts")
    (tmp_path / "example.mjs").write_text(example, "utf-8")
    async with opened(tmp_path, works=False) as house, AsyncClient(house.url, TOKEN) as client:
        printed = await run_node(program, house.url)
        document = (await house.http.get("/openapi.json")).json()
        await client.create_scope("orders")
        await client.create_queue("orders/new")
        await run_node(tmp_path / "example.mjs", house.url)
        [order] = await client.messages("orders")
    assert (order.body, order.result) == ({"order": 19}, {"paid": True})
    found = json.loads(printed)
    assert (found["same"], found["state"], found["gone"]) == (True, "completed", True)
    assert [each["body"] for each in found["page"]["data"]] == [{"order": 1}]
    assert found["parts"] == ["chunk", "Grüße ", "chunk", "📮", "closed", ""]
    assert found["refusals"] == [
        ["PostroomError", 404, "SCAIQUEUE_QUEUE_NOT_FOUND", 0],
        ["PostroomError", 422, "VALIDATION_ERROR", 1],
        ["TypeError", None, None, None],
    ]
    operations = sum(len(item) for path, item in document["paths"].items() if path.startswith("/v1/"))
    methods = re.findall(
        r"^  (?!constructor|request|events|async)\w+\(", (package / "index.js").read_text(), re.M
    )
    assert len(set(methods)) == operations
    assert len(re.findall(r"^  \w+\(.*\): ", (package / "index.d.ts").read_text(), re.M)) == operations


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_types_are_those_of_what_is_called(package: Path, tmp_path: Path) -> None:
    """With the compiler from the registry that npm is set up with."""
    npm = need("npm")
    shutil.copytree(package, tmp_path / "node_modules" / "postroom")
    strict = [
        "--noEmit",
        "--strict",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--lib",
        "es2022,dom,dom.iterable",
    ]

    def compile_program(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "round.mts").write_text(text, "utf-8")
        compiler = [npm, "exec", "--yes", "--package", COMPILER, "--", "tsc", *strict, "round.mts"]
        return subprocess.run(
            compiler,
            cwd=tmp_path,
            env={**os.environ, "CI": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    text = ROUND.read_text("utf-8") + "declare const process: { argv: string[] };\n"
    good = compile_program(text)
    if "ENOTFOUND" in good.stderr or "ECONNREFUSED" in good.stderr:
        pytest.skip("npm reaches no registry: the types are not tried with the compiler")
    assert good.returncode == 0, good.stdout + good.stderr
    bad = compile_program(text.replace("ordering:", "odering:").replace("done.data.state", "done.data.sate"))
    assert re.findall(r"'(odering|sate)'", bad.stdout) == ["odering", "sate"]
