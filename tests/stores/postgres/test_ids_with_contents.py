"""Messages are found by id and queue through their contents, also those that an older version has written."""

from contextlib import AbstractContextManager
from pathlib import Path

import psycopg

import postroom
from postroom import State, SyncRoom
from tests.conformance.promises import check_promises
from tests.conftest import postgres_url
from tests.stores.postgres.older_version import bring_back

# As the version before publishes: a copy of a message under another id.
PUBLISH = """
INSERT INTO messages SELECT (copy).* FROM (SELECT jsonb_populate_record(m,
    jsonb_build_object('seq', m.seq + 1000, 'id', m.id || 'x')) AS copy FROM messages m WHERE m.id = %s) c;
INSERT INTO contents (seq, content_type, body, source_type)
SELECT seq + 1000, content_type, body, source_type FROM contents WHERE id = %s
"""


def _open(url: str) -> AbstractContextManager[SyncRoom]:
    return postroom.open_sync(url, housekeeping=False)


def test_a_store_of_the_version_before_is_brought_up_to_date_with_its_messages(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    with _open(url) as room:
        for name in ("jobs", "others"):
            room.create_queue(name)
        ids = [receipt.id for receipt in room.publish_many("jobs", range(5))]
        room.publish("others", 1)
    bring_back(url)
    with _open(url) as room:
        assert room.get(ids[2]).body == 2
        assert [message.id for message in room.messages(queue="jobs").messages] == ids
        room.complete(room.claim("jobs")[0])
        check_promises(room)


def test_what_a_process_of_the_version_before_writes_meanwhile_is_found(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    with _open(url) as room:
        room.create_queue("jobs")
        first = room.publish("jobs", {"n": 1}).id
        with psycopg.connect(url, autocommit=True) as db:
            for sql in PUBLISH.split(";"):
                db.execute(sql.encode(), (first,))
        assert room.get(f"{first}x").body == {"n": 1}
        assert {message.id for message in room.messages(queue="jobs").messages} == {first, f"{first}x"}


def test_a_message_that_moves_is_listed_where_it_is(tmp_path: Path) -> None:
    with _open(postgres_url(tmp_path)) as room:
        room.create_queue("jobs", max_retries=1)
        room.publish("jobs", 1)
        [message] = room.claim("jobs")
        room.fail(message, "no", retry=False)
        assert room.messages(queue="jobs").messages == []
        [dead] = room.messages(queue="_dead_letter").messages
        assert (dead.id, dead.state) == (message.id, State.DEAD)
        room.replay(message.id)
        assert [each.id for each in room.messages(queue="jobs").messages] == [message.id]
