"""Two neighbouring versions on one store: the older goes on with what it knows, and is not opened anew."""

import pytest

import postroom
from postroom.errors import StoreTooNew
from tests.stores.servers.kinds import ServerKind


def _set_schema(kind: ServerKind, url: str, value: str) -> None:
    suffix = " RETURNING 1" if kind.name == "postgres" else ""
    kind.fetch(url, f"UPDATE meta SET value = '{value}' WHERE name = 'schema'{suffix}")


def test_an_older_process_goes_on_beside_a_newer_schema_and_a_second_is_refused(
    kind: ServerKind, url: str
) -> None:
    with postroom.open_sync(url, housekeeping=False) as room:
        room.create_queue("jobs")
        [(before,)] = kind.fetch(url, "SELECT value FROM meta WHERE name = 'schema'")
        _set_schema(kind, url, "999")
        try:
            room.publish("jobs", {"n": 1})
            [job] = room.claim("jobs")
            room.complete(job)
            assert room.counts("jobs").completed == 1
            with pytest.raises(StoreTooNew, match="999"), postroom.open_sync(url):
                pass
        finally:
            _set_schema(kind, url, before)
