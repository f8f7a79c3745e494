"""The ledger on the command line: whatever was done to the file, verify finds it and says so with code 7."""

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import apsw
import msgspec
import pytest

import postroom
from postroom.clock import ManualClock, SystemClock
from postroom.errors import StoreReadOnly
from postroom.kernel.housekeeping.housekeepers import PRUNER
from postroom.kernel.ledger import EventDraft, Head, seal
from postroom.kernel.retention import DAY_S, Retention
from postroom.pipeline.bronze.ingest import Slice, take
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import LEDGER
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.runtime import SyncRoom
from postroom.runtime.core import RoomCore, RoomOptions
from postroom.stores.sqlite.heads import SignedHeads
from postroom.terminal.cli import readonly
from postroom.terminal.cli.readonly import ReadOnlyFile
from tests.terminal.cli.runner import Cli, Tamper


@pytest.fixture
def used(jobs: Cli) -> Cli:
    """A store with a little history: five messages, one completed."""
    jobs.ok("publish", "jobs", "-", "--lines", stdin=b"1\n2\n3\n4\n5\n")
    jobs.ok("complete", *jobs.claim("jobs"))
    return jobs


def test_a_whole_ledger_is_verified(used: Cli) -> None:
    told = used.json("ledger", "verify")
    head = used.json("ledger", "head")
    assert told == {"ok": True, "events": 14, "first": 1, "head": head, "messages": 5}
    assert f"head 14 {head['hash']}" in used.ok("ledger", "verify").out
    assert "were not checked" in used.ok("ledger", "verify", "--no-fold").out


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE ledger SET data = '{}' WHERE seq = 9", "broken at event 9: its content or place"),
        ("UPDATE ledger SET data = '{' WHERE seq = 14", "broken at event 14: its content or place"),
        ("UPDATE ledger SET message_id = 7 WHERE seq = 9", "broken at event 9: its content or place"),
        ("UPDATE ledger SET hash = 'text' WHERE seq = 9", "broken at event 9: its content or place"),
        ("DELETE FROM ledger WHERE seq = 10", "broken at event 11: event 10 is missing"),
        ("DELETE FROM ledger WHERE seq = 1", "broken at event 2: event 1 is missing"),
        ("DELETE FROM ledger WHERE seq = 14", "the chain ends at 13, but 14 events were written"),
        ("DELETE FROM ledger", "the chain ends at 0, but 14 events were written"),
        ("UPDATE figures SET n = 20 WHERE name = 'head'", "the chain ends at 14, but 20 events were written"),
        ("UPDATE figures SET n = 3 WHERE name = 'anchor'", "broken at event 4: its content or place"),
        (
            "UPDATE figures SET hash = 'x' WHERE name = 'head'",
            "the note of where it begins and ends",
        ),
        ("DELETE FROM figures WHERE queue_id = 0", "the note of where it begins and ends"),
        (
            "UPDATE messages SET state = 'completed'",
            "is completed in default/jobs with 0 attempts, but",
        ),
        ("UPDATE messages SET attempts = 0", "with 0 attempts, but by the ledger it is"),
        ("UPDATE messages SET state = 'lost'", "a message cannot be read ('lost' is not a valid State)"),
        ("UPDATE messages SET id = 'x' WHERE seq = 1", "the ledger knows nothing of message x"),
        ("DELETE FROM messages WHERE seq = 5", "is gone; it was pending in default/jobs"),
        ("DROP TABLE ledger", "its table ledger is missing"),
        ("PRAGMA application_id = 5", "it is no store of Postroom"),
    ],
)
def test_tampering_is_found(used: Cli, tamper: Tamper, sql: str, told: str) -> None:
    tamper(sql)
    done = used("ledger", "verify")
    assert told in done.err
    assert done.code == 7
    assert done.err.count("\n") == 1
    found = used("ledger", "verify", "--json")
    assert found.json["ok"] is False
    assert told in found.json["problem"]
    assert json.loads(found.err)["error"]["code"] == found.json["code"]


def test_the_broken_event_is_shown(used: Cli, tamper: Tamper) -> None:
    tamper("UPDATE ledger SET actor = 'mallory' WHERE seq = 9")
    assert "(mallory)" in used("ledger", "verify").out
    assert used("ledger", "verify", "--json").json["event"]["actor"] == "mallory"


def test_a_damaged_file_is_found(used: Cli) -> None:
    pages = bytearray(used.store.read_bytes())
    pages[4096 * 5 : 4096 * 6] = b"\xaa" * 4096
    used.store.write_bytes(pages)
    done = used("ledger", "verify")
    assert done.code == 7
    assert "is damaged" in done.err
    used.store.write_bytes(pages[:6000])
    assert used("ledger", "verify").code == 7


def rewrite(path: Path, first: int = 1) -> None:
    """What a clever forger does: change an event and chain everything after it anew."""
    db = apsw.Connection(str(path))
    rows: list[Any] = db.execute("SELECT * FROM ledger ORDER BY seq").fetchall()
    kept = Head(first - 1, rows[first - 2][-1]) if first > 1 else Head()
    drafts = [EventDraft(*row[1:-1]) for row in rows[first - 1 :]]
    drafts[0] = msgspec.structs.replace(drafts[0], actor="mallory")
    sealed, head = seal(drafts, kept)
    with db:
        for row in sealed:
            db.execute("UPDATE ledger SET actor = ?, hash = ? WHERE seq = ?", (row[9], row[-1], row[0]))
        db.execute("UPDATE figures SET hash = ? WHERE name = 'head'", (head.hash,))
    db.close()


def forge(used: Cli) -> None:
    """Change event 9, and leave nothing beside the store that knows better."""
    rewrite(used.store, 9)
    SignedHeads(used.store).path.unlink()
    used.ok("ledger", "verify")


def test_a_head_noted_earlier_proves_that_nothing_was_rewritten(used: Cli) -> None:
    noted = used.json("ledger", "head")["hash"]
    used.publish("jobs", "more")
    used.ok("ledger", "verify", "--head", noted)
    used.ok("ledger", "verify", "--head", noted[:8].upper())
    rewrite(used.store)
    assert "it was rewritten" in used("ledger", "verify").err, "the signed heads beside it know better"
    SignedHeads(used.store).path.unlink()
    used.ok("ledger", "verify")
    done = used("ledger", "verify", "--head", noted)
    assert done.code == 7
    assert "it belongs to another store, or this ledger was rewritten" in done.err


def test_a_file_of_heads_elsewhere_finds_a_recomputed_chain_and_where(used: Cli, tmp_path: Path) -> None:
    file = tmp_path / "heads.jsonl"
    file.write_text(used.ok("ledger", "head", "--json").out)
    used.publish("jobs", "more")
    with file.open("a") as lines:
        lines.write(used.ok("ledger", "verify").out.splitlines()[-1] + "\n\n")
    assert used.ok("ledger", "verify", "--head", str(file))
    forge(used)
    done = used("ledger", "verify", "--head", str(file))
    assert done.code == 7
    assert "broken at event 14: another event was noted there: it was rewritten" in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it has none"),
        ("nonsense", "line 1 is no head"),
        ('{"seq": 1}', "line 1 is no head"),
        (f"7 {'a' * 64}\n7 {'b' * 64}", "it has two hashes for event 7"),
    ],
)
def test_a_file_that_holds_no_heads_proves_nothing(used: Cli, tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "heads"
    file.write_text(text)
    done = used("ledger", "verify", "--head", str(file))
    assert done.code == 2
    assert told in done.err


def test_git_notes_find_a_recomputed_chain(used: Cli, tmp_path: Path) -> None:
    repository = tmp_path / "notes"
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for words in (("init", "-q", "."), (*who, "commit", "-q", "--allow-empty", "-m", "first")):
        repository.mkdir(exist_ok=True)
        subprocess.run(["git", *words], cwd=repository, check=True)
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        subprocess.run(["git", "config", name, value], cwd=repository, check=True)
    used.ok("ledger", "head", "--git-note", str(repository))
    used.publish("jobs", "more")
    used.ok("ledger", "head", "--git-note", str(repository))
    used.ok("ledger", "verify", "--head", f"git:{repository}")
    forge(used)
    done = used("ledger", "verify", "--head", f"git:{repository}")
    assert done.code == 7
    assert "broken at event 14" in done.err
    missing = used("ledger", "head", "--git-note", str(tmp_path / "nothing"))
    assert missing.code != 0
    assert "The head of the ledger is not at git:" in missing.err


class HeadTaker(BaseHTTPRequestHandler):
    taken: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/heads":
            self.taken.append(json.loads(body))
        self.send_response(204 if self.path == "/heads" else 403)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Not on stderr."""


def test_a_head_is_sent_to_an_address_and_refused_loudly(used: Cli, tmp_path: Path) -> None:
    HeadTaker.taken.clear()
    with HTTPServer(("127.0.0.1", 0), HeadTaker) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            head = used.json("ledger", "head", "--post", f"{url}/heads")
            assert HeadTaker.taken == [head]
            refused = used("ledger", "head", "--post", f"{url}/closed")
        finally:
            server.shutdown()
            thread.join()
    assert refused.code != 0
    assert "it answered 403" in refused.err
    assert used("ledger", "head", "--post", f"{url}/heads").code != 0, "nobody is there any more"
    assert "begins with http:// or https://" in used("ledger", "head", "--post", "file:///x").err
    kept = tmp_path / "taken.jsonl"
    kept.write_text(json.dumps(HeadTaker.taken[0]))
    forge(used)
    assert used("ledger", "verify", "--head", str(kept)).code == 7


def test_the_lake_finds_a_recomputed_chain(used: Cli) -> None:
    none = used("ledger", "verify", "--head", "lake")
    assert none.code == 2
    assert "it has none" in none.err
    lake, head = Lake(str(used.store.parent / "lake")), used.json("ledger", "head")["seq"]
    files = take(Slice(LEDGER.name, 0, head), SqliteSource(str(used.store)), lake.uri(LEDGER))
    lake.commit(LEDGER, files, Positions(head, 0))
    used.publish("jobs", "more")
    used.ok("ledger", "verify", "--head", "lake")
    forge(used)
    done = used("ledger", "verify", "--head", "lake")
    assert done.code == 7
    assert "broken at event 14" in done.err


def test_a_ledger_whose_beginning_was_pruned_is_verified_from_there(used: Cli) -> None:
    clock = ManualClock(SystemClock().now())
    clock.advance(10 * DAY_S)
    keep = Retention(ledger_s=DAY_S)
    with postroom.open_sync(
        f"sqlite:///{used.store}", clock=clock, housekeeping=False, retention=keep
    ) as room:
        assert room.housekeep(PRUNER) > 0
    told = used.json("ledger", "verify")
    assert (told["events"] < 14, told["first"] > 9, told["messages"]) == (True, True, 5)
    assert f"Events up to {told['first'] - 1} were pruned." in used.ok("ledger", "verify").out
    refused = used("ledger", "verify", "--head", "0" * 64).err
    assert f"or it lies before event {told['first']}" in refused
    file = used.store.with_name("old-heads")
    file.write_text(f"1 {'0' * 64}")
    old = used("ledger", "verify", "--head", str(file))
    assert (old.code, "none that is kept was noted" in old.err) == (7, True)
    file.write_text(f"{told['first'] - 1} {'0' * 64}")
    assert "it was rewritten" in used("ledger", "verify", "--head", str(file)).err


def test_a_ledger_that_was_cut_by_hand_is_found_out(used: Cli) -> None:
    db = apsw.Connection(str(used.store))
    [(hash_, time)] = db.execute("SELECT hash, time FROM ledger WHERE seq = 9").fetchall()
    db.execute("UPDATE figures SET n = 9, hash = ?, time = ? WHERE name = 'anchor'", (hash_, time))
    db.execute("DELETE FROM ledger WHERE seq <= 9")
    db.close()
    refused = used("ledger", "verify")
    assert refused.code == 7
    assert "the ledger knows nothing of message" in refused.err


def test_the_tail_is_one_line_per_event(used: Cli) -> None:
    lines = used.ok("ledger", "tail", "-n", "2").out.splitlines()
    assert [line.split()[0] for line in lines] == ["13", "14"]
    assert "claimed by " in lines[0]
    lines = used.ok("ledger", "tail", "--since", "0", "--json").out.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["seq"] for event in events] == list(range(1, 15))
    assert events[1]["previous_hash"] == events[0]["hash"]
    assert used.ok("ledger", "tail", "--since", "14").out == ""


def test_looking_changes_nothing(used: Cli) -> None:
    before = used.store.read_bytes()
    used.ok("queue", "list")
    used.ok("ledger", "verify")
    used.ok("list")
    used.ok("dead", "list")
    used.ok("housekeepers")
    assert used.store.read_bytes() == before


def test_a_room_seen_through_a_window_cannot_be_changed(used: Cli) -> None:
    core = RoomCore(ReadOnlyFile(used.store), RoomOptions(housekeeping=False))
    try:
        with pytest.raises(StoreReadOnly, match="it was opened for reading"):
            SyncRoom(core).publish("jobs", "x")
    finally:
        core.close()


def test_a_file_nobody_may_write_can_be_read(used: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a folder without the right to write; root, who may run this test, can write everywhere."""
    folder = used.folder / "shelf"
    folder.mkdir()
    copy = folder / "room.db"
    copy.write_bytes(used.store.read_bytes())
    connect = ReadOnlyFile._connect

    def refusing(self: ReadOnlyFile, how: str) -> apsw.Connection:
        if "immutable" not in how:
            raise apsw.CantOpenError("unable to open database file")
        return connect(self, how)

    monkeypatch.setattr(readonly.ReadOnlyFile, "_connect", refusing)
    assert "The ledger is whole" in used.ok("ledger", "verify", "--store", str(copy)).out
    assert os.listdir(folder) == ["room.db"]
    Path(f"{copy}-wal").write_bytes(b"something that is not merged yet")
    done = used("ledger", "verify", "--store", str(copy))
    assert done.code == 6
    assert "cannot be read: unable to open database file" in done.err


def test_a_store_of_a_newer_version_is_left_alone(used: Cli, tamper: Tamper) -> None:
    tamper("PRAGMA user_version = 999")
    done = used("queue", "list")
    assert done.code == 6
    assert "has schema version 999" in done.err


# copies


def test_a_copy_is_a_store_like_any_other(used: Cli) -> None:
    told = used.json("backup", "copies/monday.db", "--check")
    assert told["verified"] is True
    assert told["head"] == used.json("ledger", "head")
    copy = used.folder / "copies" / "monday.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(copy.parent)) == ["monday.db", "monday.db.sha256"]
    used.ok("publish", "jobs", "6", "--store", str(copy))
    assert len(used.json("list", "--store", str(copy))["messages"]) == 6
    assert len(used.json("list")["messages"]) == 5


def test_a_copy_replaces_another_only_when_told(used: Cli) -> None:
    used.ok("backup", "copy.db")
    used.publish("jobs", "6")
    assert used("backup", "copy.db").code == 5
    assert used.json("backup", "copy.db", "--force")["head"]["seq"] == 15
    (used.folder / "copy.db-wal").write_bytes(b"left over")
    refused = used("backup", "copy.db", "--force")
    assert refused.code == 5
    assert "copy.db-wal exists already" in refused.err


def test_a_copy_of_a_tampered_store_does_not_pass_the_check(used: Cli, tamper: Tamper) -> None:
    tamper("UPDATE ledger SET actor = 'mallory' WHERE seq = 9")
    done = used("backup", "copy.db", "--check")
    assert done.code == 7
    assert "broken at event 9" in done.err
