"""Logs do not stay for ever: what is older than the settings say goes, and the rest does not."""

import logging
import os
import time
from pathlib import Path

from postroom.app import logs
from postroom.app.redaction import Redactor
from postroom.services.log_lines import FILE

DAY_S = 24 * 3600


def aged(path: Path, days: float) -> Path:
    path.write_text("{}\n")
    moment = time.time() - days * DAY_S
    os.utime(path, (moment, moment))
    return path


def test_files_into_which_nothing_was_written_for_long_are_removed(tmp_path: Path) -> None:
    old, young = aged(tmp_path / f"{FILE}.2", 31), aged(tmp_path / f"{FILE}.1", 29)
    other = aged(tmp_path / "notes.txt", 400)
    with logs.logging_to(tmp_path, "info", Redactor([]), terminal=False, days=30):
        assert [old.exists(), young.exists(), other.exists()] == [False, True, True]
    old = aged(tmp_path / f"{FILE}.2", 400)
    with logs.logging_to(tmp_path, "info", Redactor([]), terminal=False, days=None):
        assert old.exists(), "null keeps for ever"


def test_a_file_that_began_too_long_ago_is_replaced_while_the_house_is_open(tmp_path: Path) -> None:
    """Its lines go with it, when they are old enough; a quiet house would otherwise keep them for years."""
    began = "2020-01-01T00:00:00.000Z"
    (tmp_path / FILE).write_text(f'{{"time": "{began}", "level": "INFO", "text": "old"}}\n')
    with logs.logging_to(tmp_path, "info", Redactor([]), terminal=False, days=30):
        logging.getLogger("postroom.test").info("new")
        logging.getLogger("postroom.test").info("newer")
    assert "old" in (tmp_path / f"{FILE}.1").read_text()
    assert [line.count("new") for line in (tmp_path / FILE).read_text().splitlines()] == [1, 1]


def test_what_is_old_goes_once_a_day_without_a_restart(tmp_path: Path) -> None:
    with logs.logging_to(tmp_path, "info", Redactor([]), terminal=False, days=1):
        old = aged(tmp_path / f"{FILE}.1", 2)
        log = logging.getLogger("postroom.test")
        log.info("now")
        assert old.exists()
        record = log.makeRecord(log.name, logging.INFO, __file__, 1, "tomorrow", (), None)
        record.created = time.time() + DAY_S + 60
        log.handle(record)
        assert not list(tmp_path.glob(f"{FILE}.*")) or "{}" not in (tmp_path / f"{FILE}.1").read_text()
