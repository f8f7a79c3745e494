"""Every command that a page shows is typed as it stands, from the first to the last, in one shell a page."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from postroom.testing import FakeTelegram, Person
from tests.docs.blocks import texts_of
from tests.docs.shell_pages import PAGES, TELEGRAM, ShellPage, run_page, stop_office, type_in
from tests.office.imports import installations


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_the_commands_of_a_page_run_as_they_stand(page: ShellPage, tmp_path: Path) -> None:
    if "jq -r" in page.script() and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    if "import tinyagi" in page.script():
        (tmp_path / "old").mkdir()
        installations.head(tmp_path / "old")
        installations.head(tmp_path)
        installations.g0(tmp_path)
    run_page(page, tmp_path)


async def test_the_page_about_telegram_ends_with_an_answer(tmp_path: Path) -> None:
    start, approve = texts_of(TELEGRAM.path, "sh")
    ann = Person("1001", "Ann Archer")
    async with FakeTelegram() as telegram:
        try:
            start = start.replace("110201543:AAHdq…", telegram.token)
            here = f"postroom settings set channels.telegram.base_url {telegram.url}\n{start}"
            await asyncio.to_thread(type_in, here, tmp_path)
            await telegram.write(ann, "hello")
            [asked] = await telegram.transcript.wait_for("pairing approve", chat=ann.id)
            [code] = re.findall(r"pairing approve (\w+)", asked.text)
            said = await asyncio.to_thread(type_in, approve.replace("7KQ2M4XA", code), tmp_path)
            assert "Ann Archer" in said
            await telegram.write(ann, "hello again")
            await telegram.transcript.wait_for("This is @assistant", chat=ann.id)
        finally:
            await asyncio.to_thread(stop_office, tmp_path)
