"""Copies of the store: made while everybody works, tried out, and only by the owner."""

import os
from pathlib import Path

import pytest

from postroom.app.backup_commands import BackupCommands, BackupNotMade
from postroom.services.backups import FOLDER, BackupService, BackupUnavailable, BackupUnknown
from postroom.services.errors import OwnerOnly
from postroom.services.office_context import ServerFacts
from tests.services.office.conftest import ServedOffice


def backups(office: ServedOffice) -> BackupService:
    tool = BackupCommands(office.home, os.environ)
    return office.with_server(ServerFacts(backups=tool)).backups


def forget_check(path: str) -> None:
    Path(f"{path}.checked").write_text("who knows")


def flip_a_byte(path: str) -> None:
    damaged = bytearray(Path(path).read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    Path(path).write_bytes(damaged)


async def test_a_copy_is_made_verified_listed_tried_and_removed(office: ServedOffice) -> None:
    await office.room.create_queue("orders")
    await office.room.publish("orders", {"order": 1})
    service = backups(office)
    made = await service.make(office.owner)
    assert made.checked_at is not None
    assert await service.list_all(office.owner) == [made]
    forget_check(made.path)
    assert [copy.checked_at for copy in await service.list_all(office.owner)] == [None]
    tried = await service.drill(office.owner, made.name)
    assert tried.checked_at is not None
    await service.remove(office.owner, made.name)
    assert await service.list_all(office.owner) == []
    assert list((office.home / FOLDER).iterdir()) == []


async def test_a_damaged_copy_fails_its_drill(office: ServedOffice) -> None:
    service = backups(office)
    made = await service.make(office.owner)
    flip_a_byte(made.path)
    with pytest.raises(BackupNotMade, match="not as it was written"):
        await service.drill(office.owner, made.name)


@pytest.mark.parametrize("name", ["../settings.json", "/etc/passwd", "nothing.db", "a/b.db", ""])
async def test_no_other_file_is_reached(office: ServedOffice, name: str) -> None:
    service = backups(office)
    for act in (service.drill, service.remove):
        with pytest.raises(BackupUnknown):
            await act(office.owner, name)


async def test_backups_are_the_owners(office: ServedOffice) -> None:
    service = backups(office)
    for caller in (office.agent("lead"), office.stranger()):
        for call in (service.list_all(caller), service.make(caller), service.drill(caller, "a.db")):
            with pytest.raises(OwnerOnly):
                await call
        with pytest.raises(OwnerOnly):
            await service.remove(caller, "a.db")


async def test_a_process_that_cannot_make_one_says_where_to(office: ServedOffice) -> None:
    with pytest.raises(BackupUnavailable, match="postroom backup"):
        await office.with_server(ServerFacts()).backups.make(office.owner)
