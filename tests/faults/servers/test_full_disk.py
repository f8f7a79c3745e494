"""The disk of a server is full under load: people are told so, nothing that was accepted is lost, and
everything goes on when there is room again."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import PostroomError, StoreFull
from tests.faults.servers.crew import at_work, list_pages
from tests.faults.servers.own_servers import OWN, address_of, own_redis
from tests.stores.servers.conftest import until

DISK = "400m"
USERS = {"postgres": "postgres", "mariadb": "mysql"}
# MariaDB itself crashes when it has no room for what does not fit into a page.
MANY = ["x" * 3000] * 50


@contextlib.contextmanager
def small_disk(user: str) -> Iterator[Path]:
    """A folder for a server, whose data are on a disk of their own."""
    folder = Path(tempfile.mkdtemp(prefix="postroom-disk-"))
    data = folder / "data"
    data.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700,uid={user}", "none", data]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        if mounted.returncode:
            pytest.skip(f"a disk of its own cannot be mounted here: {mounted.stderr.strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", data], check=True)
    finally:
        shutil.rmtree(folder)


def fill(folder: Path) -> Path:
    """Somebody else's file takes all that is left."""
    filler = folder / "data" / "filler"
    with filler.open("wb") as file:
        for size in (1 << 20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    os.write(file.fileno(), b"\0" * size)
    return filler


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("with_redis", [False, True], ids=["alone", "with Redis"])
@pytest.mark.parametrize("name", OWN)
def test_a_full_disk_of_the_server_is_told_and_loses_nothing(
    name: str, tmp_path: Path, with_redis: bool
) -> None:
    with (
        small_disk(USERS[name]) as folder,
        OWN[name](folder) as server,
        own_redis(tmp_path, wanted=with_redis) as redis,
        at_work(tmp_path, server.url, server.url, address_of(redis)) as crew,
    ):
        crew.room.create_queue("many")
        crew.go_on()
        filler = fill(folder)
        accepted, told = [], list[PostroomError]()
        with postroom.open_sync(server.url, actor="many") as room:

            def is_told() -> bool:
                fill(folder)
                try:
                    accepted.extend(receipt.id for receipt in room.publish_many("many", MANY))
                except PostroomError as error:
                    told.append(error)
                    print(error)
                return bool(told)

            until(is_told, within=120)
            filler.unlink()
            # Some crash instead, at what they cannot write; nobody can tell more than that it is away.
            has_crashed = server.start()
            assert has_crashed or isinstance(told[0], StoreFull), told
            crew.go_on()
            known = {message.id for page in list_pages(room, "many") for message in page}
            assert known >= set(accepted)
        print(f"{name}, with Redis: {with_redis}, disk full: {len(accepted)} at once and {crew.check()}")
