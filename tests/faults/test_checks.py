"""A proof is worth what its checks can see: each kind of damage and each broken promise is noticed."""

import pytest

from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.stores.sqlite import SqliteStore
from tests.faults import crashes
from tests.faults.campaign import Tally, try_seed
from tests.faults.crashes import World, begin
from tests.faults.disk import Disk
from tests.faults.history import History

FURNISHED = 1


def _busy(history: History) -> World:
    """One message completed in a unit, one claimed, one waiting."""
    world = World(Disk(begin(FURNISHED)), FURNISHED, history, ManualClock())
    ask = world.caller.ask
    for mark in ("one", "two", "three"):
        message = NewMessage(body={"mark": mark}, idempotency_key=mark)
        ask(c.Publish(queue="default/jobs", messages=[message]))
        world.clock.advance(1)
    taken = ask(c.Claim(queues=("default/jobs",), limit=2)).messages
    held = {"message_id": taken[0].row.id, "token": taken[0].row.token or ""}
    reply = c.Publish(queue="default/urgent", messages=[NewMessage(body={"mark": "reply"})])
    record = c.AddRecord(kind="turn", key="turn", data={})
    ask(c.Unit(commands=(c.Complete(**held), reply, record)))
    return world


def test_a_sound_store_has_no_problems() -> None:
    history = History()
    world = _busy(history)
    assert history.check(world.store) == []
    world.close()


DAMAGES = {
    "a lost message": ("DELETE FROM messages WHERE state = 'pending'", "LOST"),
    "a lost content": ("DELETE FROM contents WHERE seq = (SELECT max(seq) FROM contents)", "content:"),
    "another body": ('UPDATE contents SET body = \'{"mark":"one?"}\'', "sent was"),
    "a completion undone": (
        "UPDATE messages SET state = 'pending' WHERE state = 'completed'",
        "was completed",
    ),
    "a claim forgotten": ("UPDATE messages SET claims = 0 WHERE state = 'claimed'", "claims:"),
    "a claim without end": ("UPDATE messages SET due_at = NULL WHERE state = 'claimed'", "row:"),
    "a wrong count": ("UPDATE figures SET n = n + 1 WHERE queue_id > 0", "counts:"),
    "an event altered": ("UPDATE ledger SET actor = 'somebody' WHERE seq = 9", "ledger:"),
    "an event gone": ("DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)", "ledger:"),
    "half a unit": ("DELETE FROM records", "happened in part"),
    "a stranger": ('UPDATE contents SET body = \'{"mark":"nobody sent me"}\'', "stranger:"),
    "a deleted queue": ("UPDATE queues SET deleted_at = 1", "stuck:"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed(damage: str) -> None:
    history = History()
    world = _busy(history)
    sql, expected = DAMAGES[damage]
    world.store._db.execute(sql)
    problems = history.check(world.store)
    assert any(expected in problem for problem in problems), problems
    world.close()


def test_a_claim_handed_out_twice_is_noticed() -> None:
    history = History()
    world = _busy(history)
    handed = next(entry for entry in history.log if entry.get("ok") and "-" in str(entry["ok"][0][1]))
    history.log += [{"op": "again", "said": {"verb": "Claim"}}, {"op": "again", "ok": handed["ok"]}]
    assert any("handed out 2 times" in problem for problem in history.check(world.store))
    world.close()


def test_a_store_that_does_not_wait_for_the_disk_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tune = crashes._tune

    def careless(store: SqliteStore, seed: int) -> None:
        tune(store, seed)
        store._db.pragma("synchronous", "normal")

    monkeypatch.setattr(crashes, "_tune", careless)
    tally = Tally()
    for seed in range(1, 6):
        try_seed(seed, tally, ("cut",))
    assert tally.lost, str(tally)


def test_a_store_that_commits_twice_where_once_was_asked_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = SqliteStore.commit

    def halving(store: SqliteStore, tx: object) -> None:
        """The rows in one transaction, their events and counts in the next."""
        store._db.execute("COMMIT")
        store._db.execute("BEGIN IMMEDIATE")
        commit(store, tx)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteStore, "commit", halving)
    tally = Tally()
    for seed in (1, 2, 3):
        try_seed(seed, tally, ("kept",))
    assert tally.broken, str(tally)
